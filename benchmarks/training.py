"""Stages 3 and 4, which learn from what lies on disk, against the same with the backbone run each time; a dilated
layer against torch's own; films through the backbone against its layers one by one.
"""

import copy
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import nn

from benchmarks.ratio import Ratio, race
from medgrape.config import BackboneSettings, Config, parse_config
from medgrape.datasets.cache import FilmCache
from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset
from medgrape.model.backbones import build_backbone
from medgrape.model.backbones.lite import ConvNorm, DilatedConv2d
from medgrape.model.grape import Grape
from medgrape.progress import quietly
from medgrape.training.film_scores import open_scores
from medgrape.training.films import TrainingFilms
from medgrape.training.head_stage import HeadTraining
from medgrape.training.pipeline import build_model
from medgrape.training.prototype_stage import PrototypeTraining
from medgrape.training.stage import StageTraining, freeze_except
from medgrape.training.stored_features import FilmInputs, Views, open_vectors
from medgrape.vocabulary.encoders.lexical import LexicalEncoder

TARGET, FASTER, SOMEWHAT_FASTER = 100.0, 2.0, 1.5
FILMS, LOOKED_AT, WIDE = 128, 32, 1152
READ, SIDE = 8, 512


def bench_training(rounds: int = 3, backbone: BackboneSettings = BackboneSettings()) -> Iterator[Ratio]:  # noqa: B008
    """Yield one epoch of each stage, on the same films, with the paper's sizes (M = 100, D = 256)."""
    with tempfile.TemporaryDirectory() as name:
        look, prototypes, head = stage_epochs(parse_config({"backbone": backbone.model_dump()}), Path(name))
        taken = race(lambda: (prototypes(), head()), lambda: (look(), prototypes(), look(), head()), rounds)
    what = f"an epoch of stages 3 and 4, {FILMS} films"
    yield Ratio(what, "the same, the backbone run in each", *taken, TARGET, at_most=False)
    yield _dilated(rounds)
    yield _reading(rounds)


def _reading(rounds: int) -> Ratio:
    """Compare the pass through the backbone that every reading needs with one layer after the other."""
    backbone, films = build_backbone(BackboneSettings()).eval(), torch.rand(READ, 1, SIDE, SIDE)
    grey = (films - backbone.mean) / backbone.spread
    plain = copy.deepcopy(backbone.parts)
    for layers in plain.modules():
        if isinstance(layers, ConvNorm):
            layers.forward = partial(nn.Sequential.forward, layers)  # type: ignore[method-assign]

    @torch.no_grad()
    def one_by_one() -> None:
        maps = grey
        for part in plain:
            maps = part(maps)

    taken = race(torch.no_grad()(lambda: backbone(films)), one_by_one, rounds)
    return Ratio("films through the backbone", "layer by layer, planes first", *taken, SOMEWHAT_FASTER, at_most=False)


def _dilated(rounds: int) -> Ratio:
    """Compare the layer that takes most training time in a backbone without its last stride."""
    maps = torch.randn(8, WIDE, 24, 24).contiguous(memory_format=torch.channels_last)
    ours = DilatedConv2d(WIDE, WIDE, 5, dilation=2, groups=WIDE, bias=False)
    theirs = nn.Conv2d(WIDE, WIDE, 5, padding=4, dilation=2, groups=WIDE, bias=False)

    def step(layer: nn.Module) -> Callable[[], None]:
        return lambda: layer(maps.requires_grad_()).sum().backward()

    taken = race(step(ours), step(theirs), rounds)
    return Ratio("a step through a dilated layer", "torch's own", *taken, FASTER, at_most=False)


def stage_epochs(config: Config, folder: Path) -> tuple[Callable[[], None], ...]:
    """Return a pass of the backbone, an epoch of stage 3 and one of stage 4 over the same ``FILMS`` films."""
    rule = SplitRule(test=0.1)
    dataset = draw_dataset(PhantomOptions(films=FILMS, size=config.preprocessing.size), folder / "films", rule)
    cached = FilmCache(folder / "cache", config).films([dataset.film_path(film) for film in dataset.pictured])
    films, device = TrainingFilms.of(dataset, cached, "train", "val"), torch.device("cpu")
    model = build_model(config, dataset, LexicalEncoder())
    inputs = FilmInputs(
        films, model.backbone, Views(0, augment=True), model.backbone.grid(config.preprocessing.size), device
    )
    stages = config.stages
    vectors = open_vectors(model, inputs, stages.vectors, folder / "vectors", quietly, background=False)
    scores = open_scores(model, inputs, 1, torch.ones(len(films), dtype=torch.bool), folder / "scores", quietly)
    return (
        _looking(model, films, [place for split in ("train", "val") for place in films.positions(split)]),
        _epoch(model, PrototypeTraining(model, vectors, inputs, stages.prototypes), stages.prototypes.learns),
        _epoch(model, HeadTraining(model, scores, films, config), stages.head.learns),
    )


def _looking(model: Grape, films: TrainingFilms, places: Sequence[int]) -> Callable[[], None]:
    """Run the frozen backbone once over all films, the minimum for an epoch without stored features."""

    @torch.no_grad()
    def run() -> None:
        model.eval()
        for start in range(0, len(places), LOOKED_AT):
            model.features(films.pixels(places[start : start + LOOKED_AT]))

    return run


def _epoch(model: Grape, stage: StageTraining, learns: Sequence[str]) -> Callable[[], None]:
    def run() -> None:
        freeze_except(model, learns)
        optimiser = torch.optim.AdamW([w for w in stage.learner.parameters() if w.requires_grad], lr=1e-5)
        for batch in stage.batches(1):
            optimiser.zero_grad(set_to_none=True)
            stage.loss(stage.learner, batch).backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    return run
