"""What a worker does, wherever it runs: some films in, one table out."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medgrape.data.files import sha256
from medgrape.data.film import Film, FilmError
from medgrape.engine.ahead import FilmsAhead
from medgrape.engine.listing import ListedFilm
from medgrape.engine.table import Columns, Finding, Sight
from medgrape.errors import UserError
from medgrape.explain.words import seen
from medgrape.geometry import PatchGrid, peak
from medgrape.model.manifest import unseal, version_of

if TYPE_CHECKING:  # whoever hands out work needs no torch
    import pyarrow as pa

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

        from medgrape.feedback.reader import load

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
