"""Quality of an exported model compared with the run it was made from, on the same films."""

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
class FigureChange:
    """One figure of the run and of its export."""

    name: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """Difference; negative if the export is worse."""
        return self.after - self.before


@dataclass(frozen=True)
class ExportComparison:
    """All figures of the run and of its export, and the share of films with the same answer."""

    films: int
    figures: tuple[FigureChange, ...]
    same_answer: float

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        figures = [asdict(figure) | {"change": figure.change} for figure in self.figures]
        return {"films": self.films, "same_answer": self.same_answer, "figures": figures}

    def named(self, name: str) -> FigureChange:
        """Return the figure of that name."""
        return next(figure for figure in self.figures if figure.name == name)


def compare_export(
    run: LoadedRun, export: LoadedRun, data: Path, track: Track = quietly, *, split: str = "val"
) -> ExportComparison:
    """Read the films of a split with both models; validation films by default, to spare the test films."""
    dataset = Dataset.load(data)
    before, after = (read_split(loaded, dataset, data, split, track).readings for loaded in (run, export))
    of_export = dict(_figures(after))
    figures = tuple(FigureChange(name, value, of_export[name]) for name, value in _figures(before))
    same = before.probabilities.argmax(axis=1) == after.probabilities.argmax(axis=1)
    return ExportComparison(len(before.films), figures, float(same.mean()))


def _figures(readings: Readings) -> Iterator[tuple[str, float]]:
    """Yield the figures that are defined on these films."""
    yield "macro-F1", classify(readings).macro_f1
    mean_auc = detect(readings).mean_auc
    if mean_auc is not None:
        yield "mean AUC of the findings", mean_auc
    pointing = localise(readings).per_pair
    if pointing is not None:
        yield "pointing game, mean map", pointing.mean.share
        yield "pointing game, max map", pointing.maximum.share
