"""Making stored pixels fewer before anything is worked out for each of them."""

from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image


@dataclass(frozen=True)
class Shrink:
    """Averages of 2 x 2 pixels, again and again, as long as neither side falls below ``side``; None keeps them all."""

    side: int | None = None

    def __call__(self, pixels: np.ndarray) -> np.ndarray:
        """The pixels that are left."""
        height, width = pixels.shape[:2]
        while self.side is not None and min(height, width) >= 2 * self.side:
            height, width = height // 2, width // 2
            # An odd last row or column cannot be halved; resizing by area spreads it over the others.
            pixels = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
        return pixels

    def before_decoding(self, picture: Image.Image) -> None:
        """JPEG can leave out the finest frequencies while it decodes, which is the same average for less work."""
        if self.side is not None:
            picture.draft(picture.mode, (self.side, self.side))


AS_STORED = Shrink()
