"""The variant without stages: everything learns at once, by the sum of the three losses (paper, appendix N4)."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from medgrape.config import Config, EndToEndStage
from medgrape.model.cam import concept_vectors, pool
from medgrape.model.evidence import scores
from medgrape.model.grape import Grape
from medgrape.training.films import UNKNOWN_CLASS, Targets, in_order, shuffled, whole_batch
from medgrape.training.losses import concept_loss, positive_weights, rarity_weights
from medgrape.training.stage import Figure, evaluating, macro_f1
from medgrape.training.stages.concepts import Batch
from medgrape.training.stages.head import head_loss
from medgrape.training.stages.prototypes import Batch as VectorBatch
from medgrape.training.stages.prototypes import prototype_loss
from medgrape.training.stored_features import Inputs


class Everything(NamedTuple):
    """All that the three losses need, from one pass; a tuple, because Lightning passes no frozen dataclass on."""

    maps: Float[Tensor, "b k h w"]
    vectors: Float[Tensor, "b k c"]
    logits: Float[Tensor, "b classes"]


class WholeLearner(nn.Module):
    """The model, asked for everything at once."""

    def __init__(self, model: Grape) -> None:
        super().__init__()
        self.model = model

    def forward(self, activations: Float[Tensor, "b c1 h1 w1"]) -> Everything:
        """Maps, concept vectors and classes."""
        features = self.model.backbone.late(activations)
        maps = self.model.cam(features)
        found = scores(self.model.projector.patches(features), self.model.atlas.prototypes)
        return Everything(maps, concept_vectors(features, maps), self.model.judge(found).logits)


class EndToEndLesson:
    """The variant for the loop."""

    name = "end_to_end"

    def __init__(self, model: Grape, inputs: Inputs, config: Config, share: tuple[int, int]) -> None:
        self._config, self._inputs, self._share, self._model = config, inputs, share, model
        self.schedule: EndToEndStage = config.stages.end_to_end
        self.learner: nn.Module = WholeLearner(model).to(inputs.device)
        films = inputs.films
        self._learning, self._validating = films.positions("train"), films.positions("val")
        labels, classes = films.labels[self._learning], films.classes[self._learning]
        self._positive = positive_weights(labels, balance=config.stages.concepts.balance)
        counts = len(films.dataset.classes)
        known = classes[classes != UNKNOWN_CLASS]
        self._classes = rarity_weights(known, counts) if config.stages.head.balance else torch.ones(counts)
        shown = torch.nonzero(labels == 1)[:, 1]
        groups = labels.shape[1]
        self._groups = rarity_weights(shown, groups) if config.stages.prototypes.balance else torch.ones(groups)

    def steps(self) -> int:
        """Batches in an epoch."""
        return len(self._learning) // whole_batch(len(self._learning), self.schedule.batch, self._share[1])

    def batches(self, epoch: int) -> Iterator[Batch]:
        """A view of every film."""
        for positions in shuffled(self._learning, self.schedule.batch, self._share, self._config.seed, 5, epoch):
            number = epoch - 1 if self._config.stages.concepts.augment else 0
            yield Batch(self._inputs.activations(positions, number), self._inputs.targets(positions, number))

    def loss(self, learner: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """Concepts, prototypes and classes."""
        return self._loss(learner(batch.activations), batch.targets)

    def _loss(self, seen: Everything, targets: Targets) -> Float[Tensor, ""]:
        stages, device = self._config.stages, seen.maps.device
        logits = pool(seen.maps, stages.concepts.pooling, stages.concepts.sharpness)
        total = concept_loss(logits, targets.labels, self._positive.to(device))
        rows, groups = _shown(targets.labels)
        if len(rows):
            vectors = VectorBatch(seen.vectors[rows, groups], groups)
            total = total + prototype_loss(self._model, vectors, stages.prototypes, self._groups)
        if bool((targets.classes != UNKNOWN_CLASS).any()):
            total = total + head_loss(seen.logits, targets.classes, stages.head, self._classes.to(device))
        return total + 0.0 * (seen.logits.sum() + self._everywhere())

    def _everywhere(self) -> Float[Tensor, ""]:
        """Touches what a batch without findings leaves out: all processes must have the same gradients."""
        text = self._model.anchors
        return self._model.atlas.vectors.sum() + (0.0 if text is None else text().sum())

    @torch.no_grad()
    def validate(self) -> Figure:
        """Macro-F1."""
        answers, losses = [], []
        with evaluating(self.learner):
            for positions in in_order(self._validating, self.schedule.batch):
                seen = self.learner(self._inputs.activations(positions, 0))
                losses.append(float(self._loss(seen, self._inputs.targets(positions, 0))) * len(positions))
                answers.append(seen.logits.argmax(dim=1).cpu())
        truth = self._inputs.films.classes[self._validating]
        known = truth != UNKNOWN_CLASS
        score = macro_f1(torch.cat(answers)[known], truth[known])
        return Figure(score, sum(losses) / max(len(self._validating), 1), "macro-F1")


def _shown(labels: Float[Tensor, "b k"]) -> tuple[Int[Tensor, " n"], Int[Tensor, " n"]]:
    """Films and concepts of a batch that go together."""
    found = torch.nonzero(labels == 1)
    return found[:, 0], found[:, 1]
