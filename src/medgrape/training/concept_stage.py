"""Stage 1: backbone and CAM head are trained to detect the concepts of a film and, with boxes, where they are."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.config import ConceptStage
from medgrape.config.settings import Schedule
from medgrape.datasets.cache import in_order
from medgrape.model.cam import CamHead, pool
from medgrape.model.grape import Grape
from medgrape.training import losses
from medgrape.training.films import UNKNOWN_CLASS, Targets, shuffled
from medgrape.training.stage import StageTraining, ValidationResult, evaluating, mean_auc
from medgrape.training.stored_features import FilmInputs


@dataclass(frozen=True)
class FilmBatch:
    """Activations of some films, and their targets."""

    activations: Float[Tensor, "b c1 h1 w1"]
    targets: Targets


class FilmTraining(StageTraining):
    """A stage that is trained on views of whole films."""

    draw: int  # Part of the seed of the order of films

    def __init__(self, learner: nn.Module, inputs: FilmInputs, schedule: Schedule, share: tuple[int, int]) -> None:
        self.learner, self.schedule, self.share, self._inputs = learner, schedule, share, inputs
        self.training, self._validation = inputs.films.positions("train"), inputs.films.positions("val")

    def _shuffled(self, epoch: int) -> Iterator[list[int]]:
        return shuffled(self.training, self.schedule.batch, self.share, self._inputs.views.seed, self.draw, epoch)

    def batches(self, epoch: int) -> Iterator[FilmBatch]:
        """Yield a view of every film; in the first epoch the films themselves."""
        for positions in self._shuffled(epoch):
            inputs, targets = self._inputs.activations(positions, epoch - 1), self._inputs.targets(positions, epoch - 1)
            yield FilmBatch(inputs, targets)

    def loss(self, learner: nn.Module, batch: FilmBatch) -> Float[Tensor, ""]:
        """Compute the loss of a batch."""
        return self._loss(learner(batch.activations), batch.targets)

    @abstractmethod
    def _loss(self, output: Any, targets: Targets) -> Float[Tensor, ""]:  # noqa: ANN401 (each stage has its own)
        """Compute the loss from the output of the learner."""

    def _validation_outputs(self) -> Iterator[tuple[Any, float]]:
        """Yield the output for each batch of validation films, and its loss times the number of films."""
        with torch.no_grad(), evaluating(self.learner):
            for positions in in_order(self._validation, self.schedule.batch):
                output = self.learner(self._inputs.activations(positions, 0))
                yield output, float(self._loss(output, self._inputs.targets(positions, 0))) * len(positions)


class _ConceptLearner(nn.Module):
    """Backbone and CAM head, and optionally auxiliary maps of the classes, which are discarded after training."""

    def __init__(self, model: Grape, classes: int) -> None:
        super().__init__()
        self.backbone, self.cam = model.backbone, model.cam
        self.class_maps = CamHead(model.backbone.features, classes) if classes else None

    def forward(self, activations: Float[Tensor, "b c1 h1 w1"]) -> Float[Tensor, "b maps h w"]:
        """Logits at each patch: of the concepts, then of the classes."""
        features = self.backbone.forward_trainable(activations)
        maps: Tensor = self.cam(features)
        return maps if self.class_maps is None else torch.cat([maps, self.class_maps(features)], dim=1)


class ConceptTraining(FilmTraining):
    """Training of stage 1."""

    name = "concepts"
    draw = 1
    schedule: ConceptStage

    def __init__(self, model: Grape, inputs: FilmInputs, schedule: ConceptStage, share: tuple[int, int]) -> None:
        films = inputs.films
        self._concepts = len(films.dataset.concepts)
        learner = _ConceptLearner(model, len(films.dataset.classes) if schedule.class_weight else 0)
        super().__init__(learner.to(inputs.device), inputs, schedule, share)
        known = (~films.labels.isnan()).any(dim=1)
        if schedule.class_weight:
            known |= films.classes != UNKNOWN_CLASS
        self.training = [position for position in self.training if known[position]]
        self._weights = losses.positive_weights(films.labels[self.training], balance=schedule.balance)
        boxed_concepts = films.boxed[self.training].nonzero()[:, 1]
        self._rarity = losses.rarity_weights(boxed_concepts, self._concepts)

    def _shuffled(self, epoch: int) -> Iterator[list[int]]:
        seed = self._inputs.views.seed
        films = self._resampled(epoch) if self.schedule.resample else self.training
        return shuffled(films, self.schedule.batch, self.share, seed, self.draw, epoch)

    def _resampled(self, epoch: int) -> list[int]:
        """As many random films as there are, those with a rare finding more often."""
        weights = losses.film_rarity(self._inputs.films.labels[self.training]).double().numpy()
        generator = np.random.default_rng((self._inputs.views.seed, 2, epoch))
        drawn = generator.choice(self.training, len(self.training), p=weights / weights.sum())
        return [int(position) for position in drawn]

    def _loss(self, output: Float[Tensor, "b maps h w"], targets: Targets) -> Float[Tensor, ""]:
        """Compute the loss of concepts on films, and with their weights, of boxes on patches and of classes."""
        schedule = self.schedule
        logits, concept_maps = pool(output, schedule.pooling, schedule.sharpness), output[:, : self._concepts]
        total = losses.concept_loss(logits[:, : self._concepts], targets.labels, self._weights.to(logits.device))
        if schedule.box_weight:
            boxes = losses.box_loss(concept_maps, targets.overlap, targets.boxes_complete, rivals=schedule.box_rivals)
            total = total + schedule.box_weight * boxes
        if schedule.telling_weight:
            box_classes = losses.box_class_loss(concept_maps, targets.overlap, self._rarity.to(output.device))
            total = total + schedule.telling_weight * box_classes
        if schedule.class_weight:  # divided by all films, with known class or not
            class_logits = logits[:, self._concepts :]
            classes = F.cross_entropy(class_logits, targets.classes, ignore_index=UNKNOWN_CLASS, reduction="sum")
            total = total + schedule.class_weight * (classes / len(class_logits))
        return total

    def validate(self) -> ValidationResult:
        """Compute the mean AUC over the concepts, and over the classes if these are trained too."""
        logits, total, films = [], 0.0, self._inputs.films
        for maps, loss in self._validation_outputs():
            logits.append(pool(maps, self.schedule.pooling, self.schedule.sharpness).cpu())
            total += loss
        truth = films.labels[self._validation]
        if self.schedule.class_weight:
            classes = films.classes[self._validation]
            one_hot = F.one_hot(classes.clamp_min(0), len(films.dataset.classes)).float()
            one_hot[classes == UNKNOWN_CLASS] = torch.nan
            truth = torch.cat([truth, one_hot], 1)
        return ValidationResult(mean_auc(torch.cat(logits), truth), total / max(len(self._validation), 1), "mean AUC")
