"""The cost of one film on this machine, part by part, from which plans for many films are made."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.bulk import Kind, draw_films
from benchmarks.cores import one_core
from benchmarks.ratio import clocked
from benchmarks.training import FILMS, stage_epochs
from benchmarks.untrained import untrained_reader
from medgrape.bulk.film_reader import Columns, FilmReading, Finding
from medgrape.bulk.listing import ListedFilm
from medgrape.bulk.results import LARGEST_PART, Part, Parts, Plan
from medgrape.concepts import ConceptSet
from medgrape.config import Config, parse_config
from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset
from medgrape.films.reading import read_prepared
from medgrape.geometry import FilmSize
from medgrape.model.grape import ReadingModel
from medgrape.runs.checkpoint import LoadedRun
from medgrape.runs.export import Calibration, export_onnx

BACKBONE, VOCABULARY, BATCH = "resnet-50", "nih", 8
ARCHIVED, PUBLISHED = Kind("dcm", 2048), Kind("png", 1024)
"""Films as hospitals store them, and as NIH publishes them."""
_ROUNDS, _DECODED = 5, 12


@dataclass(frozen=True)
class Costs:
    """Seconds for one film on one core, unless stated otherwise."""

    cores: int
    forward: dict[str, float]
    """By runtime: torch, fp32, int8. ResNet-50, 224 pixels, 14 concepts, eight films at once."""
    decoding: dict[str, float]
    """By film format."""
    learning: float
    """A step of stage 1, forwards and backwards, on all cores together."""
    stages_3_and_4: float
    """An epoch of stages 3 and 4, on all cores together."""
    handing_out: float
    """Time of the driver for one part of bulk reading: checking its rows, writing and renaming the file."""
    part: int
    """Films in a part."""
    row_bytes: float
    """Bytes of a film in the Parquet table."""
    cached_bytes: int
    """Bytes of a decoded film in the cache."""
    score_bytes: int
    """Bytes of a film's scores, which stage 4 trains on."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def measure_costs() -> Costs:
    """Measure all costs, which takes a minute or two."""
    config = parse_config({"backbone": {"name": BACKBONE, "pretrained": False}})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        loaded = untrained_reader(config, ConceptSet.built_in(VOCABULARY)).loaded
        handing_out, row_bytes = _driver(folder, loaded)
        return Costs(
            cores=torch.get_num_threads(),
            forward=dict(_forward(loaded, folder)),
            decoding=dict(_decoding(config, folder)),
            learning=_learning(loaded, config.preprocessing.size),
            stages_3_and_4=_stages(folder),
            handing_out=handing_out,
            part=LARGEST_PART,
            row_bytes=row_bytes,
            cached_bytes=config.preprocessing.size**2,
            score_bytes=4 * len(loaded.run.concepts) * config.model.prototypes,
        )


def _median(work: Callable[[], object]) -> float:
    work()
    return float(np.median([clocked(work) for _ in range(_ROUNDS)]))


def _forward(loaded: LoadedRun, folder: Path) -> Iterator[tuple[str, float]]:
    data, side = folder / "films", loaded.run.config.preprocessing.size
    draw_dataset(PhantomOptions(films=40, profile="nih"), data, SplitRule(test=0.1))
    films = torch.rand(BATCH, 1, side, side)

    def seconds(model: ReadingModel) -> float:
        with torch.no_grad():
            return _median(lambda: model.predict_with_mean_maps(films)) / BATCH

    with one_core():
        yield "torch", seconds(loaded.run.model)
        yield "fp32", seconds(export_onnx(loaded, folder / "fp32.onnx").run.model)
        yield "int8", seconds(export_onnx(loaded, folder / "int8.onnx", Calibration(data, 16)).run.model)


def _decoding(config: Config, folder: Path) -> Iterator[tuple[str, float]]:
    for kind in (Kind("jpg", 256), PUBLISHED, ARCHIVED):
        place = folder / kind.title
        draw_films(place, kind, _DECODED)
        paths = sorted(place.iterdir())

        def work(paths: list[Path] = paths) -> None:
            for path in paths:
                read_prepared(path, config.limits, config.preprocessing)

        yield kind.title, _median(work) / _DECODED


def _learning(loaded: LoadedRun, side: int) -> float:
    """Time a step of stage 1 without the optimiser, which takes little."""
    model, films = loaded.run.grape, torch.rand(BATCH, 1, side, side)
    labels = torch.zeros(BATCH, len(loaded.run.concepts))
    model.backbone.requires_grad_(True).train()

    def step() -> None:
        logits = model.cam(model.backbone(films)).mean(dim=(-2, -1))
        F.binary_cross_entropy_with_logits(logits, labels).backward()  # type: ignore[no-untyped-call]

    return _median(step) / BATCH


def _stages(folder: Path) -> float:
    _, prototypes, head = stage_epochs(parse_config({}), folder / "stages")
    return _median(lambda: (prototypes(), head())) / FILMS


def _driver(folder: Path, loaded: LoadedRun) -> tuple[float, float]:
    """Return the driver's seconds for a whole part, and the bytes of a row."""
    names, classes, version = loaded.run.concepts.names, loaded.run.classes, "0" * 16
    films = tuple(ListedFilm.of(f"/archive/2026/11/18/{number:08d}/film.dcm") for number in range(LARGEST_PART))
    chance, columns, size = np.random.default_rng(0), Columns(classes, names, version), FilmSize(2048, 2500)
    rows = [columns.read(film, _reading(chance, size, len(classes), len(names))) for film in films]
    part, table, out = Part(0, films), columns.table(rows), folder / "parts"
    out.mkdir()
    parts = Parts(out, Plan(model=version, films=LARGEST_PART, digest="0", part=LARGEST_PART))
    seconds = _median(lambda: parts.keep(part, table))
    return seconds, (out / part.name).stat().st_size / LARGEST_PART


def _reading(chance: np.random.Generator, size: FilmSize, classes: int, concepts: int) -> FilmReading:
    shares = tuple(chance.dirichlet(np.ones(classes)).tolist())
    places = chance.uniform(0, size.width, (concepts, 2)).tolist()
    found = (Finding(float(chance.random()), x, y, "perhaps") for x, y in places)
    return FilmReading(size, shares, tuple(found), ())
