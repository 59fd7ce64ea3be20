"""Bulk reading, decoding and all, against the bare forward pass of the same model on as many cores.

Both sides are processes that are there already: what is timed is reading, not starting. Ours lists the films, plans,
decodes, reads and writes Parquet; theirs only ever runs the model, on films that lie in memory.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from benchmarks import ROOT
from benchmarks.ratio import Ratio, race
from benchmarks.untrained import untrained_reader
from medgrape.bulk.film_reader import WorkerConfig
from medgrape.bulk.local import LocalWorkerSlot
from medgrape.bulk.run import BulkRequest, WorkerSlot, read_in_bulk
from medgrape.concepts import ConceptSet
from medgrape.config import parse_config
from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset
from medgrape.films.dicom.writer import Person, write_dicom
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import draw
from medgrape.runs.export import Calibration, export_onnx

TARGET = 1 / 0.9
"""Most time that bulk reading may take, in bare forward passes of the same films."""
BATCH = 8
_DRAWN = 16


@dataclass(frozen=True)
class Kind:
    """The kind of films that are read."""

    format: str
    """png, jpg or dcm."""
    side: int

    @property
    def title(self) -> str:
        """Return the name of the row."""
        return f"{ {'png': 'PNG', 'jpg': 'JPEG', 'dcm': 'DICOM'}[self.format] }, {self.side} px"


SMALL = (Kind("png", 256), Kind("jpg", 224))
LARGE = (Kind("png", 512), Kind("dcm", 2048))
"""Kinds without a target: decoding them takes its share of the same cores."""


def bench_bulk(
    rounds: int = 5,
    model: Path | None = None,
    kinds: Sequence[Kind] = SMALL + LARGE,
    films: int = 256,
    workers: int = 2,
) -> Iterator[Ratio]:
    """Yield the seconds for some films of each kind; without a model, with the fastest: a ResNet-50 in int8."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        run = model or _fastest(folder)
        bare = stack.enter_context(_bare_forward(run, films, workers))
        engine = stack.enter_context(_KeptEngine(workers))
        for kind in kinds:
            place = folder / kind.title
            draw_films(place, kind, films)
            ours = partial(_in_bulk, place, run, engine, (folder / f"{kind.title} read {n}" for n in count()))
            what = f"{films} films in bulk, {kind.title}, {workers} process{'es' if workers > 1 else ''}"
            yield Ratio(what, "the forward pass alone", *race(ours, bare, rounds), TARGET)


def _fastest(folder: Path) -> Path:
    """Write an export of the paper's sizes with random weights: as fast as a trained one."""
    data, out = folder / "calibration", folder / "model.onnx"
    draw_dataset(PhantomOptions(films=40), data, SplitRule(test=0.1))
    config = parse_config({"backbone": {"name": "resnet-50", "pretrained": False}})
    export_onnx(untrained_reader(config, ConceptSet.built_in("tbx11k")).loaded, out, Calibration(data, 16))
    return out


def _in_bulk(place: Path, run: Path, engine: "_KeptEngine", outs: Iterator[Path]) -> None:
    summary = read_in_bulk(BulkRequest((str(place),), run, next(outs), BATCH), engine)
    if summary.all.refused:
        raise RuntimeError(f"{summary.all.refused} drawn films were refused")


class _KeptWorkerSlot(LocalWorkerSlot):
    """A worker slot whose process is kept for the next reading."""

    def launch(self) -> None:
        """Start the process, if it does not run yet."""
        if self.process_id is None:
            super().launch()

    def close(self) -> None:
        """Keep the process."""

    def end(self) -> None:
        """End the process."""
        super().close()


class _KeptEngine:
    """The local engine with workers that have started already."""

    name = "local"

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._slots = list[_KeptWorkerSlot]()

    def __enter__(self) -> "_KeptEngine":
        return self

    def __exit__(self, *_: object) -> None:
        for slot in self._slots:
            slot.end()

    def slots(self, config: WorkerConfig) -> list[WorkerSlot]:
        """Return the same workers for every reading: there is one model."""
        if not self._slots:
            self._slots = [_KeptWorkerSlot(config) for _ in range(self.workers)]
        return list(self._slots)


def draw_films(folder: Path, kind: Kind, films: int) -> None:
    """Write films into a new folder: a few drawn chests, each moved a little for every further film."""
    folder.mkdir()
    chests = [draw(sitting, 224).pixels for sitting in plan("tb", _DRAWN, seed=0)]
    for number in range(films):
        moved = np.roll(chests[number % _DRAWN], 3 * (number // _DRAWN), axis=1)
        pixels = cv2.resize(moved, (kind.side, kind.side), interpolation=cv2.INTER_CUBIC)
        path = folder / f"{number:05d}.{kind.format}"
        if kind.format == "dcm":
            write_dicom(path, pixels, Person("bench", "F", 50), str(number), "PA")
        else:
            Image.fromarray(pixels).save(path)


@contextmanager
def _bare_forward(run: Path, films: int, workers: int) -> Iterator[Callable[[], None]]:
    """Processes that run the model once for every film, each on one core."""
    command = [sys.executable, "-m", "benchmarks.bulk_forward", str(run.resolve()), str(BATCH)]
    pipes = {"cwd": ROOT, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    running = [subprocess.Popen(command, **pipes) for _ in range(workers)]  # type: ignore[call-overload] # noqa: S603

    def forward() -> None:
        for number, process in enumerate(running):
            process.stdin.write(f"{films // workers + (number < films % workers)}\n")
        for process in running:
            if process.stdout.readline() != "done\n":
                raise RuntimeError("the process that runs the model alone has failed")

    try:
        yield forward
    finally:
        for process in running:
            process.stdin.close()
            process.stdout.close()
            process.wait()
