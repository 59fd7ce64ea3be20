"""How long the jobs will take on this machine: a batch of films is timed, and the rest is counted."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from medgrape.config import Config
from medgrape.model.backbones import build_backbone
from medgrape.paper.jobs import Job, Place
from medgrape.paper.measures.methods import BATCHES, ROUNDS, WARM

_FILMS = 8
_HEAD, _SMALL = 6.0, 3.0
"""Seconds: a head with all that belongs to a run; whatever is too small to count."""


@dataclass(frozen=True)
class Pace:
    """Seconds for one film."""

    frozen: float
    """Through the parts that never learn."""
    forward: float
    """Through the parts that do."""
    step: float
    """Through these and back."""


@dataclass(frozen=True)
class Planned:
    """One job, and how long it takes or took."""

    job: Job
    seconds: float
    done: bool


def plan(jobs: Sequence[Job], place: Place) -> list[Planned]:
    """Every job in order; stages that jobs share are counted where they come first."""
    paces = {role: _probe(base) for role, base in place.bases.items() if role in place.data}
    paid: set[object] = set()
    planned = []
    for job in jobs:
        told = place.found(job)
        estimate = _estimate(job, place, paces[job.role], paid)  # also of a done one: it has paid for others
        planned.append(Planned(job, estimate if told is None else float(told["seconds"]), told is not None))
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
    found = [timed() for _ in range(3)]
    return Pace(*(sorted(column)[1] for column in zip(*found, strict=True)))


def _estimate(job: Job, place: Place, pace: Pace, paid: set[object]) -> float:
    total = sum(
        _training(place.config(recipe, job.seed, job.role), job, place, pace, paid)
        for recipe in (job.recipe, *job.others)
    )
    films, film = place.data[job.role].films, pace.frozen + pace.forward
    measuring = {
        "films": films["test"] * film,
        "safety": 2 * films["test"] * film + 4 * _SMALL,
        "few-shot": films["test"] * film + 4 * place.draws * _SMALL,
        "faithfulness": 4 * 28 * min(place.faithful, films["test"]) * film,
        "latency": 2 * (WARM + ROUNDS) * sum(BATCHES) * film,
        "pictures": 4 * _SMALL,
    }
    return total + measuring[job.kind] + _SMALL / 3


def _training(config: Config, job: Job, place: Place, pace: Pace, paid: set[object]) -> float:
    """Of one run, without what another one has learnt for it."""
    stages, films = config.stages, place.data[job.role].films
    learnt, known = films["train"], films["train"] + films["val"]

    def once(what: object, seconds: float) -> float:
        key = (what, job.role, job.seed)
        fresh = key not in paid
        paid.add(key)
        return seconds if fresh else 0.0

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
        return seconds + once(name, epochs * (learnt * step + films["val"] * look) + _SMALL)
    first = stages.concepts.epochs * (learnt * step + films["val"] * look)
    seconds += once(("concepts", stages.concepts.model_dump_json()), first)
    later = (stages.concepts, stages.vectors, stages.prototypes, config.text.encoder)
    seconds += once(("prototypes", repr(later)), (1 + stages.head.views) * known * look + 2 * _SMALL)
    return seconds + once(name, _HEAD)
