"""Decoder processes, which a broken film may crash, and a cache of decoded films."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
from PIL import Image
from pydantic import BaseModel, Field

from medgrape.config import Preprocessing
from medgrape.errors import UserError
from medgrape.films.anonymise import CleanFilm
from medgrape.films.decoder import Decoder, Request
from medgrape.films.film import Film, FilmError, Pixels, stretch_greys
from medgrape.server.inference import LRUCache
from medgrape.server.settings import ServerSettings

CACHE_BYTES = 256 * 2**20  # of decoded films
DECODER_TIMEOUT = 30.0  # seconds to wait for a free decoder


class DecodersBusyError(Exception):
    """No decoder became free in time."""


class FilmRefusedError(UserError):
    """A file is not a readable film."""


class Window(BaseModel):
    """Grey window as fractions of the film's range, and size of the picture."""

    centre: float = Field(0.5, ge=-1, le=2, examples=[0.5], description="Middle, as a fraction of all greys.")
    width: float = Field(1.0, gt=0.001, le=4, examples=[1.0], description="As a fraction of all greys.")
    inverted: bool = Field(False, description="Swap black and white.")
    side: int | None = Field(None, ge=16, le=4096, examples=[1024], description="Longest side; default: the film's.")


class DecoderPool:
    """The decoders of one worker."""

    def __init__(self, settings: ServerSettings) -> None:
        self._limits = settings.films
        self._decoders = [Decoder(settings.film_seconds) for _ in range(settings.decoders)]
        self._free: queue.LifoQueue[Decoder] = queue.LifoQueue()
        for decoder in self._decoders:
            self._free.put(decoder)
        self.render_slots = threading.Semaphore(4)  # limits pictures drawn at once: each takes up to 100 MB
        self._pixels: LRUCache[Path, Pixels] = LRUCache(CACHE_BYTES, lambda pixels: pixels.nbytes)

    def clean(self, upload: Path) -> CleanFilm:
        """Return an upload without data of the patient, ready to be stored."""
        with self._decoder(upload) as decoder:
            return decoder.clean(upload, self._limits)

    def prepared(self, path: Path, preprocessing: Preprocessing) -> Film:
        """Return a film preprocessed for a model."""
        with self._decoder(path) as decoder:
            return decoder.read(Request(path, self._limits, preprocessing))

    def pixels(self, path: Path) -> Pixels:
        """Return a film's pixels from the cache, or decode them."""
        pixels = self._pixels.get(path)
        if pixels is not None:
            return pixels
        with self._decoder(path) as decoder:
            return self._pixels.put(path, decoder.read(Request(path, self._limits)).pixels)

    def forget(self, path: Path) -> None:
        """Drop the pixels of a film that was removed."""
        self._pixels.forget(lambda key: key == path)

    def process_ids(self) -> list[int]:
        """Return the process ids of the decoders."""
        return [decoder.process_id for decoder in self._decoders]

    def close(self) -> None:
        """Stop the decoders."""
        for decoder in self._decoders:
            decoder.close()

    @contextmanager
    def _decoder(self, path: Path) -> Iterator[Decoder]:
        """Wait for a free decoder; raise its refusals without the path of the file."""
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


def windowed(pixels: Pixels, window: Window) -> np.ndarray:
    """Return 8 bit greys of a window, resized."""
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
    """Return a PNG with fast compression."""
    out = BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=1)
    return out.getvalue()
