"""Decoder processes, which a broken film may kill, and the pixels of films viewed recently."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from medgrape.config import Preprocessing
from medgrape.errors import UserError
from medgrape.films.anonymise import CleanFilm
from medgrape.films.decoder import Decoder, Request
from medgrape.films.film import Film, FilmError, Pixels, stretch_greys
from medgrape.server.inference import LRUCache
from medgrape.server.settings import ServerSettings

CACHE_BYTES = 256 * 2**20
"""Size of the cache of decoded films."""
DECODER_TIMEOUT = 30.0
"""Seconds that a film waits for a decoder."""


class DecodersBusyError(Exception):
    """No decoder became free in time."""


class FilmRefusedError(UserError):
    """A file that is not a readable film."""


@dataclass(frozen=True)
class Window:
    """Greys to show, as fractions of the film's own range, and the size of the picture."""

    centre: float = 0.5
    width: float = 1.0
    inverted: bool = False
    side: int | None = None
    """Longest side in pixels; None: as large as the film."""


class DecoderPool:
    """The decoders of one worker. Films are named by the paths of their files."""

    def __init__(self, settings: ServerSettings) -> None:
        self._limits = settings.films
        self._decoders = [Decoder(settings.film_seconds) for _ in range(settings.decoders)]
        self._free: queue.LifoQueue[Decoder] = queue.LifoQueue()
        for decoder in self._decoders:
            self._free.put(decoder)
        self.render_slots = threading.Semaphore(4)
        """Pictures drawn at once: a large one takes a hundred megabytes."""
        self._pixels: LRUCache[Path, Pixels] = LRUCache(CACHE_BYTES, lambda pixels: pixels.nbytes)

    def clean(self, upload: Path) -> CleanFilm:
        """An upload without names, ready to be stored."""
        with self._decoder(upload) as decoder:
            return decoder.clean(upload, self._limits)

    def prepared(self, path: Path, preprocessing: Preprocessing) -> Film:
        """A film as a model sees it."""
        with self._decoder(path) as decoder:
            return decoder.read(Request(path, self._limits, preprocessing))

    def pixels(self, path: Path) -> Pixels:
        """A film's pixels, from memory or decoded now."""
        pixels = self._pixels.get(path)
        if pixels is not None:
            return pixels
        with self._decoder(path) as decoder:
            return self._pixels.put(path, decoder.read(Request(path, self._limits)).pixels)

    def forget(self, path: Path) -> None:
        """Drop the pixels of a film that was removed."""
        self._pixels.forget(lambda key: key == path)

    def picture(self, film: Film, window: Window) -> bytes:
        """The film as PNG."""
        with self.render_slots:
            return png(shown(film.pixels, window))

    def process_ids(self) -> list[int]:
        """Process ids of the decoders, for monitoring."""
        return [decoder.process_id for decoder in self._decoders]

    def close(self) -> None:
        """End the decoders."""
        for decoder in self._decoders:
            decoder.close()

    @contextmanager
    def _decoder(self, path: Path) -> Iterator[Decoder]:
        """A free decoder; its refusal is raised without the file's path on this machine."""
        try:
            decoder = self._free.get(timeout=DECODER_TIMEOUT)
        except queue.Empty:
            raise DecodersBusyError from None
        try:
            yield decoder
        except FilmError as error:
            reason = str(error).removeprefix(f"{path}: ")
            raise FilmRefusedError(f"The film is refused: {reason}") from None
        finally:
            self._free.put(decoder)


def shown(pixels: Pixels, window: Window) -> np.ndarray:
    """8 bit greys at a window and a size."""
    height, width = pixels.shape
    scale = 1.0 if window.side is None else window.side / max(height, width)
    if scale != 1.0:
        size = (max(round(width * scale), 1), max(round(height * scale), 1))
        pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC))
    top = 255.0 if pixels.dtype == np.uint8 else 65535.0
    low, high = (window.centre - window.width / 2) * top, (window.centre + window.width / 2) * top
    greys = stretch_greys(pixels, low, high, inverted=window.inverted)
    return greys if greys.dtype == np.uint8 else np.asarray(cv2.convertScaleAbs(greys, alpha=255.0 / 65535.0))


def png(pixels: np.ndarray) -> bytes:
    """PNG with fast instead of strong compression."""
    out = BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=1)
    return out.getvalue()
