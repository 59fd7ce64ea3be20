"""Stage 1: the backbone and its CAM head learn which findings a film shows, and, given boxes, where."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from medgrape.config import ConceptStage
from medgrape.model.cam import CamHead, pool
from medgrape.model.grape import Grape
from medgrape.training.films import UNKNOWN_CLASS, Targets, in_order, shuffled, whole_batch
from medgrape.training.losses import box_loss, concept_loss, film_rarity, positive_weights, rarity_weights, telling_loss
from medgrape.training.stage import Figure, evaluating, mean_auc
from medgrape.training.stored_features import Inputs


class ConceptLearner(nn.Module):
    """Backbone and CAM head, and while they learn perhaps maps for the classes, which nobody keeps."""

    def __init__(self, model: Grape, classes: int) -> None:
        super().__init__()
        self.backbone, self.cam = model.backbone, model.cam
        self.class_maps = CamHead(model.backbone.features, classes) if classes else None

    def forward(self, activations: Float[Tensor, "b c1 h1 w1"]) -> Float[Tensor, "b maps h w"]:
        """Logits at each patch: the concepts' first, then the classes'."""
        features = self.backbone.late(activations)
        maps: Tensor = self.cam(features)
        return maps if self.class_maps is None else torch.cat([maps, self.class_maps(features)], dim=1)


@dataclass(frozen=True)
class Batch:
    """What the learner sees and what is known about it."""

    activations: Float[Tensor, "b c1 h1 w1"]
    targets: Targets


class ConceptLesson:
    """Stage 1 for the loop."""

    name = "concepts"

    def __init__(self, model: Grape, inputs: Inputs, schedule: ConceptStage, seed: int, share: tuple[int, int]) -> None:
        self.schedule, self._inputs, self._seed, self._share = schedule, inputs, seed, share
        self._concepts = len(inputs.films.dataset.concepts)
        classes = len(inputs.films.dataset.classes) if schedule.class_weight else 0
        self.learner: nn.Module = ConceptLearner(model, classes).to(inputs.device)
        self._learning, self._validating = self._telling("train"), inputs.films.positions("val")
        self._weights = positive_weights(inputs.films.labels[self._learning], balance=schedule.balance)
        self._rarity = rarity_weights(inputs.films.boxed_pairs(self._learning), self._concepts)

    def _telling(self, split: str) -> list[int]:
        """Films of a split that anything can be learnt from: a finding is known, or the class where it is asked for."""
        films = self._inputs.films
        known = (~films.labels.isnan()).any(dim=1)
        if self.schedule.class_weight:
            known |= films.classes != UNKNOWN_CLASS
        return [position for position in films.positions(split) if known[position]]

    def steps(self) -> int:
        """Batches in an epoch."""
        return len(self._learning) // whole_batch(len(self._learning), self.schedule.batch, self._share[1])

    def batches(self, epoch: int) -> Iterator[Batch]:
        """A view of every film; the films themselves come first."""
        films = self._drawn(epoch) if self.schedule.resample else self._learning
        for positions in shuffled(films, self.schedule.batch, self._share, self._seed, 1, epoch):
            number = epoch - 1 if self.schedule.augment else 0
            yield Batch(self._inputs.activations(positions, number), self._inputs.targets(positions, number))

    def _drawn(self, epoch: int) -> list[int]:
        """As many films as there are, by lot, those with a rare finding more often."""
        weights = film_rarity(self._inputs.films.labels[self._learning]).double().numpy()
        chance = np.random.default_rng((self._seed, 2, epoch))
        drawn = chance.choice(self._learning, len(self._learning), p=weights / weights.sum())
        return [int(position) for position in drawn]

    def loss(self, learner: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """Concepts on whole films; where asked for, boxes on patches and classes on whole films."""
        return self._loss(learner(batch.activations), batch.targets)

    def _loss(self, maps: Float[Tensor, "b maps h w"], targets: Targets) -> Float[Tensor, ""]:
        logits = pool(maps, self.schedule.pooling, self.schedule.sharpness)
        total = concept_loss(logits[:, : self._concepts], targets.labels, self._weights.to(logits.device))
        seen = maps[:, : self._concepts]
        if self.schedule.box_weight:
            rivals = self.schedule.box_rivals
            total = total + self.schedule.box_weight * box_loss(seen, targets.overlap, targets.judged, rivals=rivals)
        if self.schedule.telling_weight:
            told = telling_loss(seen, targets.overlap, self._rarity.to(maps.device))
            total = total + self.schedule.telling_weight * told
        if self.schedule.class_weight:
            total = total + self.schedule.class_weight * class_loss(logits[:, self._concepts :], targets)
        return total

    @torch.no_grad()
    def validate(self) -> Figure:
        """Mean AUC over the concepts, and over the classes where these are learnt too."""
        logits, losses = [], []
        with evaluating(self.learner):
            for positions in in_order(self._validating, self.schedule.batch):
                maps = self.learner(self._inputs.activations(positions, 0)).float()
                losses.append(float(self._loss(maps, self._inputs.targets(positions, 0))) * len(positions))
                logits.append(pool(maps, self.schedule.pooling, self.schedule.sharpness).cpu())
        films = self._inputs.films
        truth = films.labels[self._validating]
        if self.schedule.class_weight:
            truth = torch.cat([truth, one_hot_classes(films.classes[self._validating], len(films.dataset.classes))], 1)
        return Figure(mean_auc(torch.cat(logits), truth), sum(losses) / max(len(self._validating), 1), "mean AUC")


def class_loss(logits: Float[Tensor, "b classes"], targets: Targets) -> Float[Tensor, ""]:
    """Cross-entropy, summed over films whose class is known and divided by all."""
    return F.cross_entropy(logits, targets.classes, ignore_index=UNKNOWN_CLASS, reduction="sum") / len(logits)


def one_hot_classes(classes: Tensor, count: int) -> Float[Tensor, "n classes"]:
    """1 for a film's class, 0 for the others, NaN where it is not known."""
    known = classes != UNKNOWN_CLASS
    rows = F.one_hot(classes.clamp_min(0), count).float()
    return torch.where(known.unsqueeze(1), rows, torch.full_like(rows, torch.nan))
