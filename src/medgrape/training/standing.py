"""How good a model's answers are on validation films, and what the trivial answer gets there."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from medgrape.model.grape import Grape
from medgrape.training.films import UNKNOWN_CLASS, TrainingFilms
from medgrape.training.kept_scores import KeptScores
from medgrape.training.scoring import macro_f1


@dataclass(frozen=True)
class Standing:
    """How good answers are on validation films."""

    macro_f1: float
    accuracy: float


@dataclass(frozen=True)
class ValidationFilms:
    """Validation films whose class is known."""

    positions: tuple[int, ...]
    """Among all films of the set."""
    truth: Int[Tensor, " n"]
    common: int
    """The class that is most frequent in training."""
    classes: tuple[str, ...]

    @classmethod
    def of(cls, films: TrainingFilms) -> "ValidationFilms":
        """Those of a set."""
        known = tuple(film for film in films.positions("val") if films.classes[film] != UNKNOWN_CLASS)
        learnt = films.classes[films.positions("train")]
        counts = torch.bincount(learnt[learnt != UNKNOWN_CLASS], minlength=len(films.dataset.classes))
        return cls(known, films.classes[list(known)], int(counts.argmax()), films.dataset.classes)

    def __len__(self) -> int:
        return len(self.positions)

    @torch.no_grad()
    def answers(self, model: Grape, found: KeptScores) -> Int[Tensor, " n"]:
        """The class that a model gives each of them; the scores may be those of a model that learnt more since."""
        scores: Float[Tensor, "n k m"] = torch.from_numpy(found.scores[0][list(self.positions)])
        return model.judge(scores[:, : model.atlas.kept.shape[0]]).logits.argmax(dim=1)

    def standing(self, answers: Int[Tensor, " n"]) -> Standing:
        """How good these answers are."""
        return Standing(macro_f1(answers, self.truth), float((answers == self.truth).float().mean()))

    @property
    def trivial(self) -> Standing:
        """Always naming the class that is most frequent in training."""
        return self.standing(torch.full_like(self.truth, self.common))

    @property
    def trivial_answer(self) -> str:
        """Which class that is."""
        return self.classes[self.common]
