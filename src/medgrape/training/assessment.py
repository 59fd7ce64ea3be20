"""Validation metrics of a model, and how its prototypes are used on training films; test films are not read."""

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from medgrape.datasets.dataset import checksum
from medgrape.model.grape import Grape
from medgrape.progress import Track, quietly
from medgrape.reader import Reader
from medgrape.training.film_scores import KeptScores, films_for, kept_scores, usage_on
from medgrape.training.films import UNKNOWN_CLASS, TrainingFilms
from medgrape.training.stage import macro_f1
from medgrape.vocabulary.curation import Usage


@dataclass(frozen=True)
class ValidationMetrics:
    """Metrics on the validation films."""

    macro_f1: float
    accuracy: float


@dataclass(frozen=True)
class ValidationFilms:
    """Validation films with a known class."""

    positions: tuple[int, ...]  # Positions among all films
    truth: Int[Tensor, " n"]
    common: int  # The most frequent class of the training films
    classes: tuple[str, ...]

    @classmethod
    def of(cls, films: TrainingFilms) -> "ValidationFilms":
        """Select the validation films."""
        known = tuple(film for film in films.positions("val") if films.classes[film] != UNKNOWN_CLASS)
        learnt = films.classes[films.positions("train")]
        counts = torch.bincount(learnt[learnt != UNKNOWN_CLASS], minlength=len(films.dataset.classes))
        return cls(known, films.classes[list(known)], int(counts.argmax()), films.dataset.classes)

    def __len__(self) -> int:
        return len(self.positions)

    @torch.no_grad()
    def answers(self, model: Grape, scores: KeptScores) -> Int[Tensor, " n"]:
        """Predict the class of each film; the scores may include concepts that were added after ``model``."""
        plain: Float[Tensor, "n k m"] = torch.from_numpy(scores.scores[0][list(self.positions)])
        return model.classify(plain[:, : model.atlas.kept.shape[0]]).logits.argmax(dim=1)

    def metrics(self, answers: Int[Tensor, " n"]) -> ValidationMetrics:
        """Evaluate predicted classes."""
        return ValidationMetrics(macro_f1(answers, self.truth), float((answers == self.truth).float().mean()))

    @property
    def trivial(self) -> ValidationMetrics:
        """Metrics of always predicting the most frequent class of the training films."""
        return self.metrics(torch.full_like(self.truth, self.common))

    @property
    def trivial_answer(self) -> str:
        """The most frequent class of the training films."""
        return self.classes[self.common]


@dataclass(frozen=True)
class ParentComparison:
    """Comparison with another model on the same films."""

    before: ValidationMetrics
    changed: int  # Number of films with another predicted class


@dataclass(frozen=True)
class Assessment:
    """Metrics of a model on a data set."""

    data_set: str
    checksum: str
    its_own: bool  # Whether the run was trained on this data set
    usage: Usage
    films: int  # Number of validation films with a known class
    metrics: ValidationMetrics
    trivial: ValidationMetrics  # Metrics of always predicting the most frequent class of the training films
    trivial_answer: str
    effect: ParentComparison | None  # None without a model to compare with


def assess(reader: Reader, data: Path, *, parent: Reader | None = None, track: Track = quietly) -> Assessment:
    """Assess a model and compare it with ``parent``. Every film is read once, unless its scores are cached."""
    run, data_checksum = reader.loaded.run, checksum(data)
    films = films_for(run, data, track)
    scores, validation = kept_scores(run, films, data, track=track), ValidationFilms.of(films)
    answers, effect = validation.answers(run.grape, scores), None
    if parent is not None:
        before = parent.loaded.run
        others = validation.answers(before.grape, kept_scores(before, films, data, track=track))
        effect = ParentComparison(validation.metrics(others), int((others != answers).sum()))
    its_own = reader.loaded.manifest.dataset["checksum"] == data_checksum
    return Assessment(
        data_set=films.dataset.name, checksum=data_checksum, its_own=its_own, usage=usage_on(run, films, scores),
        films=len(validation), metrics=validation.metrics(answers), trivial=validation.trivial,
        trivial_answer=validation.trivial_answer, effect=effect,
    )  # fmt: skip
