"""The GAT head: with a ResNet-50 before it against a linear head, and alone against GATConv and a loop over films."""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.head_others import graph_library, one_film_at_a_time
from benchmarks.ratio import Measured, Ratio, clocked, race
from medgrape.config import BackboneSettings, ModelSettings, parse_config
from medgrape.model.backbones import build_backbone
from medgrape.model.evidence import scores
from medgrape.model.grape import Grape
from medgrape.model.graph import ConceptGraph
from medgrape.model.heads import build_head
from medgrape.model.heads.gat import GatHead

END_TO_END, SIDE, CLASSES = 1.02, 224, 3
BATCHES = {1: 1.0, 8: 0.3, 32: 0.15}
"""Batch sizes, and their share of the rounds: large batches take seconds."""
LIBRARY, LOOP = {3: 1.5, 14: 5.0}, {3: 30.0, 14: 15.0}
"""Target speed-up over GATConv and over the loop, for 3 and for 14 concepts."""
TOGETHER = 32
RESNET = BackboneSettings(name="resnet-50", pretrained=False)


def bench_head(rounds: int = 40, backbone: BackboneSettings = RESNET) -> Iterator[Ratio]:
    """Yield the whole model for each batch, then the head alone. All outputs are compared before timing."""
    yield from _end_to_end(rounds, backbone)
    heads = {concepts: _head(concepts) for concepts in LIBRARY}
    for concepts, (head, graph, found) in heads.items():
        yield _alone(head, graph, found, one_film_at_a_time(head, graph), "a loop over films", LOOP[concepts], rounds)
    for concepts, (head, graph, found) in heads.items():
        theirs = graph_library(head, graph, TOGETHER)
        yield _alone(head, graph, found, theirs, "torch_geometric's GATConv", LIBRARY[concepts], 5 * rounds)


@torch.no_grad()
def _end_to_end(rounds: int, settings: BackboneSettings) -> Iterator[Ratio]:
    """Both models share everything up to the scores, so each round's passes through that count for both alike: what
    differs by hundredths would drown in the noise of two backbones.
    """
    gat, linear = _models(settings)
    for count, part in BATCHES.items():
        films = torch.rand(count, 1, SIDE, SIDE)
        ours, theirs = list[float](), list[float]()
        _timed(gat, films), _timed(linear, films)
        for _ in range(max(3, round(rounds * part))):
            (before, graph_seconds), (again, linear_seconds) = _timed(gat, films), _timed(linear, films)
            shared = (before + again) / 2
            ours.append(shared + graph_seconds)
            theirs.append(shared + linear_seconds)
        what = f"{settings.name} with GAT head, batch {count}"
        yield Ratio(what, "with linear head", Measured(ours), Measured(theirs), END_TO_END)


def _timed(model: Grape, films: Float[Tensor, "b 1 side side"]) -> tuple[float, float]:
    """Seconds up to the patches, and from there to the classes: together ``Grape.forward``."""
    made: list[Tensor] = []
    shared = clocked(lambda: made.append(model.patches(films)))
    return shared, clocked(lambda: model.classify(scores(made[0], model.atlas.prototypes)))


def _models(settings: BackboneSettings) -> tuple[Grape, Grape]:
    """Build models with the paper's sizes for TBX11K that differ only in the head."""
    torch.manual_seed(0)
    backbone, graph = build_backbone(settings).eval(), ConceptGraph(torch.ones(3, 3), 0.1)
    gat, linear = (Grape(backbone, _model_settings(head), graph, CLASSES, None).eval() for head in ("gat", "linear"))
    linear.projector, linear.atlas = gat.projector, gat.atlas
    return gat, linear


def _model_settings(head: str) -> ModelSettings:
    return parse_config({"model": {"head": head}}).model


def _head(concepts: int) -> tuple[GatHead, ConceptGraph, Float[Tensor, "b k m"]]:
    """Build a head with a complete graph, the most expensive one."""
    torch.manual_seed(concepts)
    settings = _model_settings("gat")
    head = build_head("gat", concepts, settings.prototypes, CLASSES, settings.dropout).eval().requires_grad_(False)
    assert isinstance(head, GatHead)  # noqa: S101 (for the type checker)
    return head, ConceptGraph(torch.ones(concepts, concepts), 0.1), torch.randn(TOGETHER, concepts, settings.prototypes)


@torch.no_grad()
def _alone(
    head: GatHead,
    graph: ConceptGraph,
    found: Float[Tensor, "b k m"],
    theirs: Callable[[Tensor], Tensor],
    named: str,
    target: float,
    rounds: int,
) -> Ratio:
    torch.testing.assert_close(head(found, graph), theirs(found), atol=1e-5, rtol=1e-5)
    timed = race(lambda: head(found, graph), lambda: theirs(found), rounds)
    return Ratio(f"GAT head alone, batch {len(found)}, K = {found.shape[1]}", named, *timed, target, at_most=False)
