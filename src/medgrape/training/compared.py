"""The course of a method that GRAPE is compared with: its lessons in order, judged by the same films."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.baselines.baseline import Baseline
from medgrape.baselines.cbm import ConceptBottleneck
from medgrape.baselines.pip_net import PipNet, presence
from medgrape.config import Config
from medgrape.progress import Track
from medgrape.training.baseline_lessons import BlackBoxLesson, CbmLesson, PipNetLesson, PipNetPartsLesson
from medgrape.training.building import build_compared, grid_of
from medgrape.training.early import Inputs, Views, open_shared
from medgrape.training.films import TrainingFilms, in_order
from medgrape.training.fitness import untrained
from medgrape.training.lesson import Lesson, evaluating
from medgrape.training.loop import Workshop, learn
from medgrape.training.meeting import Meeting
from medgrape.training.processes import alone
from medgrape.training.state import StageState, history, told_of_stages

_BATCH = 64


@dataclass(frozen=True)
class ComparedGraduate:
    """A trained baseline."""

    model: Baseline
    metrics: dict[str, Any]


class ComparedCourse:
    """All lessons for one baseline."""

    def __init__(self, config: Config, films: TrainingFilms, workshop: Workshop, track: Track) -> None:
        self._config, self._films, self._workshop, self._track = config, films, workshop, track
        self.model = build_compared(config, films.dataset)
        grid = grid_of(self.model.backbone, config.preprocessing.size)
        device = workshop.fabric.device
        self.model.to(device)
        self._inputs = Inputs(films, self.model.backbone, Views.of(config), grid, device)

    def run(self) -> ComparedGraduate | None:
        """Everything in order; None for a process that only helped."""
        lessons = {"black-box": ("black_box",), "cbm": ("cbm",), "pip-net": ("pip_net_parts", "pip_net")}
        names = lessons[self._config.model.method]
        if self._workshop.leads:
            self._workshop.journal.begin(history(self._workshop.folder, names))
        views, early, shop = self._config.stages.concepts.views, self._workshop.folder / "early", self._workshop
        self._inputs = open_shared(self._inputs, views, early, self._track, shop.meeting, writes=shop.leads)
        if self._config.model.method == "pip-net":
            return self._parts_and_classes()
        return self._graduate({names[0]: self._learn(self._classes())})

    def _learn(self, lesson: Lesson) -> StageState:
        self.model.train().requires_grad_(True)
        self.model.backbone.parts[: self.model.backbone.frozen_parts].requires_grad_(False)
        return learn(lesson, self._workshop)

    def _classes(self) -> Lesson:
        stages, seed, share = self._config.stages, self._config.seed, self._workshop.share
        if isinstance(self.model, ConceptBottleneck):
            return CbmLesson(self.model, self._inputs, stages.cbm, seed, share)
        return BlackBoxLesson(self.model, self._inputs, stages.black_box, seed, share)

    def _parts_and_classes(self) -> ComparedGraduate | None:
        """PIP-Net's two phases, the second in one process; then its parts are given to concepts."""
        assert isinstance(self.model, PipNet)  # noqa: S101 (the settings say so)
        stages, seed = self._config.stages, self._config.seed
        first = PipNetPartsLesson(self.model, self._inputs, stages.pip_net_parts, seed, self._workshop.share)
        states = {first.name: self._learn(first)}
        if not self._workshop.leads:
            return None
        self._workshop = replace(self._workshop, fabric=alone(self._workshop.fabric), meeting=Meeting())
        second = PipNetLesson(self.model, self._inputs, stages.pip_net, seed, self._workshop.share)
        states[second.name] = self._learn(second)
        learnt = self._films.positions("train")
        self.model.name_parts(self._present(self.model, learnt), self._films.labels[learnt].to(self._inputs.device))
        return self._graduate(states)

    @torch.no_grad()
    def _present(self, model: PipNet, positions: list[int]) -> Float[Tensor, "n parts"]:
        """Which parts the training films themselves have."""
        with evaluating(model):
            found = [
                presence(model.which_part(model.backbone.late(self._inputs.activations(batch, 0))))
                for batch in in_order(positions, _BATCH)
            ]
        return torch.cat(found)

    def _graduate(self, states: dict[str, StageState]) -> ComparedGraduate | None:
        if not self._workshop.leads:
            return None
        self._workshop.journal.draw()
        metrics = {
            "validation": told_of_stages(states),
            "untrained_concepts": list(untrained(self._films)),
            "text_encoder": None,
        }
        return ComparedGraduate(self.model.cpu().eval(), metrics)
