"""How the methods that GRAPE is compared with learn, each by the losses of its own paper."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.baselines.methods import (
    Baseline,
    BaselineOutput,
    ConceptBottleneck,
    PipNet,
    alignment_loss,
    classes_loss,
    presence,
    presence_loss,
)
from medgrape.config import BlackBoxStage, CbmStage, PipNetPartsStage, PipNetStage
from medgrape.config.training import Schedule
from medgrape.training.films import UNKNOWN_CLASS, Targets, in_order, shuffled, whole_batch
from medgrape.training.losses import concept_loss, positive_weights, rarity_weights
from medgrape.training.stage import Figure, evaluating, macro_f1
from medgrape.training.stages.concepts import Batch
from medgrape.training.stored_features import Inputs


class _Lesson:
    """What all of them share: batches of training films, and macro-F1 on validation films."""

    name: str
    schedule: Schedule

    def __init__(self, model: Baseline, inputs: Inputs, seed: int, share: tuple[int, int], *, balance: bool) -> None:
        self.learner: nn.Module = model
        self._inputs, self._seed, self._share = inputs, seed, share
        films = inputs.films
        self._learning, self._validating = films.positions("train"), films.positions("val")
        classes, count = films.classes[self._learning], len(films.dataset.classes)
        known = classes[classes != UNKNOWN_CLASS]
        self._weights = (rarity_weights(known, count) if balance else torch.ones(count)).to(inputs.device)

    def steps(self) -> int:
        """Batches in an epoch."""
        return len(self._learning) // whole_batch(len(self._learning), self.schedule.batch, self._share[1])

    def _drawn(self, epoch: int) -> Iterator[list[int]]:
        yield from shuffled(self._learning, self.schedule.batch, self._share, self._seed, 6, epoch)

    def _classes_loss(self, seen: BaselineOutput, targets: Targets) -> Float[Tensor, ""]:
        return classes_loss(seen.logits, targets.classes, self._weights, UNKNOWN_CLASS)

    @torch.no_grad()
    def validate(self) -> Figure:
        """Macro-F1, and the loss of the classes."""
        answers, losses = [], []
        with evaluating(self.learner):
            for positions in in_order(self._validating, self.schedule.batch):
                seen, targets = self.learner(self._inputs.activations(positions, 0)), self._inputs.targets(positions, 0)
                losses.append(float(self._classes_loss(seen, targets)) * len(positions))
                answers.append(seen.logits.argmax(dim=1).cpu())
        truth = self._inputs.films.classes[self._validating]
        known = truth != UNKNOWN_CLASS
        score = macro_f1(torch.cat(answers)[known], truth[known])
        return Figure(score, sum(losses) / len(self._validating), "macro-F1")


class BlackBoxLesson(_Lesson):
    """The plain backbone learns the classes."""

    name = "black_box"

    def __init__(
        self, model: Baseline, inputs: Inputs, schedule: BlackBoxStage, seed: int, share: tuple[int, int]
    ) -> None:
        self.schedule: BlackBoxStage = schedule
        super().__init__(model, inputs, seed, share, balance=schedule.balance)
        self._augment = inputs.views.augment

    def batches(self, epoch: int) -> Iterator[Batch]:
        """A view of every film."""
        number = epoch - 1 if self._augment else 0
        for positions in self._drawn(epoch):
            yield Batch(self._inputs.activations(positions, number), self._inputs.targets(positions, number))

    def loss(self, learner: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """Cross-entropy of the classes."""
        return self._loss(learner(batch.activations), batch.targets)

    def _loss(self, seen: BaselineOutput, targets: Targets) -> Float[Tensor, ""]:
        return self._classes_loss(seen, targets)


class CbmLesson(BlackBoxLesson):
    """The bottleneck learns findings and classes at once: the joint variant."""

    name = "cbm"

    def __init__(
        self, model: ConceptBottleneck, inputs: Inputs, schedule: CbmStage, seed: int, share: tuple[int, int]
    ) -> None:
        super().__init__(model, inputs, schedule, seed, share)
        self._concept_weight = schedule.concept_weight
        labels = inputs.films.labels[self._learning]
        self._positive = positive_weights(labels, balance=schedule.balance).to(inputs.device)

    def _loss(self, seen: BaselineOutput, targets: Targets) -> Float[Tensor, ""]:
        findings = concept_loss(ConceptBottleneck.bottleneck(seen.maps), targets.labels, self._positive)
        return self._classes_loss(seen, targets) + self._concept_weight * findings


class Pair(NamedTuple):
    """Two views of the same films, whose patches lie alike."""

    one: Float[Tensor, "b c1 h1 w1"]
    other: Float[Tensor, "b c1 h1 w1"]
    targets: Targets
    epoch: int


class PipNetLearner(nn.Module):
    """The model, asked for the parts of two views at once: both go through the backbone together."""

    def __init__(self, model: PipNet) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, one: Float[Tensor, "b c1 h1 w1"], other: Float[Tensor, "b c1 h1 w1"]
    ) -> tuple[Float[Tensor, "b parts h w"], Float[Tensor, "b parts h w"]]:
        """Which part each patch of each view is."""
        where = self.model.which_part(self.model.backbone.late(torch.cat([one, other])))
        return where[: len(one)], where[len(one) :]


class PipNetPartsLesson(_Lesson):
    """Phase 1: parts, without any label."""

    name = "pip_net_parts"

    def __init__(
        self, model: PipNet, inputs: Inputs, schedule: PipNetPartsStage, seed: int, share: tuple[int, int]
    ) -> None:
        self.schedule: PipNetPartsStage = schedule
        super().__init__(model, inputs, seed, share, balance=False)
        self.learner = PipNetLearner(model)
        self._model = model

    def batches(self, epoch: int) -> Iterator[Pair]:
        """Two views of every film."""
        for positions in self._drawn(epoch):
            yield self._pair(positions, epoch)

    def _pair(self, positions: list[int], epoch: int) -> Pair:
        first, second = self._inputs.pair(epoch)
        one, other = (self._inputs.activations(positions, number) for number in (first, second))
        return Pair(one, other, self._inputs.targets(positions, first), epoch)

    def loss(self, learner: nn.Module, batch: Pair) -> Float[Tensor, ""]:
        """Alignment, whose weight rises over the epochs to one, and presence."""
        return self._loss(learner, batch, batch.epoch / self.schedule.epochs) + 0.0 * self._model.votes.sum()

    def _loss(self, learner: nn.Module, batch: Pair, aligned: float) -> Float[Tensor, ""]:
        one, other = learner(batch.one, batch.other)
        there = (presence_loss(presence(one)) + presence_loss(presence(other))) / 2
        return aligned * alignment_loss(one, other) + self.schedule.presence * there

    @torch.no_grad()
    def validate(self) -> Figure:
        """The loss on a pair of views of the validation films, always the same pair."""
        with evaluating(self.learner):
            losses = [
                float(self._loss(self.learner, self._pair(positions, 1), 1.0)) * len(positions)
                for positions in in_order(self._validating, self.schedule.batch)
            ]
        mean = sum(losses) / len(self._validating)
        return Figure(-mean, mean, "loss, negative")


class PipNetLesson(_Lesson):
    """Phase 2: classes from parts, while the parts learn on."""

    name = "pip_net"

    def __init__(self, model: PipNet, inputs: Inputs, schedule: PipNetStage, seed: int, share: tuple[int, int]) -> None:
        self.schedule: PipNetStage = schedule
        super().__init__(model, inputs, seed, share, balance=schedule.balance)
        self._model = model
        self._both = PipNetLearner(model)

    def batches(self, epoch: int) -> Iterator[Pair]:
        """Two views of every film."""
        first, second = self._inputs.pair(epoch)
        for positions in self._drawn(epoch):
            one, other = (self._inputs.activations(positions, number) for number in (first, second))
            yield Pair(one, other, self._inputs.targets(positions, first), epoch)

    def loss(self, learner: nn.Module, batch: Pair) -> Float[Tensor, ""]:
        """Classes, alignment and presence; at first the classes alone, with the parts as they are."""
        del learner  # one process: the model is the learner
        held = batch.epoch <= self.schedule.hold
        views = self._held(batch) if held else self._both(batch.one, batch.other)
        there = [presence(where) for where in views]
        logits = [self._model.classes(present) for present in there]
        classes = sum(classes_loss(one, batch.targets.classes, self._weights, UNKNOWN_CLASS) for one in logits) / 2
        total = torch.as_tensor(self.schedule.class_weight * classes)
        if held:
            return total
        parts = sum(presence_loss(present) for present in there) / 2
        return total + self.schedule.alignment * alignment_loss(*views) + self.schedule.presence * parts

    @torch.no_grad()
    def _held(self, batch: Pair) -> tuple[Float[Tensor, "b parts h w"], Float[Tensor, "b parts h w"]]:
        """The parts as they are, no statistics moving."""
        with evaluating(self._both):
            one, other = self._both(batch.one, batch.other)
        return one, other
