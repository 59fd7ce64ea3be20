"""The process whose memory is measured: it evaluates a run on a split and prints its peak."""

import sys
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from medgrape.datasets.dataset import Dataset
from medgrape.evaluation.evaluate import BATCH, read_split
from medgrape.evaluation.report import evaluate_readings
from medgrape.model.evidence import similarity
from medgrape.progress import quietly
from medgrape.runs.checkpoint import LoadedRun, load_run


def main() -> None:
    """Evaluate ``RUN DATA batch|all|keep``: a single batch, the whole split, or the whole split with all maps kept."""
    run, data, how = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    loaded, dataset = load_run(run), Dataset.load(data)
    if how == "batch":
        dataset = _first(dataset, BATCH)
    kept: list[Tensor] = []
    if how == "keep":
        _keep_maps(loaded, kept)
    read = read_split(loaded, dataset, data, "test", quietly)
    evaluate_readings(read.readings, loaded.run.model.atlas.prototypes.detach(), {}, run=run.name)
    sys.stdout.write(f"{_peak():.3f}\n")


def _first(dataset: Dataset, count: int) -> Dataset:
    """Return the same data set with this number of test films."""
    test = {film.id for film in dataset.in_split("test")[:count]}
    films = tuple(film for film in dataset.films if film.split != "test" or film.id in test)
    known = {film.id for film in films}
    return replace(dataset, films=films, boxes=tuple(box for box in dataset.boxes if box.film in known))


def _keep_maps(loaded: LoadedRun, kept: list[Tensor]) -> None:
    """Make the model keep the similarity of every patch of every film to every prototype."""
    model, plain = loaded.run.grape, loaded.run.grape.projector.patches

    def keeping(features: Tensor) -> Tensor:
        patches = plain(features)
        with torch.no_grad():
            kept.extend(similarity(film, model.atlas.prototypes) for film in patches)
        return patches

    model.projector.patches = keeping  # type: ignore[method-assign]


def _peak() -> float:
    """Return the peak memory. (``getrusage`` would include that of the parent.)"""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) / 1024


if __name__ == "__main__":
    main()
