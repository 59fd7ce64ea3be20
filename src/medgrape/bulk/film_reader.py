"""Reads films in batches with one model, as every worker does: films in, one table out."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medgrape.bulk.listing import DownloadFolder, ListedFilm, is_url
from medgrape.config import FilmLimits, Preprocessing
from medgrape.errors import UserError, escape_undecodable
from medgrape.explain.words import describe_score
from medgrape.files import sha256
from medgrape.films.decoder import Decoder, Request
from medgrape.films.film import Film, FilmError
from medgrape.geometry import FilmSize, PatchGrid, peak
from medgrape.records import Record
from medgrape.runs.manifest import unseal, version_of

if TYPE_CHECKING:
    import pyarrow as pa

READ, REFUSED = "read", "refused"
_DOWNLOADS = 8  # films that are downloaded at once, because storage answers slowly
_BATCHES_AHEAD = 3
"""Films that are decoded ahead, in batches: one is being read, the next is ready, a third is on its way."""


class FilmPrefetcher:
    """One decoder process that works ahead, and threads that download films from storage."""

    def __init__(self, limits: FilmLimits, preprocessing: Preprocessing, ahead: int) -> None:
        self._limits, self._preprocessing, self._ahead = limits, preprocessing, ahead
        self._decoder = Decoder()
        self._decoding = ThreadPoolExecutor(1, "decoding")
        self._downloading = ThreadPoolExecutor(_DOWNLOADS, "downloading")
        self._downloads: DownloadFolder | None = None

    def close(self) -> None:
        """End the decoder and delete downloaded films."""
        self._downloading.shutdown(cancel_futures=True)
        self._decoding.shutdown(cancel_futures=True)
        self._decoder.close()
        if self._downloads is not None:
            self._downloads.close()

    def read(self, films: Iterable[ListedFilm]) -> Iterator[tuple[ListedFilm, Film | FilmError]]:
        """Yield every film as the model sees it, or why it is refused, in the order of the request."""
        waiting = iter(films)
        under_way = deque((film, self._submit(film)) for film in islice(waiting, self._ahead))
        while under_way:
            film, decoded = under_way.popleft()
            yield film, decoded.result()
            under_way.extend((film, self._submit(film)) for film in islice(waiting, 1))

    def _submit(self, film: ListedFilm) -> Future[Film | FilmError]:
        if not is_url(film.place):
            return self._decoding.submit(self._decode, Path(film.place))
        if self._downloads is None:
            self._downloads = DownloadFolder()
        download = self._downloading.submit(self._downloads.fetch, film.place, self._limits)
        return self._decoding.submit(self._decode, download)

    def _decode(self, source: Path | Future[Path]) -> Film | FilmError:
        """Decode a film on this disk, or one that is being downloaded, and delete the download."""
        path = None
        try:
            path = source.result() if isinstance(source, Future) else source
            return self._decoder.read(Request(path, self._limits, self._preprocessing))
        except FilmError as refusal:
            return FilmError(str(refusal).removeprefix(f"{path}: "))  # the row names the film
        finally:
            if isinstance(source, Future) and path is not None:
                path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Finding:
    """Score and strongest point of one concept on one film."""

    score: float
    x: float
    y: float
    seen: str


@dataclass(frozen=True)
class FilmReading:
    """What a model sees on one film."""

    size: FilmSize
    probabilities: tuple[float, ...]
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Columns:
    """Columns of the table, which follow from the model's classes and concepts."""

    classes: tuple[str, ...]
    concepts: tuple[str, ...]
    model: str  # version of the model

    @property
    def schema(self) -> "pa.Schema":
        """The same for every part, even if all its films were refused."""
        import pyarrow as pa

        types = {"film": pa.string(), "status": pa.string(), "reason": pa.string(), "width": pa.int32()}
        types |= {"height": pa.int32(), "predicted": pa.string()}
        types |= {f"probability_{name}": pa.float32() for name in self.classes}
        for name in self.concepts:
            types |= {f"{what}_{name}": pa.float32() for what in ("score", "x", "y")} | {f"seen_{name}": pa.string()}
        types |= {"warnings": pa.list_(pa.string()), "model": pa.string()}
        required = ("film", "status", "model")
        return pa.schema([pa.field(name, kind, nullable=name not in required) for name, kind in types.items()])

    def read(self, film: ListedFilm, reading: FilmReading) -> dict[str, Any]:
        """Return the row of a film that was read."""
        row: dict[str, Any] = {"film": escape_undecodable(film.name), "status": READ, "model": self.model}
        row |= {"width": reading.size.width, "height": reading.size.height, "warnings": list(reading.warnings)}
        row["predicted"] = self.classes[int(np.argmax(reading.probabilities))]
        row |= {f"probability_{name}": share for name, share in zip(self.classes, reading.probabilities, strict=True)}
        for name, finding in zip(self.concepts, reading.findings, strict=True):
            row |= {f"{what}_{name}": getattr(finding, what) for what in ("score", "x", "y", "seen")}
        return row

    def refused(self, film: ListedFilm, reason: str) -> dict[str, Any]:
        """Return the row of a film that could not be read."""
        name, reason = escape_undecodable(film.name), escape_undecodable(reason)
        return {"film": name, "status": REFUSED, "reason": reason, "warnings": [], "model": self.model}

    def table(self, rows: Sequence[dict[str, Any]]) -> "pa.Table":
        """Return all rows of a part as a table."""
        import pyarrow as pa

        return pa.Table.from_pylist(list(rows), schema=self.schema)


