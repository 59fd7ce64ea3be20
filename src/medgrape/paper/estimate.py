"""Estimate how long jobs take on this machine: time one batch of films, and multiply by the number of films."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from medgrape.config import Config
from medgrape.model.backbones import build_backbone
from medgrape.paper.jobs import PaperJob, Role
from medgrape.paper.measures import BATCHES, ROUNDS, WARM

_FILMS = 8
_HEAD, _SMALL = 6.0, 3.0  # seconds to train a head and write its run, and of a step too short to be estimated


@dataclass(frozen=True)
class FilmSeconds:
    """Seconds for one film."""

    frozen: float  # through the frozen parts
    forward: float  # through the parts that are trained
    step: float  # forwards and backwards through the parts that are trained


@dataclass(frozen=True)
class PlannedJob:
    """A job, and how long it takes or took."""

    job: PaperJob
    seconds: float
    done: bool


def plan(jobs: Sequence[PaperJob]) -> list[PlannedJob]:
    """Estimate every job in order. A stage that several jobs share is counted with the first of them."""
    film_seconds: dict[Role, FilmSeconds] = {}
    trained: set[object] = set()
    planned = []
    for job in jobs:
        if job.role not in film_seconds:
            film_seconds[job.role] = _measure(job.workspace.bases[job.role])
        result = job.load_result()
        # a done job is estimated too, because it has trained stages for others
        estimate = _estimate(job, film_seconds[job.role], trained)
        planned.append(PlannedJob(job, estimate if result is None else float(result["seconds"]), result is not None))
    return planned


def _measure(config: Config) -> FilmSeconds:
    backbone = build_backbone(config.backbone).train()
    films = torch.rand(_FILMS, 1, config.preprocessing.size, config.preprocessing.size)
    rounds = []
    for _ in range(4):
        marks = [time.perf_counter()]
        with torch.no_grad():
            early = backbone.forward_frozen(films)
            marks.append(time.perf_counter())
            backbone.forward_trainable(early)
            marks.append(time.perf_counter())
        features = backbone.forward_trainable(early)
        if features.requires_grad:
            torch.autograd.backward(features.sum())
        marks.append(time.perf_counter())
        rounds.append([(after - before) / _FILMS for before, after in pairwise(marks)])
    return FilmSeconds(*np.median(rounds[1:], axis=0).tolist())  # the first round warms up


def _estimate(job: PaperJob, film_seconds: FilmSeconds, trained: set[object]) -> float:
    training = sum(_training_seconds(config, job, film_seconds, trained) for config in job.configs.values())
    test, film = job.data.films["test"], film_seconds.frozen + film_seconds.forward
    measuring = {
        "films": test * film,
        "safety": 2 * test * film + 4 * _SMALL,
        "few-shot": test * film + 4 * job.workspace.draws * _SMALL,
        "faithfulness": 4 * 28 * min(job.workspace.faithful, test) * film,
        "latency": 2 * (WARM + ROUNDS) * sum(BATCHES) * film,
        "pictures": 4 * _SMALL,
    }
    return training + measuring[job.kind] + _SMALL / 3


def _training_seconds(config: Config, job: PaperJob, film_seconds: FilmSeconds, trained: set[object]) -> float:
    """Estimate one training without the stages that an earlier one has trained."""
    stages, films = config.stages, job.data.films
    train, known = films["train"], films["train"] + films["val"]

    def once(stage: object, seconds: float) -> float:
        key = (stage, job.role, job.seed)
        first = key not in trained
        trained.add(key)
        return seconds if first else 0.0

    seconds, frozen = 0.0, film_seconds.frozen
    if config.backbone.frozen_parts and stages.concepts.views:  # the frozen parts see each view once, not each epoch
        views = stages.concepts.views if stages.concepts.augment else 1
        seconds, frozen = once(("early", views, config.model.method == "pip-net"), views * known * frozen), 0.0
    step, read = film_seconds.step + frozen, film_seconds.forward + frozen
    if config.model.method != "grape" or config.training.order == "end-to-end":
        epochs = {
            "black-box": stages.black_box.epochs, "cbm": stages.cbm.epochs,
            "pip-net": 2 * (stages.pip_net_parts.epochs + stages.pip_net.epochs), "grape": stages.end_to_end.epochs,
        }[config.model.method]  # fmt: skip
        return seconds + once(config.model_dump_json(), epochs * (train * step + films["val"] * read) + _SMALL)
    first = stages.concepts.epochs * (train * step + films["val"] * read)
    seconds += once(("concepts", stages.concepts.model_dump_json()), first)
    later = (stages.concepts, stages.vectors, stages.prototypes, config.text.encoder)
    seconds += once(("prototypes", repr(later)), (1 + stages.head.views) * known * read + 2 * _SMALL)
    return seconds + once(config.model_dump_json(), _HEAD)
