"""An exported model against torch: its speed, and the loss of quality by int8 on films that were not trained on."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.ratio import Ratio, race
from benchmarks.untrained import untrained_reader
from medgrape.concepts import ConceptSet
from medgrape.config import RECIPES, Config, load_config, parse_config
from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset
from medgrape.evaluation.export_quality import compare_export
from medgrape.model.grape import ReadingModel
from medgrape.runs.checkpoint import LoadedRun, load_run
from medgrape.runs.export import Calibration, export_onnx
from medgrape.training.run import TrainingJob, train

BACKBONES = {"resnet-50": False, "efficientnet-lite0": True}
"""Backbones, with pretrained or random weights: the speed is the same."""
BATCHES = (1, 32)
FASTER = {"fp32": 2.0, "int8": 6.0}
ALLOWED = {"macro-F1": 0.5, "pointing game, mean map": 1.0}
"""Percentage points that int8 may lose."""
FILMS, TESTED = 1600, 0.6
"""Number of films drawn for the quality of int8, and the share of them that is tested on."""
EPOCHS = 4
DEMO = RECIPES / "demo.toml"


def bench_export(rounds: int = 9) -> Iterator[Ratio]:
    """Yield the speed of fp32 and int8 for two backbones and batch sizes, then the loss of a trained model by int8."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "films"
        draw_dataset(PhantomOptions(films=FILMS), data, SplitRule(validation=0.1, test=TESTED), workers=2)
        for backbone, pretrained in BACKBONES.items():
            yield from _speed(backbone, data, folder, rounds, pretrained=pretrained)
        yield from _quality(data, folder)


def _speed(backbone: str, data: Path, folder: Path, rounds: int, *, pretrained: bool) -> Iterator[Ratio]:
    config = parse_config({"backbone": {"name": backbone, "pretrained": pretrained}})
    loaded = untrained_reader(config, ConceptSet.built_in("tbx11k")).loaded
    for precision, target in FASTER.items():
        calibration = Calibration(data, 32) if precision == "int8" else None
        export = export_onnx(loaded, folder / f"{backbone}-{precision}.onnx", calibration)
        for batch in BATCHES:
            taken = _race(loaded.run.model, export.run.model, config.preprocessing.size, batch, rounds)
            films = f"{batch} film{'s' if batch > 1 else ''}"
            yield Ratio(f"{backbone}, {precision}, {films}", "torch eager", *taken, target, at_most=False)


@torch.no_grad()
def _race(run: ReadingModel, export: ReadingModel, side: int, batch: int, rounds: int) -> tuple[float, float]:
    """Compute classes and mean maps; a single film is read so quickly that it can be timed more often."""
    films = torch.rand(batch, 1, side, side)
    return race(
        lambda: export.predict_with_mean_maps(films),
        lambda: run.predict_with_mean_maps(films),
        3 * rounds if batch == 1 else max(3, rounds // 2),
    )


def _quality(data: Path, folder: Path) -> Iterator[Ratio]:
    """Return the ratio of the loss to the allowed loss; a figure that improved has lost nothing."""
    run = _trained(data, folder / "run")
    comparison = compare_export(run, export_onnx(run, folder / "run-int8.onnx", Calibration(data)), data, split="test")
    for name, allowed in ALLOWED.items():
        figure = comparison.named(name)
        what = f"int8, {name} {figure.after:.3f} on {comparison.films:,} films (torch {figure.before:.3f}): points lost"
        yield Ratio(what, "what it may lose", max(0.0, -100 * figure.change), allowed, 1.0, unit="points")


def _trained(data: Path, out: Path) -> LoadedRun:
    """Train with smaller settings than the demo's: a model with usable answers within two minutes."""
    return load_run(train(TrainingJob(_brief(load_config(DEMO)), data, out)))


def _brief(config: Config) -> Config:
    stages = config.stages
    shorter = stages.model_copy(
        update={
            "concepts": stages.concepts.overridden(epochs=EPOCHS, views=1),
            "head": stages.head.overridden(views=1),
        }
    )
    return config.model_copy(update={"stages": shorter})
