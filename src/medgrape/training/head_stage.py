"""Stage 4: the head is trained on score matrices; all other parts are frozen."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from medgrape.config import Config, HeadStage
from medgrape.model.grape import Grape
from medgrape.training.film_scores import KeptScores, TrainingScores
from medgrape.training.films import UNKNOWN_CLASS, TrainingFilms, shuffled
from medgrape.training.loop import StageState, TrainingContext, run_stage
from medgrape.training.losses import rarity_weights
from medgrape.training.stage import StageTraining, ValidationResult, evaluating, freeze_except, macro_f1


@dataclass(frozen=True)
class ScoreBatch:
    """Score matrices and classes."""

    scores: Float[Tensor, "b k m"]
    classes: Int[Tensor, " b"]


class HeadTraining(StageTraining):
    """Training of stage 4."""

    name = "head"
    schedule: HeadStage

    def __init__(self, model: Grape, scores: TrainingScores | KeptScores, films: TrainingFilms, config: Config) -> None:
        self.schedule, self._seed, self._device = config.stages.head, config.seed, model.atlas.vectors.device
        self._model, self.learner, self._scores, self._truth = model, model.head, scores.scores, films.classes
        known = films.classes != UNKNOWN_CLASS
        self.training = [film for film in films.positions("train") if known[film]]
        self._validation = [film for film in films.positions("val") if known[film]]
        weights = rarity_weights(self._truth[self.training], len(films.dataset.classes))
        self._weights = weights.to(self._device) if self.schedule.balance else None

    def fit_standard(self) -> None:
        """Fit the statistics of the scores on the training films without augmentation."""
        plain = torch.from_numpy(self._scores[0][self.training])
        self._model.standard.fit(self._mask_discarded(plain.to(self._device)))

    def batches(self, epoch: int) -> Iterator[ScoreBatch]:
        """Yield one view of every training film, another one in each epoch."""
        view = self._scores[(epoch - 1) % len(self._scores)]
        for films in shuffled(self.training, self.schedule.batch, (0, 1), self._seed, 4, epoch):
            yield ScoreBatch(torch.from_numpy(view[films]).to(self._device), self._truth[films].to(self._device))

    def loss(self, learner: nn.Module, batch: ScoreBatch) -> Float[Tensor, ""]:
        """Compute the cross-entropy of the classes."""
        logits = learner(self._model.standard(self._mask_discarded(batch.scores)), self._model.graph)
        return head_loss(logits, batch.classes, self.schedule, self._weights)

    def _mask_discarded(self, scores: Float[Tensor, "b k m"]) -> Float[Tensor, "b used m"]:
        """Return the scores that the head uses, without discarded prototypes and concepts that it does not know."""
        return self._model.atlas.mask_discarded(scores)[:, : self._model.head_concepts]

    @torch.no_grad()
    def validate(self) -> ValidationResult:
        """Compute macro-F1."""
        scores = torch.from_numpy(self._scores[0][self._validation]).to(self._device)
        truth = self._truth[self._validation]
        with evaluating(self.learner):
            logits = self._model.classify(scores).logits
        loss = head_loss(logits, truth.to(self._device), self.schedule, self._weights)
        return ValidationResult(macro_f1(logits.argmax(dim=1).cpu(), truth), float(loss), "macro-F1")


def train_head(
    model: Grape, scores: TrainingScores | KeptScores, films: TrainingFilms, config: Config, context: TrainingContext
) -> StageState:
    """Train the head; all other parts are frozen."""
    freeze_except(model, config.stages.head.learns)
    training = HeadTraining(model, scores, films, config)
    if config.model.standardise:
        training.fit_standard()
    return run_stage(training, context)


def head_loss(
    logits: Float[Tensor, "b classes"],
    classes: Int[Tensor, " b"],
    schedule: HeadStage,
    weights: Float[Tensor, " classes"] | None,
) -> Float[Tensor, ""]:
    """Compute the weighted cross-entropy with smoothed labels."""
    return F.cross_entropy(
        logits, classes, weight=weights, ignore_index=UNKNOWN_CLASS, label_smoothing=schedule.label_smoothing
    )
