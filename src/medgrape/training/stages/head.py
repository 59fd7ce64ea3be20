"""Stage 4: the head learns on score matrices; the frozen rest has looked at every film once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from medgrape.config import HeadStage
from medgrape.model.grape import Grape
from medgrape.training.films import UNKNOWN_CLASS, TrainingFilms, shuffled, whole_batch
from medgrape.training.losses import rarity_weights
from medgrape.training.stage import Figure, evaluating, macro_f1


@runtime_checkable
class Found(Protocol):
    """Score matrices of all films, wherever they come from."""

    @property
    def scores(self) -> Float[np.ndarray, "views n k m"]:
        """View 0 is the films themselves."""
        ...


@dataclass(frozen=True)
class Batch:
    """Score matrices and classes."""

    scores: Float[Tensor, "b k m"]
    classes: Int[Tensor, " b"]


class HeadLesson:
    """Stage 4 for the loop."""

    name = "head"

    def __init__(
        self, model: Grape, found: Found, films: TrainingFilms, schedule: HeadStage, seed: int, device: torch.device
    ) -> None:
        self.schedule, self._found, self._seed, self._device = schedule, found, seed, device
        self._model, self._classes = model, len(films.dataset.classes)
        self.learner: nn.Module = model.head
        self._truth = films.classes
        known = set(torch.nonzero(films.classes != UNKNOWN_CLASS).flatten().tolist())
        self._learning = [film for film in films.positions("train") if film in known]
        self._validating = [film for film in films.positions("val") if film in known]
        weights = rarity_weights(self._truth[self._learning], self._classes) if schedule.balance else None
        self._weights = None if weights is None else weights.to(device)

    def fit_standard(self) -> None:
        """Learn what scores usually are, from the training films themselves."""
        plain = torch.from_numpy(self._found.scores[0][self._learning])
        self._model.standard.fit(self._heard(plain.to(self._device)))

    def steps(self) -> int:
        """Batches in an epoch."""
        return len(self._learning) // whole_batch(len(self._learning), self.schedule.batch, 1)

    def batches(self, epoch: int) -> Iterator[Batch]:
        """One view of every training film, the next in the next epoch."""
        view = self._found.scores[(epoch - 1) % len(self._found.scores)]
        for films in shuffled(self._learning, self.schedule.batch, (0, 1), self._seed, 4, epoch):
            yield Batch(torch.from_numpy(view[films]).to(self._device), self._truth[films].to(self._device))

    def loss(self, learner: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """Cross-entropy with smoothed labels."""
        logits = learner(self._model.standard(self._heard(batch.scores)), self._model.graph)
        return head_loss(logits, batch.classes, self.schedule, self._weights)

    def _heard(self, scores: Float[Tensor, "b k m"]) -> Float[Tensor, "b judged m"]:
        """What the head is to go by: no discarded prototype, no concept that it does not judge by."""
        return self._model.atlas.heard(scores)[:, : self._model.judged]

    @torch.no_grad()
    def validate(self) -> Figure:
        """Macro-F1."""
        scores = torch.from_numpy(self._found.scores[0][self._validating]).to(self._device)
        truth = self._truth[self._validating]
        with evaluating(self.learner):
            logits = self._model.judge(scores).logits
        loss = head_loss(logits, truth.to(self._device), self.schedule, self._weights)
        return Figure(macro_f1(logits.argmax(dim=1).cpu(), truth), float(loss), "macro-F1")


def head_loss(
    logits: Float[Tensor, "b classes"],
    classes: Int[Tensor, " b"],
    schedule: HeadStage,
    weights: Float[Tensor, " classes"] | None,
) -> Float[Tensor, ""]:
    """Cross-entropy with smoothed labels, rare classes weighed up."""
    return F.cross_entropy(
        logits, classes, weight=weights, ignore_index=UNKNOWN_CLASS, label_smoothing=schedule.label_smoothing
    )
