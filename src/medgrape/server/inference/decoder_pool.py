"""Films on their way in and out: decoded in processes that may die, kept without names, shown at any window."""

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
from medgrape.files import whole_file
from medgrape.films.anonymise import CleanFilm
from medgrape.films.decoder import Decoder, Request
from medgrape.films.film import Film, FilmError, FilmFacts, LazyFilm, Pixels, stretch_greys
from medgrape.server.inference.lru_cache import LRUCache
from medgrape.server.room_folder import RoomFolder
from medgrape.server.settings import ServerSettings

IN_MEMORY = 256 * 2**20
"""Bytes of decoded films that are kept at hand."""
WAIT = 30.0
"""Seconds that a film waits for a decoder."""


class DecodersBusyError(Exception):
    """More films at once than there are hands."""


class FilmRefusedError(UserError):
    """A file that is no film that can be read."""


@dataclass(frozen=True)
class Window:
    """Which greys are shown, as shares of the film's own range, and how large."""

    centre: float = 0.5
    width: float = 1.0
    inverted: bool = False
    side: int | None = None
    """Longest side in pixels; None: as large as the film."""


class DecoderPool:
    """The decoders, and the films that were looked at lately."""

    def __init__(self, folder: RoomFolder, settings: ServerSettings) -> None:
        self._folder, self._limits = folder, settings.films
        self._free: queue.LifoQueue[Decoder] = queue.LifoQueue()
        self._decoders = [Decoder(settings.film_seconds) for _ in range(settings.decoders)]
        for decoder in self._decoders:
            self._free.put(decoder)
        self.render_slots = threading.Semaphore(4)
        """How many pictures are drawn at once: a large one takes a hundred megabytes."""
        self._seen: LRUCache[str, Pixels] = LRUCache(IN_MEMORY, lambda pixels: pixels.nbytes)

    def clean(self, upload: Path) -> CleanFilm:
        """A file that arrived, as it may be kept."""
        with self._decoder() as decoder, _about(upload):
            return decoder.clean(upload, self._limits)

    def keep(self, film: str, clean: CleanFilm) -> None:
        """Put a film's files into the folder, each whole or not there."""
        with whole_file(self._folder.film(film, clean.arrival.suffix)) as draft:
            draft.write_bytes(clean.content)
        with whole_file(self._folder.preview(film)) as draft:
            Image.fromarray(clean.preview).save(draft, "PNG")

    def drop(self, film: str, suffix: str) -> None:
        """Remove a film's files."""
        self._seen.forget(lambda key: key == film)
        for path in (self._folder.film(film, suffix), self._folder.preview(film)):
            path.unlink(missing_ok=True)

    def prepared(self, film: str, suffix: str, preprocessing: Preprocessing) -> Film:
        """A film as a model sees it."""
        path = self._folder.film(film, suffix)
        with self._decoder() as decoder, _about(path):
            return decoder.read(Request(path, self._limits, preprocessing))

    def film(self, film: str, suffix: str, facts: FilmFacts) -> Film:
        """A film whose pixels are decoded when somebody looks at them."""
        return LazyFilm(facts, lambda: self._pixels(film, suffix))

    def picture(self, film: Film, window: Window) -> bytes:
        """The film as PNG."""
        with self.render_slots:
            return png(shown(film.pixels, window))

    def process_ids(self) -> list[int]:
        """Of the decoders, for whoever watches them."""
        return [decoder.process_id for decoder in self._decoders]

    def close(self) -> None:
        """End the decoders."""
        for decoder in self._decoders:
            decoder.close()

    def _pixels(self, film: str, suffix: str) -> Pixels:
        found = self._seen.get(film)
        if found is not None:
            return found
        path = self._folder.film(film, suffix)
        with self._decoder() as decoder, _about(path):
            return self._seen.put(film, decoder.read(Request(path, self._limits)).pixels)

    @contextmanager
    def _decoder(self) -> Iterator[Decoder]:
        try:
            decoder = self._free.get(timeout=WAIT)
        except queue.Empty:
            raise DecodersBusyError from None
        try:
            yield decoder
        finally:
            self._free.put(decoder)


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """A refusal without the name that the file has on this machine."""
    try:
        yield
    except FilmError as refusal:
        reason = str(refusal).removeprefix(f"{path}: ")
        raise FilmRefusedError(f"The film is refused: {reason}") from None


def shown(pixels: Pixels, window: Window) -> np.ndarray:
    """8 bit greys at a window and a size."""
    small = _sized(pixels, window.side)
    top = 255.0 if small.dtype == np.uint8 else 65535.0
    low, high = (window.centre - window.width / 2) * top, (window.centre + window.width / 2) * top
    greys = stretch_greys(small, low, high, inverted=window.inverted)
    return greys if greys.dtype == np.uint8 else np.asarray(cv2.convertScaleAbs(greys, alpha=255.0 / 65535.0))


def png(pixels: np.ndarray) -> bytes:
    """A picture's bytes; packed quickly rather than tightly."""
    out = BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=1)
    return out.getvalue()


def _sized(pixels: Pixels, side: int | None) -> Pixels:
    height, width = pixels.shape
    if side is None or side == max(height, width):
        return pixels
    scale = side / max(height, width)
    size = (max(round(width * scale), 1), max(round(height * scale), 1))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC))
