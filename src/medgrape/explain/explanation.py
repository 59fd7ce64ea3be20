"""The evidence on one film as words and plain data, for programs and for files."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from medgrape.concepts import Concept
from medgrape.explain.words import NOTICE, Words, describe_score, separates, strength
from medgrape.films.film import Film, eight_bit
from medgrape.geometry import Box, FilmSize, PatchGrid, peak


@dataclass(frozen=True)
class Exemplar:
    """The patch of a training film that lies nearest to one prototype."""

    film: str
    prototype: int
    similarity: float
    """Of that patch to the prototype, from -1 to 1."""
    thumbnail: UInt8[np.ndarray, "side side"] = field(repr=False)
    patch: Box
    """In pixels of the thumbnail."""
    picture: int
    """Number of the thumbnail among those of the run."""


@dataclass(frozen=True)
class ConceptEvidence:
    """One concept on one film."""

    concept: Concept
    score: float
    """Highest agreement of the concept's prototypes anywhere on the film: the peak of ``mean``."""
    absent_score: float
    """What the score typically is on training films without the concept."""
    present_score: float
    """What the score typically is on training films with the concept."""
    mean: Float[np.ndarray, "h w"] = field(repr=False)
    """Mean similarity of the concept's prototypes at each patch (mu)."""
    disagreement: Float[np.ndarray, "h w"] = field(repr=False)
    """Variance of those similarities at each patch (U)."""
    exemplars: tuple[Exemplar, ...] = field(repr=False)
    """Of the prototypes that answer most strongly, strongest first; empty where films are withheld."""
    rejected: bool = False
    """Whether a person said that it is not on this film; score and map are still what the model found."""
    moves: Mapping[str, float] | None = None
    """Class to how much of its probability is owed to the concept: what it is now, less what it would be if the concept
    scored as on films without it. All 0 for a rejected one, which scores so already; None where the head does not
    listen to it."""

    @property
    def strength(self) -> float:
        """The score on a scale where films without the concept have about 0 and films with it about 1.

        A rejected concept has 0: it counts as it would on films without it.
        """
        if self.rejected:
            return 0.0
        return strength(self.score, self.absent_score, self.present_score)

    @property
    def is_informative(self) -> bool:
        """Whether the score separates films with the concept from films without it."""
        return separates(self.score, self.absent_score, self.present_score)

    @property
    def words(self) -> Words:
        """The strength in words."""
        if self.rejected:
            return "rejected"
        return describe_score(self.score, self.absent_score, self.present_score)


@dataclass(frozen=True)
class DrawnBox:
    """A box that a person drew on the film."""

    box: Box
    concept: str | None
    """None: all of them."""
    positive: bool
    """Whether the concept is said to be there, or not to be there."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """Everything that goes into the picture, concepts ranked by how much they stand out."""

    shown: Film
    """The whole film, upright."""
    grid: PatchGrid
    probabilities: Mapping[str, float]
    """Class to probability."""
    concepts: tuple[ConceptEvidence, ...]
    attention: Float[np.ndarray, "k k"] | None
    """How much each concept (row, in the model's order) listens to each other; None where the head has no attention."""
    concept_names: tuple[str, ...]
    """In the model's order: what rows and columns of ``attention`` mean."""
    warnings: tuple[str, ...] = ()
    """What to know before trusting it, and what a person corrected."""
    drawn: tuple[DrawnBox, ...] = ()
    """What a person drew, the first box first."""

    @cached_property
    def pixels(self) -> UInt8[np.ndarray, "height width"]:
        """The whole film in 8 bit, worked out only when somebody draws it."""
        return eight_bit(self.shown.pixels)

    @property
    def film(self) -> FilmSize:
        """Size of the original film, the frame of ``peak`` and boxes."""
        return self.grid.film

    def __repr__(self) -> str:
        from medgrape.explain.notebook import in_short

        return in_short(self)

    def _repr_mimebundle_(self, **_formats: object) -> tuple[dict[str, str], dict[str, Any]]:
        """The picture, in a notebook."""
        from medgrape.explain.notebook import explained

        return explained(self)

    def save(self, path: Path | str) -> None:
        """The evidence as one picture."""
        from medgrape.explain.render import save_picture  # drawing is not needed to explain

        save_picture(self, Path(path))

    def to_json(self) -> dict[str, Any]:
        """Plain data, without pixels."""

        return listed(self)


def listed(explanation: Explanation) -> dict[str, Any]:
    """Everything but pixels, ready for JSON; a figure that is not a number becomes null."""
    return {
        "notice": NOTICE,
        "film": {"width": explanation.film.width, "height": explanation.film.height},
        "grid": {"rows": explanation.grid.rows, "columns": explanation.grid.columns},
        "warnings": list(explanation.warnings),
        "drawn": [
            {"concept": one.concept, "positive": one.positive, "box": _box(one.box)} for one in explanation.drawn
        ],
        "probabilities": {name: _number(value) for name, value in explanation.probabilities.items()},
        "concepts": [_concept(evidence, explanation.grid) for evidence in explanation.concepts],
        "attention": _attention(explanation),
    }


def _concept(evidence: ConceptEvidence, grid: PatchGrid) -> dict[str, Any]:
    x, y = peak(evidence.mean, grid)
    return {
        "name": evidence.concept.name,
        "title": evidence.concept.title,
        "score": _number(evidence.score),
        "absent_score": _number(evidence.absent_score),
        "present_score": _number(evidence.present_score),
        "strength": _number(evidence.strength) if evidence.is_informative else None,
        "words": evidence.words,
        "rejected": evidence.rejected,
        "peak": {"x": _number(x, 2), "y": _number(y, 2)},
        "mean": [[_number(value) for value in row] for row in evidence.mean.tolist()],
        "disagreement": [[_significant(value) for value in row] for row in evidence.disagreement.tolist()],
        "moves": None if evidence.moves is None else {name: _number(by) for name, by in evidence.moves.items()},
        "exemplars": [_exemplar(exemplar) for exemplar in evidence.exemplars],
    }


def _exemplar(exemplar: Exemplar) -> dict[str, Any]:
    return {
        "film": exemplar.film,
        "prototype": int(exemplar.prototype),
        "similarity": _number(exemplar.similarity),
        "picture": exemplar.picture,
        "thumbnail_side": int(exemplar.thumbnail.shape[0]),
        "patch": _box(exemplar.patch),
    }


def _box(box: Box) -> dict[str, float | None]:
    return {"x1": _number(box.x1, 2), "y1": _number(box.y1, 2), "x2": _number(box.x2, 2), "y2": _number(box.y2, 2)}


def _attention(explanation: Explanation) -> list[dict[str, Any]] | None:
    """Every edge along which something was heard, or None where the head has no attention."""
    if explanation.attention is None:
        return None
    names = explanation.concept_names
    return [
        {"listener": names[listener], "speaker": names[speaker], "weight": _number(weight)}
        for (listener, speaker), weight in np.ndenumerate(explanation.attention)
        if weight != 0
    ]


def _number(value: float, digits: int = 4) -> float | None:
    return round(float(value), digits) if math.isfinite(value) else None


def _significant(value: float) -> float | None:
    """Four digits that count: variances that matter may be as small as 0.0002."""
    return float(f"{value:.4g}") if math.isfinite(value) else None
