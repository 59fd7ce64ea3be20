"""Estimate how long jobs take on this machine: time one batch of films, and count the rest."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from medgrape.config import Config
from medgrape.model.backbones import build_backbone
from medgrape.paper.jobs import PaperJob, Role
from medgrape.paper.measures import BATCHES, ROUNDS, WARM

_FILMS = 8
_HEAD, _SMALL = 6.0, 3.0
"""Seconds to train a head and write its run; seconds of a step that is too short to be estimated."""


@dataclass(frozen=True)
class Pace:
    """Seconds for one film."""

    frozen: float
    """Through the frozen parts."""
    forward: float
    """Through the parts that are trained."""
    step: float
    """Through these forwards and backwards."""


@dataclass(frozen=True)
class Planned:
    """A job, and how long it takes or took."""

    job: PaperJob
    seconds: float
    done: bool


def plan(jobs: Sequence[PaperJob]) -> list[Planned]:
    """Estimate every job in order. A stage that several jobs share is counted with the first of them."""
    paces: dict[Role, Pace] = {}
    trained: set[object] = set()
    planned = []
    for job in jobs:
        if job.role not in paces:
            paces[job.role] = _probe(job.workspace.bases[job.role])
        result = job.found()
        estimate = _estimate(job, paces[job.role], trained)  # of a done job too: it has trained stages for others
        planned.append(Planned(job, estimate if result is None else float(result["seconds"]), result is not None))
    return planned


def _probe(config: Config) -> Pace:
    backbone = build_backbone(config.backbone).train()
    films = torch.rand(_FILMS, 1, config.preprocessing.size, config.preprocessing.size)

    def timed() -> tuple[float, float, float]:
        marks = [time.perf_counter()]
        with torch.no_grad():
            early = backbone.early(films)
            marks.append(time.perf_counter())
            backbone.late(early)
            marks.append(time.perf_counter())
        learnt = backbone.late(early)
        if learnt.requires_grad:
            torch.autograd.backward(learnt.sum())
        marks.append(time.perf_counter())
        frozen, forward, step = ((after - before) / _FILMS for before, after in pairwise(marks))
        return frozen, forward, step

    timed()
    rounds = [timed() for _ in range(3)]
    return Pace(*(sorted(column)[1] for column in zip(*rounds, strict=True)))


def _estimate(job: PaperJob, pace: Pace, trained: set[object]) -> float:
    total = sum(_training(config, job, pace, trained) for config in job.configs.values())
    test, film = job.data.films["test"], pace.frozen + pace.forward
    measuring = {
        "films": test * film,
        "safety": 2 * test * film + 4 * _SMALL,
        "few-shot": test * film + 4 * job.workspace.draws * _SMALL,
        "faithfulness": 4 * 28 * min(job.workspace.faithful, test) * film,
        "latency": 2 * (WARM + ROUNDS) * sum(BATCHES) * film,
        "pictures": 4 * _SMALL,
    }
    return total + measuring[job.kind] + _SMALL / 3


def _training(config: Config, job: PaperJob, pace: Pace, trained: set[object]) -> float:
    """Seconds of one training, without the stages that an earlier one has trained."""
    stages, films = config.stages, job.data.films
    train, known = films["train"], films["train"] + films["val"]

    def once(what: object, seconds: float) -> float:
        key = (what, job.role, job.seed)
        first = key not in trained
        trained.add(key)
        return seconds if first else 0.0

    if config.backbone.frozen_parts and stages.concepts.views:
        views = stages.concepts.views if stages.concepts.augment else 1
        seconds, frozen = once(("early", views, config.model.method == "pip-net"), views * known * pace.frozen), 0.0
    else:
        seconds, frozen = 0.0, pace.frozen
    step, look = pace.step + frozen, pace.forward + frozen
    epochs = {
        "black-box": stages.black_box.epochs, "cbm": stages.cbm.epochs,
        "pip-net": 2 * (stages.pip_net_parts.epochs + stages.pip_net.epochs), "grape": stages.end_to_end.epochs,
    }[config.model.method]  # fmt: skip
    name = config.model_dump_json()
    if config.model.method != "grape" or config.training.order == "end-to-end":
        return seconds + once(name, epochs * (train * step + films["val"] * look) + _SMALL)
    first = stages.concepts.epochs * (train * step + films["val"] * look)
    seconds += once(("concepts", stages.concepts.model_dump_json()), first)
    later = (stages.concepts, stages.vectors, stages.prototypes, config.text.encoder)
    seconds += once(("prototypes", repr(later)), (1 + stages.head.views) * known * look + 2 * _SMALL)
    return seconds + once(name, _HEAD)
