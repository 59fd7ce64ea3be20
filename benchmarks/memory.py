"""The memory of an evaluation beyond its model, against keeping every similarity map: peaks of real processes."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import ROOT
from benchmarks.ratio import Measured, Ratio
from benchmarks.untrained import untrained_run
from medgrape.config import parse_config
from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset
from medgrape.errors import UserError
from medgrape.files import whole_folder

TARGET = 1 / 10
FILMS, DRAWN, SIDE = 640, 64, 112
BACKBONE = {"name": "resnet-18", "pretrained": False, "leave_off": 2}
"""A fast backbone with maps of 14 x 14 that needs little memory itself."""


def bench_memory(rounds: int = 1, films: int = FILMS) -> Iterator[Ratio]:
    """In each round three processes: one reads a single batch, which is what everybody needs; one all films; one all
    films and keeps their maps. What counts is by how much the other two exceed the first.
    """
    if not Path("/proc/self/status").is_file():
        raise UserError("The memory benchmark reads peaks from /proc, which only Linux has.")
    ours, theirs = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as name:
        data, run = Path(name) / "films", Path(name) / "run"
        config = parse_config({"backbone": BACKBONE, "preprocessing": {"size": SIDE}})
        dataset = draw_dataset(PhantomOptions("nih", films, DRAWN), data, SplitRule(test=0.8))
        with whole_folder(run) as draft:
            model = untrained_run(config, dataset.concepts, dataset.classes)
            model.save(draft, {"name": "none", "checksum": "none"})
        _peak(run, data, "all")  # decodes the films
        for _ in range(rounds):
            least, plain, naive = (_peak(run, data, how) for how in ("batch", "all", "keep"))
            ours.append(plain - least)
            theirs.append(naive - least)
        count, concepts = len(dataset.in_split("test")), len(dataset.concepts)
    what = f"evaluating {count} films, K = {concepts}, M = {config.model.prototypes}, beyond the model"
    yield Ratio(what, "keeping all maps", Measured(ours), Measured(theirs), TARGET, unit="MB")


def _peak(run: Path, data: Path, how: str) -> float:
    """Return the peak memory of a process in megabytes."""
    command = [sys.executable, "-m", "benchmarks.memory_process", str(run), str(data), how]
    ended = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603
    return float(ended.stdout)