class WorkerConfig(Record):
    """The model with which a worker reads films, and how many films at once."""

    model: Path  # a run or a model in one file; an absolute path, because workers run elsewhere
    version: str
    batch: int = 8
    threads: int = 1  # threads of the model's arithmetic in one worker


def model_version(model: Path) -> str:
    """Return the version of a run, or of a model in one file; an incomplete run is an error."""
    if model.is_file():
        return sha256(model)[:16]
    unseal(model)
    return version_of(model)


class FilmReader:
    """A model that reads films in batches while the next ones are decoded."""

    def __init__(self, config: WorkerConfig) -> None:
        import torch

        from medgrape.reader import load

        torch.set_num_threads(config.threads)  # before the model is loaded: some runtimes ask only then
        if model_version(config.model) != config.version:
            raise UserError(f"{config.model} is another model here than on the machine that distributes the work.")
        self._run, self._batch = load(config.model).loaded.run, config.batch
        self._columns = Columns(self._run.classes, self._run.concepts.names, config.version)
        scores = self._run.reference_scores
        self._reference_peaks = list(zip(scores.absent_peak.tolist(), scores.present_peak.tolist(), strict=True))
        limits, preprocessing = self._run.config.limits, self._run.config.preprocessing
        self._films = FilmPrefetcher(limits, preprocessing, _BATCHES_AHEAD * config.batch)

    def close(self) -> None:
        """End the decoder."""
        self._films.close()

    def read(self, films: Sequence[ListedFilm], refused: str | None = None) -> "pa.Table":
        """Return a row for each film, in the order of the request; all are refused with the reason ``refused``."""
        if refused is not None:
            return self._columns.table([self._columns.refused(film, refused) for film in films])
        rows: dict[int, dict[str, Any]] = {}
        batch: dict[int, tuple[ListedFilm, Film]] = {}
        for number, (listed, film) in enumerate(self._films.read(films)):
            if isinstance(film, FilmError):
                rows[number] = self._columns.refused(listed, str(film))
            else:
                batch[number] = listed, film
            if batch and (len(batch) == self._batch or number == len(films) - 1):
                rows |= zip(batch, self._read_batch(list(batch.values())), strict=True)
                batch = {}
        return self._columns.table([row for _, row in sorted(rows.items())])

    def _read_batch(self, batch: Sequence[tuple[ListedFilm, Film]]) -> Iterator[dict[str, Any]]:
        import torch

        greys = torch.from_numpy(np.stack([film.pixels for _, film in batch])).unsqueeze(1).float().div_(255.0)
        with torch.inference_mode():
            prediction, means = self._run.model.predict_with_mean_maps(greys)
        outputs = zip(batch, prediction.probabilities.tolist(), means.double().numpy(), strict=True)
        for (listed, film), probabilities, maps in outputs:
            grid, facts = PatchGrid(film.facts.size, maps.shape[-2], maps.shape[-1]), film.facts
            findings = (
                Finding(float(mean.max()), *peak(mean, grid), describe_score(float(mean.max()), absent, present))
                for mean, (absent, present) in zip(maps, self._reference_peaks, strict=True)
            )
            reading = FilmReading(facts.size, tuple(probabilities), tuple(findings), facts.warnings)
            yield self._columns.read(listed, reading)
