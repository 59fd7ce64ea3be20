"""What an export is worth beside the run that it was made from, on the same films."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from medgrape.datasets.dataset import Dataset
from medgrape.evaluation.classification import classify, detect
from medgrape.evaluation.evaluate import read_split
from medgrape.evaluation.localisation import localise
from medgrape.evaluation.readings import Readings
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import LoadedRun


@dataclass(frozen=True)
class Compared:
    """One figure of both."""

    name: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """Below 0: the export is worse."""
        return self.after - self.before


@dataclass(frozen=True)
class ExportLoss:
    """All figures of both, and how often they give the same answer."""

    films: int
    figures: tuple[Compared, ...]
    same_answer: float

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        figures = [asdict(one) | {"change": one.change} for one in self.figures]
        return {"films": self.films, "same_answer": self.same_answer, "figures": figures}

    def named(self, name: str) -> Compared:
        """The figure of that name."""
        return next(one for one in self.figures if one.name == name)


def loss_of_export(
    run: LoadedRun, export: LoadedRun, data: Path, track: Track = quietly, *, split: str = "val"
) -> ExportLoss:
    """Read the films of a split with both. Validation films by default: test films are for the final word."""
    dataset = Dataset.load(data)
    before, after = (read_split(one, dataset, data, split, track).readings for one in (run, export))
    theirs = dict(_figures(after))
    figures = tuple(Compared(name, value, theirs[name]) for name, value in _figures(before))
    same = before.probabilities.argmax(axis=1) == after.probabilities.argmax(axis=1)
    return ExportLoss(len(before.films), figures, float(same.mean()))


def _figures(readings: Readings) -> Iterator[tuple[str, float]]:
    """Those that the films have: without a box, nobody can point."""
    yield "macro-F1", classify(readings).macro_f1
    detected = detect(readings).mean_auc
    if detected is not None:
        yield "mean AUC of the findings", detected
    pointing = localise(readings).per_pair
    if pointing is not None:
        yield "pointing game, mean map", pointing.mean.share
        yield "pointing game, max map", pointing.maximum.share
