"""Stages that train a whole network at once: GRAPE's end-to-end variant (paper, appendix N4) and the baselines."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.baselines import methods
from medgrape.baselines.methods import BaselineOutput, ConceptBottleneck, PipNet
from medgrape.config import CbmStage, Config, PipNetPartsStage, PipNetStage
from medgrape.config.settings import Schedule
from medgrape.datasets.cache import in_order
from medgrape.model.cam import concept_vectors, pool
from medgrape.model.evidence import scores
from medgrape.model.grape import Grape
from medgrape.training.concept_stage import FilmTraining
from medgrape.training.films import UNKNOWN_CLASS, Targets
from medgrape.training.head_stage import head_loss
from medgrape.training.losses import concept_loss, positive_weights, rarity_weights
from medgrape.training.prototype_stage import VectorBatch, prototype_loss
from medgrape.training.stage import ValidationResult, evaluating, macro_f1
from medgrape.training.stored_features import FilmInputs


class GrapeOutput(NamedTuple):
    """All that the three losses need. A named tuple, because Lightning does not accept frozen dataclasses."""

    maps: Float[Tensor, "b k h w"]
    vectors: Float[Tensor, "b k c"]
    logits: Float[Tensor, "b classes"]


class _ClassTraining(FilmTraining):
    """Training on the classes of films; macro-F1 on validation films."""

    draw = 6

    def __init__(
        self, learner: nn.Module, inputs: FilmInputs, schedule: Schedule, share: tuple[int, int], *, balance: bool
    ) -> None:
        super().__init__(learner, inputs, schedule, share)
        classes, count = inputs.films.classes[self.training], len(inputs.films.dataset.classes)
        known = classes[classes != UNKNOWN_CLASS]
        self._weights = (rarity_weights(known, count) if balance else torch.ones(count)).to(inputs.device)

    def _loss(self, output: BaselineOutput | GrapeOutput, targets: Targets) -> Float[Tensor, ""]:
        return methods.classes_loss(output.logits, targets.classes, self._weights, UNKNOWN_CLASS)

    def validate(self) -> ValidationResult:
        """Compute macro-F1 and the loss."""
        predicted, losses = [], []
        for output, loss in self._validation_outputs():
            predicted.append(output.logits.argmax(dim=1).cpu())
            losses.append(loss)
        score = macro_f1(torch.cat(predicted), self._inputs.films.classes[self._validation])
        return ValidationResult(score, sum(losses) / len(self._validation), "macro-F1")


class _WholeGrape(nn.Module):
    """GRAPE with all outputs at once."""

    def __init__(self, model: Grape) -> None:
        super().__init__()
        self.model = model

    def forward(self, activations: Float[Tensor, "b c1 h1 w1"]) -> GrapeOutput:
        """Compute maps, concept vectors and classes."""
        features = self.model.backbone.forward_trainable(activations)
        maps = self.model.cam(features)
        similarity = scores(self.model.projector.patches(features), self.model.atlas.prototypes)
        return GrapeOutput(maps, concept_vectors(features, maps), self.model.classify(similarity).logits)


class EndToEndTraining(_ClassTraining):
    """Training of the variant without stages, on the sum of the three losses."""

    name = "end_to_end"
    draw = 5

    def __init__(self, model: Grape, inputs: FilmInputs, config: Config, share: tuple[int, int]) -> None:
        learner, stages = _WholeGrape(model).to(inputs.device), config.stages
        super().__init__(learner, inputs, stages.end_to_end, share, balance=stages.head.balance)
        self._model, self._stages = model, stages
        labels = inputs.films.labels[self.training]
        self._positive = positive_weights(labels, balance=stages.concepts.balance)
        groups, shown = labels.shape[1], torch.nonzero(labels == 1)[:, 1]
        self._groups = rarity_weights(shown, groups) if stages.prototypes.balance else torch.ones(groups)

    def _loss(self, output: BaselineOutput | GrapeOutput, targets: Targets) -> Float[Tensor, ""]:
        assert isinstance(output, GrapeOutput)  # noqa: S101 (from _WholeGrape)
        stages, device, anchors = self._stages, output.maps.device, self._model.anchors
        logits = pool(output.maps, stages.concepts.pooling, stages.concepts.sharpness)
        total = concept_loss(logits, targets.labels, self._positive.to(device))
        rows, groups = torch.nonzero(targets.labels == 1).unbind(dim=1)
        if len(rows):
            vectors = VectorBatch(output.vectors[rows, groups], groups)
            total = total + prototype_loss(self._model, vectors, stages.prototypes, self._groups)
        if bool((targets.classes != UNKNOWN_CLASS).any()):
            total = total + head_loss(output.logits, targets.classes, stages.head, self._weights)
        # Every process needs gradients of all parts, also for a batch without findings.
        unused = self._model.atlas.vectors.sum() + (0.0 if anchors is None else anchors().sum())
        return total + 0.0 * (output.logits.sum() + unused)


class BlackBoxTraining(_ClassTraining):
    """Training of the black box: cross-entropy of the classes."""

    name = "black_box"


class CbmTraining(_ClassTraining):
    """Joint training of the concept bottleneck model on concepts and classes."""

    name = "cbm"
    schedule: CbmStage

    def __init__(
        self, model: ConceptBottleneck, inputs: FilmInputs, schedule: CbmStage, share: tuple[int, int]
    ) -> None:
        super().__init__(model, inputs, schedule, share, balance=schedule.balance)
        labels = inputs.films.labels[self.training]
        self._positive = positive_weights(labels, balance=schedule.balance).to(inputs.device)

    def _loss(self, output: BaselineOutput | GrapeOutput, targets: Targets) -> Float[Tensor, ""]:
        concepts = concept_loss(ConceptBottleneck.bottleneck(output.maps), targets.labels, self._positive)
        return super()._loss(output, targets) + self.schedule.concept_weight * concepts


class PairBatch(NamedTuple):
    """Two views of the same films in the same position."""

    first: Float[Tensor, "b c1 h1 w1"]
    second: Float[Tensor, "b c1 h1 w1"]
    targets: Targets
    epoch: int


class _PairLearner(nn.Module):
    """PIP-Net applied to two views in one pass."""

    def __init__(self, model: PipNet) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, first: Float[Tensor, "b c1 h1 w1"], second: Float[Tensor, "b c1 h1 w1"]
    ) -> tuple[Float[Tensor, "b parts h w"], Float[Tensor, "b parts h w"]]:
        """Compute which part each patch of each view is."""
        where = self.model.which_part(self.model.backbone.forward_trainable(torch.cat([first, second])))
        return where[: len(first)], where[len(first) :]


class _PairTraining(_ClassTraining):
    """Batches of two views of every film."""

    def batches(self, epoch: int) -> Iterator[PairBatch]:  # type: ignore[override]
        """Yield two views of every film."""
        return (self._pair(positions, epoch) for positions in self._shuffled(epoch))

    def _pair(self, positions: list[int], epoch: int) -> PairBatch:
        first, second = self._inputs.pair(epoch)
        views = [self._inputs.activations(positions, number) for number in (first, second)]
        return PairBatch(views[0], views[1], self._inputs.targets(positions, first), epoch)


class PipNetPartsTraining(_PairTraining):
    """PIP-Net's first phase: parts, without labels."""

    name = "pip_net_parts"
    schedule: PipNetPartsStage

    def __init__(self, model: PipNet, inputs: FilmInputs, schedule: PipNetPartsStage, share: tuple[int, int]) -> None:
        super().__init__(_PairLearner(model), inputs, schedule, share, balance=False)
        self._model = model

    def loss(self, learner: nn.Module, batch: PairBatch) -> Float[Tensor, ""]:  # type: ignore[override]
        """Compute presence loss and alignment loss, whose weight rises to 1 over the epochs."""
        alignment = batch.epoch / self.schedule.epochs
        return self._pair_loss(learner, batch, alignment) + 0.0 * self._model.votes.sum()

    def _pair_loss(self, learner: nn.Module, batch: PairBatch, alignment: float) -> Float[Tensor, ""]:
        first, second = learner(batch.first, batch.second)
        present = (methods.presence_loss(methods.presence(first)) + methods.presence_loss(methods.presence(second))) / 2
        return alignment * methods.alignment_loss(first, second) + self.schedule.presence * present

    @torch.no_grad()
    def validate(self) -> ValidationResult:
        """Compute the loss on a fixed pair of views of the validation films."""
        with evaluating(self.learner):
            losses = [
                float(self._pair_loss(self.learner, self._pair(positions, 1), 1.0)) * len(positions)
                for positions in in_order(self._validation, self.schedule.batch)
            ]
        mean = sum(losses) / len(self._validation)
        return ValidationResult(-mean, mean, "loss, negative")


