"""What a worker does, wherever it runs: some films in, one table out."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from medgrape.bulk.listing import ListedFilm
from medgrape.bulk.storage import Fetched, is_url
from medgrape.config import FilmLimits, Preprocessing
from medgrape.errors import UserError
from medgrape.explain.words import seen
from medgrape.files import sha256
from medgrape.films.decoder import Decoder, Request
from medgrape.films.film import Film, FilmError
from medgrape.geometry import PatchGrid, peak
from medgrape.runs.manifest import unseal, version_of

if TYPE_CHECKING:
    from medgrape.geometry import FilmSize

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


READ, REFUSED = "read", "refused"


@dataclass(frozen=True)
class Finding:
    """One concept on one film."""

    score: float
    x: float
    y: float
    seen: str


@dataclass(frozen=True)
class Sight:
    """What a model says of one film."""

    size: "FilmSize"
    probabilities: tuple[float, ...]
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Columns:
    """Whose columns: a model's classes and concepts."""

    classes: tuple[str, ...]
    concepts: tuple[str, ...]
    model: str
    """Its version."""

    @property
    def schema(self) -> pa.Schema:
        """The same for every part, also for one in which every film was refused."""
        fields = [
            pa.field("film", pa.string(), nullable=False), pa.field("status", pa.string(), nullable=False),
            pa.field("reason", pa.string()), pa.field("width", pa.int32()), pa.field("height", pa.int32()),
            pa.field("predicted", pa.string()),
            *(pa.field(f"probability_{name}", pa.float32()) for name in self.classes),
        ]  # fmt: skip
        for name in self.concepts:
            fields += [pa.field(f"{what}_{name}", pa.float32()) for what in ("score", "x", "y")]
            fields.append(pa.field(f"seen_{name}", pa.string()))
        return pa.schema(
            [*fields, pa.field("warnings", pa.list_(pa.string())), pa.field("model", pa.string(), nullable=False)]
        )

    def read(self, film: ListedFilm, sight: Sight) -> dict[str, Any]:
        """The row of a film that was read."""
        row: dict[str, Any] = {"film": printable(film.name), "status": READ, "model": self.model}
        row |= {"width": sight.size.width, "height": sight.size.height, "warnings": list(sight.warnings)}
        likeliest = max(range(len(self.classes)), key=sight.probabilities.__getitem__)
        row["predicted"] = self.classes[likeliest]
        row |= {f"probability_{name}": one for name, one in zip(self.classes, sight.probabilities, strict=True)}
        for name, found in zip(self.concepts, sight.findings, strict=True):
            row |= {f"{what}_{name}": getattr(found, what) for what in ("score", "x", "y", "seen")}
        return row

    def refused(self, film: ListedFilm, reason: str) -> dict[str, Any]:
        """The row of a film that could not be read."""
        told = {"film": printable(film.name), "status": REFUSED, "reason": printable(reason)}
        return told | {"warnings": [], "model": self.model}

    def table(self, rows: Sequence[dict[str, Any]]) -> pa.Table:
        """All rows of a part."""
        return pa.Table.from_pylist(list(rows), schema=self.schema)


def printable(text: str) -> str:
    """A file's name may hold bytes that are no text; they are shown as codes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


_BATCHES_AHEAD = 3
"""Films decoded ahead, in batches: one is being read, the next is ready, a third is on its way."""


@dataclass(frozen=True)
class Job:
    """With which model films are read, and how many at once."""

    model: Path
    """A run's folder or a file; absolute, for workers elsewhere."""
    version: str
    batch: int = 8
    threads: int = 1
    """For the model's arithmetic in one worker."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"model": str(self.model)}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> "Job":
        """The inverse of ``to_json``."""
        return cls(**told | {"model": Path(told["model"])})


def model_version(model: Path) -> str:
    """One short name for everything in a run, or for a model in one file; a run that is not whole is refused."""
    if model.is_file():
        return sha256(model)[:16]
    unseal(model)
    return version_of(model)


class FilmReader:
    """A model that reads films in batches while the next ones are decoded."""

    def __init__(self, job: Job) -> None:
        import torch

        from medgrape.reader import load

        torch.set_num_threads(job.threads)  # before the model is there: some runtimes ask once
        if model_version(job.model) != job.version:
            raise UserError(f"{job.model} is another model here than where the work is handed out.")
        self._run, self._batch = load(job.model).loaded.run, job.batch
        self._columns = Columns(self._run.classes, self._run.concepts.names, job.version)
        self._usual = [
            (float(absent), float(present))
            for absent, present in zip(self._run.usual.absent_peak, self._run.usual.present_peak, strict=True)
        ]
        config = self._run.config
        self._films = FilmsAhead(config.limits, config.preprocessing, _BATCHES_AHEAD * job.batch)

    def close(self) -> None:
        """End what decodes."""
        self._films.close()

    def read(self, films: Sequence[ListedFilm]) -> "pa.Table":
        """A row for each film, in the order asked for."""
        rows: dict[int, dict[str, Any]] = {}
        batch: list[tuple[int, ListedFilm, Film]] = []
        for number, (film, found) in enumerate(self._films.read(films)):
            if isinstance(found, FilmError):
                rows[number] = self._columns.refused(film, str(found))
                continue
            batch.append((number, film, found))
            if len(batch) == self._batch:
                rows.update(self._rows(batch))
                batch = []
        rows.update(self._rows(batch))
        return self._columns.table([rows[number] for number in range(len(films))])

    def refuse(self, films: Sequence[ListedFilm], reason: str) -> "pa.Table":
        """Rows of films that nobody should try again."""
        return self._columns.table([self._columns.refused(film, reason) for film in films])

    def _rows(self, batch: Sequence[tuple[int, ListedFilm, Film]]) -> Iterator[tuple[int, dict[str, Any]]]:
        if not batch:
            return
        for (number, film, _), sight in zip(batch, self._sights([film for _, _, film in batch]), strict=True):
            yield number, self._columns.read(film, sight)

    def _sights(self, films: Sequence[Film]) -> Iterator[Sight]:
        import torch

        greys = torch.from_numpy(np.stack([film.pixels for film in films])).unsqueeze(1).float().div_(255.0)
        with torch.inference_mode():
            prediction, means = self._run.model.look(greys)
        told = zip(films, prediction.probabilities.tolist(), means.double().numpy(), strict=True)
        for film, probabilities, maps in told:
            yield Sight(film.facts.size, tuple(probabilities), tuple(self._found(film, maps)), film.facts.warnings)

    def _found(self, film: Film, maps: np.ndarray) -> Iterator[Finding]:
        grid = PatchGrid(film.facts.size, maps.shape[-2], maps.shape[-1])
        for one, (absent, present) in zip(maps, self._usual, strict=True):
            score = float(one.max())
            yield Finding(score, *peak(one, grid), seen(score, absent, present))
