"""Films are decoded in another process, which a broken or hostile file may kill without harm."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from medgrape.child_process import ChildDiedError, ChildProcess, Message, ParentProcess
from medgrape.config import FilmLimits, Preprocessing
from medgrape.errors import UserError
from medgrape.films.anonymise import CleanFilm, UploadMetadata, clean_film
from medgrape.films.film import Film, FilmError, FilmFacts
from medgrape.films.reading import read_film, read_prepared

MEMORY_LIMIT = 4 * 2**30  # bytes of address space that a decoder process may take
T = TypeVar("T")


class DecoderLostError(FilmError):
    """The decoder process died over a film or took too long: the film is damaged, or the machine is out of memory."""


@dataclass(frozen=True)
class Request:
    """A film to decode, whole or as the model sees it."""

    path: Path
    limits: FilmLimits
    preprocessing: Preprocessing | None = None
    clean: bool = False  # return the anonymised file instead of the pixels

    def to_json(self) -> dict[str, Any]:
        """Plain data; a path that is no valid text stays as it is."""
        preprocessing = self.preprocessing and self.preprocessing.model_dump()
        return {"path": os.fspath(self.path), "limits": self.limits.model_dump(), "preprocessing": preprocessing,
                "clean": self.clean}  # fmt: skip

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Request":
        """The inverse of ``to_json``."""
        preprocessing = data["preprocessing"] and Preprocessing(**data["preprocessing"])
        return cls(Path(data["path"]), FilmLimits(**data["limits"]), preprocessing, data["clean"])


class Decoder:
    """One decoder process; it is started again when a film kills it."""

    def __init__(self, seconds: float = 60.0) -> None:
        self._seconds = seconds
        self._process = ChildProcess("medgrape.films.decoder", quiet=True)  # codecs print about broken files
        self._ready = False

    def __enter__(self) -> "Decoder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def process_id(self) -> int:
        """Process id of the decoder process, which is started if it does not run."""
        self._wait_until_ready()
        return self._process.process_id or 0

    def read(self, request: Request) -> Film:
        """Return the film, or raise a ``FilmError`` that names the file and the reason."""
        return self._answer(request, _film_from)

    def clean(self, path: Path, limits: FilmLimits) -> CleanFilm:
        """Return the anonymised film, or raise a ``FilmError``."""
        return self._answer(Request(path, limits, clean=True), _clean_film_from)

    def start(self) -> None:
        """Start the process without waiting for it; reading a film starts it too, and waits."""
        if not self._process.is_alive:
            self._ready = False
            self._process.start({name: value for name, value in os.environ.items() if not name.startswith("MEDGRAPE_")})

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _answer(self, request: Request, parse: Callable[[Message], T]) -> T:
        self._send(request)
        try:
            answer = self._process.receive(self._seconds)
            if "refused" in answer.header:
                raise FilmError(answer.header["refused"])
            return parse(answer)
        except FilmError:
            raise
        except Exception:  # a decoder that a hostile film has taken over may send anything
            self.close()
            raise DecoderLostError(f"{request.path}: it broke the decoder or took too long; it is damaged.") from None

    def _send(self, request: Request) -> None:
        self._wait_until_ready()
        try:
            self._process.send(request.to_json())
        except ChildDiedError:  # it died after the previous film, so this film is not the cause
            self.close()
            self._wait_until_ready()
            with suppress(ChildDiedError):  # receiving will fail, too
                self._process.send(request.to_json())

    def _wait_until_ready(self) -> None:
        self.start()
        if self._ready:
            return
        try:
            self._ready = self._process.receive().header == {"ready": True}
        except ChildDiedError:
            self._ready = False
        if not self._ready:
            self.close()
            raise UserError(f"The process that decodes films cannot start; see what {self._process.command} prints.")


class DecoderPool:
    """Several decoder processes that read films side by side."""

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or os.cpu_count() or 1
        self._threads = ThreadPoolExecutor(self._count)
        self._local = threading.local()
        self._decoders = list[Decoder]()

    def __enter__(self) -> "DecoderPool":
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        for decoder in self._decoders:
            decoder.close()

    def read_all(self, requests: Iterable[Request]) -> Iterator[Film | FilmError]:
        """Yield every film, or the reason why it is refused, in the order of the requests; a few are read ahead."""
        waiting = iter(requests)
        pending: deque[Future[Film | FilmError]] = deque()
        pending.extend(self._threads.submit(self._read, request) for request in islice(waiting, 4 * self._count))
        while pending:
            yield pending.popleft().result()
            pending.extend(self._threads.submit(self._read, request) for request in islice(waiting, 1))

    def _read(self, request: Request) -> Film | FilmError:
        if not hasattr(self._local, "decoder"):
            self._local.decoder = Decoder()
            self._decoders.append(self._local.decoder)
        try:
            return self._local.decoder.read(request)  # type: ignore[no-any-return]  # threading.local is untyped
        except FilmError as refusal:
            return refusal


def _film_from(answer: Message) -> Film:
    pixels = np.frombuffer(answer.payload, np.dtype(answer.header["dtype"])).reshape(answer.header["shape"])
    return Film(FilmFacts.from_json(answer.header["facts"]), pixels)


def _clean_film_from(answer: Message) -> CleanFilm:
    height, width = answer.header["preview"]
    size = len(answer.payload) - height * width
    preview = np.frombuffer(answer.payload[size:], np.uint8).reshape(height, width)
    return CleanFilm(UploadMetadata.from_json(answer.header["arrival"]), answer.payload[:size], preview)


def _decode(request: Request, parent: ParentProcess) -> None:
    """Send what a request asks for, or the reason why it is refused."""
    try:
        if request.clean:
            clean = clean_film(request.path, request.limits)
            header = {"arrival": clean.metadata.to_json(), "preview": clean.preview.shape}
            parent.send(header, clean.content, clean.preview.tobytes())
            return
        if request.preprocessing is None:
            film = read_film(request.path, request.limits)
        else:
            film = read_prepared(request.path, request.limits, request.preprocessing)
    except FilmError as refusal:
        parent.send({"refused": str(refusal)})
        return
    pixels = np.ascontiguousarray(film.pixels)
    header = {"facts": film.facts.to_json(), "shape": pixels.shape, "dtype": pixels.dtype.str}
    parent.send(header, pixels.data)


def main() -> None:
    """Run the decoder process."""
    import warnings

    import cv2
    from PIL import Image

    warnings.simplefilter("ignore")  # libraries' remarks on odd files would mix with the caller's own output
    Image.MAX_IMAGE_PIXELS = None  # our own limits hold in this process, also when they are set higher
    cv2.setNumThreads(1)  # one decoder uses one core
    parent = ParentProcess()
    with suppress(ModuleNotFoundError):  # Windows has no such limit
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    parent.send({"ready": True})
    while True:
        _decode(Request.from_json(parent.receive()), parent)


if __name__ == "__main__":
    main()