class PipNetTraining(_PairTraining):
    """PIP-Net's second phase: classes from parts, while the parts are trained further."""

    name = "pip_net"
    schedule: PipNetStage

    def __init__(self, model: PipNet, inputs: FilmInputs, schedule: PipNetStage, share: tuple[int, int]) -> None:
        super().__init__(model, inputs, schedule, share, balance=schedule.balance)
        self._model, self._pairs = model, _PairLearner(model)

    def loss(self, learner: nn.Module, batch: PairBatch) -> Float[Tensor, ""]:  # type: ignore[override]
        """Compute the losses of classes, alignment and presence; in the first epochs of the classes alone."""
        del learner  # there is one process: the learner is the model
        settings = self.schedule
        are_parts_frozen = batch.epoch <= settings.hold
        if are_parts_frozen:
            with torch.no_grad(), evaluating(self._pairs):
                views = self._pairs(batch.first, batch.second)
        else:
            views = self._pairs(batch.first, batch.second)
        present = [methods.presence(where) for where in views]
        logits = [self._model.classes(view) for view in present]
        classes = (
            sum(methods.classes_loss(view, batch.targets.classes, self._weights, UNKNOWN_CLASS) for view in logits) / 2
        )
        total = torch.as_tensor(settings.class_weight * classes)
        if are_parts_frozen:
            return total
        parts = sum(methods.presence_loss(view) for view in present) / 2
        return total + settings.alignment * methods.alignment_loss(*views) + settings.presence * parts
