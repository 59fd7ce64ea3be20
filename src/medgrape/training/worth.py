"""What prototypes do on training films, and what a model is worth on validation films; test films are not read."""

from dataclasses import dataclass
from pathlib import Path

from medgrape.data.dataset import checksum
from medgrape.feedback.curation import Usage
from medgrape.feedback.reader import Reader
from medgrape.progress import Track, quietly
from medgrape.training.kept_scores import films_for, kept_scores, usage_on
from medgrape.training.standing import Standing, ValidationFilms


@dataclass(frozen=True)
class Effect:
    """What the change from another model to this one did, on the same films."""

    before: Standing
    changed: int
    """Films whose class is another now."""


@dataclass(frozen=True)
class Worth:
    """All that a data set tells about a model."""

    data_set: str
    checksum: str
    its_own: bool
    """Whether the run was trained on that very data set."""
    usage: Usage
    films: int
    """Validation films whose class is known."""
    standing: Standing
    trivial: Standing
    """Always naming the class that is most frequent in training."""
    trivial_answer: str
    effect: Effect | None
    """None where there is no model to compare with."""


def worth_of(reader: Reader, data: Path, *, parent: Reader | None = None, track: Track = quietly) -> Worth:
    """Look at every film once, or at none where the same atlas has looked before; ``parent`` is compared with."""
    run, described = reader.loaded.run, checksum(data)
    films = films_for(run, data, track)
    found, validation = kept_scores(run, films, data, track=track), ValidationFilms.of(films)
    answers, effect = validation.answers(run.grape, found), None
    if parent is not None:
        before = parent.loaded.run
        others = validation.answers(before.grape, kept_scores(before, films, data, track=track))
        effect = Effect(validation.standing(others), int((others != answers).sum()))
    return Worth(
        data_set=films.dataset.name,
        checksum=described,
        its_own=reader.loaded.manifest.dataset["checksum"] == described,
        usage=usage_on(run, films, found),
        films=len(validation),
        standing=validation.standing(answers),
        trivial=validation.trivial,
        trivial_answer=validation.trivial_answer,
        effect=effect,
    )
