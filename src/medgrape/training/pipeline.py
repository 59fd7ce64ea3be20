"""The course of a method that GRAPE is compared with: its lessons in order, judged by the same films."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from medgrape.baselines.methods import Baseline, ConceptBottleneck, PipNet, presence
from medgrape.config import Config
from medgrape.model.grape import Grape
from medgrape.progress import Track
from medgrape.training.barrier import Meeting
from medgrape.training.building import build_compared, build_model, grid_of
from medgrape.training.checkpoint import StageState, history, told_of_stages
from medgrape.training.films import TrainingFilms, in_order
from medgrape.training.loop import Workshop, learn
from medgrape.training.preflight import untrained
from medgrape.training.processes import alone
from medgrape.training.scores import Scores, open_scores
from medgrape.training.stage import Lesson, evaluating, hold_still
from medgrape.training.stages.baselines import BlackBoxLesson, CbmLesson, PipNetLesson, PipNetPartsLesson
from medgrape.training.stages.concepts import ConceptLesson
from medgrape.training.stages.end_to_end import EndToEndLesson
from medgrape.training.stages.head import HeadLesson
from medgrape.training.stages.prototypes import PrototypeLesson
from medgrape.training.stages.vectors import open_vectors
from medgrape.training.stored_features import Inputs, Views, open_patches, open_shared
from medgrape.vocabulary.encoders import open_text_encoder

STAGED, WHOLE = ("concepts", "prototypes", "head"), ("end_to_end",)


@dataclass(frozen=True)
class Graduate:
    """A trained model and what its last look at the training films found."""

    model: Grape
    scores: Scores
    grid: tuple[int, int]
    metrics: dict[str, Any]


class Course:
    """All lessons for one model."""

    def __init__(self, config: Config, films: TrainingFilms, workshop: Workshop, track: Track) -> None:
        self._config, self._films, self._workshop, self._track = config, films, workshop, track
        self._encoder = open_text_encoder(config.text)
        self.model = build_model(config, films.dataset, self._encoder)
        grid = grid_of(self.model.backbone, config.preprocessing.size)
        self._device = workshop.fabric.device
        self.model.to(self._device)
        views = Views.of(config)
        self._inputs = Inputs(films, self.model.backbone, views, grid, self._device)

    def run(self) -> Graduate | None:
        """Everything in order; None for a process that only helped with the backbone."""
        staged = self._config.training.order == "staged"
        if self._workshop.leads:
            self._workshop.journal.begin(history(self._workshop.folder, STAGED if staged else WHOLE))
        self._inputs = self._open_inputs()
        states = self._first(staged=staged)
        if not self._workshop.leads:
            return None
        self._workshop = replace(self._workshop, fabric=alone(self._workshop.fabric), meeting=Meeting())
        if staged:
            states["prototypes"] = self._prototypes()
        scores = open_scores(
            self.model, self._inputs, self._config.stages.head.views, self._showable(), self._folder("scores"),
            self._track,
        )  # fmt: skip
        if staged:
            states["head"] = self._head(scores)
        self._workshop.journal.draw()
        return Graduate(self.model.cpu().eval(), scores, self._inputs.grid, self._metrics(states))

    def _folder(self, name: str) -> Any:  # noqa: ANN401
        return self._workshop.folder / name

    def _open_inputs(self) -> Inputs:
        views, shop = self._config.stages.concepts.views, self._workshop
        return open_shared(
            self._inputs, views, self._folder("early"), self._track, shop.meeting, writes=shop.leads
        )  # fmt: skip

    def _learn(self, lesson: Lesson) -> StageState:
        return learn(lesson, self._workshop)

    def _first(self, *, staged: bool) -> dict[str, StageState]:
        """The lessons in which the backbone takes part; none where the first stage has no epochs."""
        if not staged:
            return {"end_to_end": self._end_to_end()}
        return {"concepts": self._concepts()} if self._config.stages.concepts.epochs else {}

    def _concepts(self) -> StageState:
        stage = self._config.stages.concepts
        hold_still(self.model, stage.learns)
        self._workshop.chance("first weights of the class maps")
        return self._learn(ConceptLesson(self.model, self._inputs, stage, self._config.seed, self._workshop.share))

    def _end_to_end(self) -> StageState:
        hold_still(self.model, self._config.stages.end_to_end.learns)
        return self._learn(EndToEndLesson(self.model, self._inputs, self._config, self._workshop.share))

    def _prototypes(self) -> StageState:
        stages = self._config.stages
        if stages.prototypes.detection:
            patches = open_patches(self.model, self._inputs, self._folder("patches"), self._track)
            self._inputs = replace(self._inputs, patches=patches)
        vectors = open_vectors(
            self.model, self._inputs, stages.vectors, self._folder("vectors"), self._track,
            background=stages.prototypes.background,
        )  # fmt: skip
        hold_still(self.model, stages.prototypes.learns)
        lesson = PrototypeLesson(
            self.model, vectors, self._films, stages.prototypes, self._config.seed, self._device, self._inputs.patches
        )
        if not self._folder("prototypes.safetensors").is_file():  # else they are put where they were
            lesson.place()
        state = self._learn(lesson)
        if stages.prototypes.push:
            lesson.push()
        return state

    def _head(self, scores: Scores) -> StageState:
        stage = self._config.stages.head
        hold_still(self.model, stage.learns)
        lesson = HeadLesson(self.model, scores, self._films, stage, self._config.seed, self._device)
        if self._config.model.standardise:
            lesson.fit_standard()
        return self._learn(lesson)

    def _showable(self) -> Bool[Tensor, " n"]:
        """Films of which a run may carry a picture."""
        withheld = set(self._config.exemplars.withheld)
        return torch.tensor([not {film.id, film.patient} & withheld for film in self._films.records])

    def _metrics(self, states: dict[str, StageState]) -> dict[str, Any]:
        return {
            "validation": told_of_stages(states),
            "untrained_concepts": list(untrained(self._films)),
            "text_encoder": None if self._encoder is None else self._encoder.name,
        }


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
