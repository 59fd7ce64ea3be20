"""What prototypes do on training films, and what a model is worth on validation films; test films are not read."""

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

    def metrics(self, answers: Int[Tensor, " n"]) -> ValidationMetrics:
        """How good these answers are."""
        return ValidationMetrics(macro_f1(answers, self.truth), float((answers == self.truth).float().mean()))

    @property
    def trivial(self) -> ValidationMetrics:
        """Always naming the class that is most frequent in training."""
        return self.metrics(torch.full_like(self.truth, self.common))

    @property
    def trivial_answer(self) -> str:
        """Which class that is."""
        return self.classes[self.common]


@dataclass(frozen=True)
class ParentComparison:
    """What the change from another model to this one did, on the same films."""

    before: ValidationMetrics
    changed: int
    """Films whose class is another now."""


@dataclass(frozen=True)
class Assessment:
    """All that a data set tells about a model."""

    data_set: str
    checksum: str
    its_own: bool
    """Whether the run was trained on that very data set."""
    usage: Usage
    films: int
    """Validation films whose class is known."""
    metrics: ValidationMetrics
    trivial: ValidationMetrics
    """Always naming the class that is most frequent in training."""
    trivial_answer: str
    effect: ParentComparison | None
    """None where there is no model to compare with."""


def assess(reader: Reader, data: Path, *, parent: Reader | None = None, track: Track = quietly) -> Assessment:
    """Look at every film once, or at none where the same atlas has looked before; ``parent`` is compared with."""
    run, described = reader.loaded.run, checksum(data)
    films = films_for(run, data, track)
    found, validation = kept_scores(run, films, data, track=track), ValidationFilms.of(films)
    answers, effect = validation.answers(run.grape, found), None
    if parent is not None:
        before = parent.loaded.run
        others = validation.answers(before.grape, kept_scores(before, films, data, track=track))
        effect = ParentComparison(validation.metrics(others), int((others != answers).sum()))
    return Assessment(
        data_set=films.dataset.name,
        checksum=described,
        its_own=reader.loaded.manifest.dataset["checksum"] == described,
        usage=usage_on(run, films, found),
        films=len(validation),
        metrics=validation.metrics(answers),
        trivial=validation.trivial,
        trivial_answer=validation.trivial_answer,
        effect=effect,
    )
