"""Films are fetched and decoded ahead of the model that reads them, so that neither waits for the other."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from medgrape.config import FilmLimits, Preprocessing
from medgrape.data.decoder import Decoder, Request
from medgrape.data.film import Film, FilmError
from medgrape.engine.listing import ListedFilm
from medgrape.engine.storage import Fetched, is_url

_FETCHERS = 8
"""Storage answers late, so several films are asked for at once; no more are kept than are decoded ahead."""


class FilmsAhead:
    """One decoder process that works ahead, and some threads that fetch what lies elsewhere."""

    def __init__(self, limits: FilmLimits, preprocessing: Preprocessing, ahead: int) -> None:
        self._limits, self._preprocessing, self._ahead = limits, preprocessing, ahead
        self._decoder = Decoder()
        self._decoding = ThreadPoolExecutor(1, "decoding")
        self._fetching = ThreadPoolExecutor(_FETCHERS, "fetching")
        self._fetched: Fetched | None = None

    def close(self) -> None:
        """End the decoder, and leave no film behind."""
        self._fetching.shutdown(cancel_futures=True)
        self._decoding.shutdown(cancel_futures=True)
        self._decoder.close()
        if self._fetched is not None:
            self._fetched.close()

    def read(self, films: Iterable[ListedFilm]) -> Iterator[tuple[ListedFilm, Film | FilmError]]:
        """Every film as the model sees it, or why not, in the order asked for."""
        waiting = iter(films)
        under_way: deque[tuple[ListedFilm, Future[Film | FilmError]]] = deque()
        under_way.extend((film, self._begun(film)) for film in islice(waiting, self._ahead))
        while under_way:
            film, decoded = under_way.popleft()
            yield film, decoded.result()
            under_way.extend((film, self._begun(film)) for film in islice(waiting, 1))

    def _begun(self, film: ListedFilm) -> Future[Film | FilmError]:
        if not is_url(film.place):
            return self._decoding.submit(self._decoded, Path(film.place))
        if self._fetched is None:
            self._fetched = Fetched()
        copy = self._fetching.submit(self._fetched.fetch, film.place, self._limits)
        return self._decoding.submit(self._decoded_copy, copy)

    def _decoded_copy(self, copy: Future[Path]) -> Film | FilmError:
        try:
            path = copy.result()
        except FilmError as refusal:
            return refusal
        try:
            return self._decoded(path)
        finally:
            path.unlink(missing_ok=True)

    def _decoded(self, path: Path) -> Film | FilmError:
        try:
            return self._decoder.read(Request(path, self._limits, self._preprocessing))
        except FilmError as refusal:
            return FilmError(str(refusal).removeprefix(f"{path}: "))  # the row tells which film
