"""Films are decoded in another process, which a broken file may kill without harm.

The two processes speak over pipes: a line of JSON with the request, a line of JSON with the answer, then the raw
pixels. Nothing is pickled, so that a decoder that a hostile file has taken over cannot take over its caller as well.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from medgrape.config import FilmLimits, Preprocessing
from medgrape.errors import UserError
from medgrape.films.anonymise import Arrival, CleanFilm, clean_film
from medgrape.films.film import Film, FilmError, FilmFacts
from medgrape.films.reading import read_film, read_prepared


class Watchdog:
    """One thread that sleeps until the time is up of whatever was begun last; where nothing is, it goes away."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._change = threading.Condition()
        self._watched: tuple[float, subprocess.Popen[bytes]] | None = None
        self._awake = False

    @contextmanager
    def over(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """The process is killed if the block takes longer than it may."""
        with self._change:
            self._watched = time.monotonic() + self._seconds, process
            if not self._awake:
                self._awake = True
                threading.Thread(target=self._watch, name="watchdog", daemon=True).start()
        try:
            yield
        finally:
            with self._change:
                self._watched = None

    def close(self) -> None:
        """Let the thread go."""
        with self._change:
            self._watched = None
            self._change.notify_all()

    def _watch(self) -> None:
        with self._change:
            while self._watched is not None:
                until, process = self._watched
                left = until - time.monotonic()
                if left <= 0:
                    process.kill()
                    self._watched = None
                else:
                    self._change.wait(left)
            self._awake = False


T = TypeVar("T")
_READY = b"ready\n"
MEMORY_LIMIT = 4 * 2**30
"""Bytes of address space that a decoder may take."""


class DecoderLostError(FilmError):
    """The process that decodes died over a film, or took too long: the film is damaged, or this machine in distress."""


@dataclass(frozen=True)
class Request:
    """A film to read, whole or as the model sees it."""

    path: Path
    limits: FilmLimits
    preprocessing: Preprocessing | None = None
    clean: bool = False
    """Whether it is to be kept, and so must come without what names a person."""

    def to_line(self) -> bytes:
        """One line of JSON."""
        size = None if self.preprocessing is None else self.preprocessing.model_dump()
        told = {"path": os.fspath(self.path), "limits": self.limits.model_dump(), "preprocessing": size}
        return json.dumps(told | {"clean": self.clean}).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Request":
        """The inverse of ``to_line``."""
        told = json.loads(line)
        size = None if told["preprocessing"] is None else Preprocessing(**told["preprocessing"])
        return cls(Path(told["path"]), FilmLimits(**told["limits"]), size, told["clean"])


class Decoder:
    """One process that reads films; it is started anew when a film kills it."""

    def __init__(self, seconds: float = 60.0) -> None:
        self._watchdog = Watchdog(seconds)
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False

    def __enter__(self) -> "Decoder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def process_id(self) -> int:
        """Of the process that is reading."""
        return self._running().pid

    def read(self, request: Request) -> Film:
        """The film, or a ``FilmError`` that names the file and says why not."""
        return self._asked(request, _film)

    def clean(self, path: Path, limits: FilmLimits) -> CleanFilm:
        """The film as it may be kept; refused like any other."""
        return self._asked(Request(path, limits, clean=True), _clean_film)

    def _asked(self, request: Request, understood: Callable[[dict[str, Any], IO[bytes]], T]) -> T:
        process = self._told(request)
        try:
            with self._watchdog.over(process):
                return _answered(process, understood)
        except FilmError:
            raise
        except Exception:  # a hostile film may make it say anything
            self.close()
            raise DecoderLostError(f"{request.path}: it broke the decoder or took too long; it is damaged.") from None

    def _told(self, request: Request) -> subprocess.Popen[bytes]:
        """The process, once it has the request; one that died since the last film is not this film's fault."""
        try:
            return _sent(self._running(), request)
        except BrokenPipeError:
            self.close()
            return _sent(self._running(), request)

    def close(self) -> None:
        """End the process."""
        self._watchdog.close()
        if self._process is None:
            return
        self._process.kill()
        self._process.communicate()
        self._process = None

    def start(self) -> None:
        """Let the process start while something else is done; reading starts it too, and then waits for it."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            self._process, self._ready = _started(), False

    def _running(self) -> subprocess.Popen[bytes]:
        self.start()
        if self._process is not None and not self._ready:
            self._ready = self._process.stdout is not None and self._process.stdout.readline() == _READY
        if self._process is None or not self._ready:
            self.close()
            raise UserError(f"The process that decodes films cannot start; see what {' '.join(_command())} prints.")
        return self._process


class DecoderPool:
    """Several decoders that read films side by side."""

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
        """Every film or the reason why not, in the order asked for, a few films ahead."""
        waiting = iter(requests)
        ahead: deque[Future[Film | FilmError]] = deque()
        ahead.extend(self._threads.submit(self._read, request) for request in islice(waiting, 4 * self._count))
        while ahead:
            yield ahead.popleft().result()
            ahead.extend(self._threads.submit(self._read, request) for request in islice(waiting, 1))

    def _read(self, request: Request) -> Film | FilmError:
        if not hasattr(self._local, "decoder"):
            self._local.decoder = Decoder()
            self._decoders.append(self._local.decoder)
        try:
            return self._local.decoder.read(request)  # type: ignore[no-any-return]  # threading.local is untyped
        except FilmError as refusal:
            return refusal


def _command() -> list[str]:
    """-P: nothing that lies in the current folder may pass for one of our modules."""
    return [sys.executable, "-P", "-m", "medgrape.films.decoder"]


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        _command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if not name.startswith("MEDGRAPE_")},
        stderr=subprocess.DEVNULL,  # codecs grumble about broken files in words that help nobody
    )


def _sent(process: subprocess.Popen[bytes], request: Request) -> subprocess.Popen[bytes]:
    if process.stdin is None:
        raise BrokenPipeError
    process.stdin.write(request.to_line())
    process.stdin.flush()
    return process


def _answered(process: subprocess.Popen[bytes], understood: Callable[[dict[str, Any], IO[bytes]], T]) -> T:
    if process.stdout is None:
        raise EOFError
    answer = json.loads(process.stdout.readline() or b"")
    if "refused" in answer:
        raise FilmError(answer["refused"])
    return understood(answer, process.stdout)


def _film(answer: dict[str, Any], pixels: IO[bytes]) -> Film:
    kind = np.dtype(answer["dtype"])
    raw = _exactly(pixels, int(np.prod(answer["shape"])) * kind.itemsize)
    return Film(FilmFacts.from_json(answer["facts"]), np.frombuffer(raw, kind).reshape(answer["shape"]))


def _clean_film(answer: dict[str, Any], rest: IO[bytes]) -> CleanFilm:
    content, (high, wide) = _exactly(rest, answer["bytes"]), answer["preview"]
    small = np.frombuffer(_exactly(rest, high * wide), np.uint8).reshape(high, wide)
    return CleanFilm(Arrival.from_json(answer["arrival"]), content, small)


def _exactly(source: IO[bytes], count: int) -> bytes:
    raw = source.read(count) if 0 <= count <= MEMORY_LIMIT else b""
    if len(raw) != count:
        raise EOFError
    return raw


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until the caller hangs up."""
    for line in requests:
        header, pixels = _answer(Request.from_line(line))
        answers.write(json.dumps(header).encode() + b"\n")
        answers.write(pixels)
        answers.flush()


def _answer(request: Request) -> tuple[dict[str, Any], bytes | memoryview]:
    try:
        return _cleaned(request) if request.clean else _decoded(request)
    except FilmError as refusal:
        return {"refused": str(refusal)}, b""


def _decoded(request: Request) -> tuple[dict[str, Any], memoryview]:
    film = _read(request)
    pixels = np.ascontiguousarray(film.pixels)
    header = {"facts": film.facts.to_json(), "shape": pixels.shape, "dtype": pixels.dtype.str}
    return header, pixels.data.cast("B")


def _cleaned(request: Request) -> tuple[dict[str, Any], bytes]:
    clean = clean_film(request.path, request.limits)
    header = {"arrival": clean.arrival.to_json(), "bytes": len(clean.content), "preview": clean.preview.shape}
    return header, clean.content + clean.preview.tobytes()


def _read(request: Request) -> Film:
    if request.preprocessing is None:
        return read_film(request.path, request.limits)
    return read_prepared(request.path, request.limits, request.preprocessing)


def _limit_memory() -> None:
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> None:
    """The decoder process itself."""
    import warnings

    import cv2
    from PIL import Image

    warnings.simplefilter("ignore")  # libraries' remarks on odd files would mix with the caller's own output
    Image.MAX_IMAGE_PIXELS = None  # our own limits hold in this process, also when they are set higher
    cv2.setNumThreads(1)  # one decoder is one core's worth of work
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not mix with the answers
    _limit_memory()
    answers.write(_READY)
    answers.flush()
    _serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
