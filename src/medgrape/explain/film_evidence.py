"""The evidence on one film as data: concepts, scores, maps, training films, classes and attention."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from medgrape.concepts import Concept
from medgrape.explain.words import NOTICE, Words, describe_score, format_probabilities, separates, strength
from medgrape.films.film import Film, eight_bit
from medgrape.geometry import Box, FilmSize, PatchGrid, peak


@dataclass(frozen=True)
class Exemplar:
    """The patch of a training film that is nearest to a prototype."""

    film: str
    prototype: int
    similarity: float
    """Cosine of the patch with the prototype, from -1 to 1."""
    thumbnail: UInt8[np.ndarray, "side side"] = field(repr=False)
    patch: Box
    """In pixels of the thumbnail."""
    picture: int
    """Index of the thumbnail in the run."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data, without pixels."""
        return {
            "film": self.film,
            "prototype": int(self.prototype),
            "similarity": _round(self.similarity),
            "picture": self.picture,
            "thumbnail_side": int(self.thumbnail.shape[0]),
            "patch": _box_to_json(self.patch),
        }


@dataclass(frozen=True)
class ConceptEvidence:
    """The evidence for one concept on one film."""

    concept: Concept
    score: float
    """Maximum of ``mean``."""
    absent_score: float
    """Typical score on training films without the concept."""
    present_score: float
    """Typical score on training films with the concept."""
    mean: Float[np.ndarray, "h w"] = field(repr=False)
    """Mean similarity of the concept's prototypes at each patch (mu)."""
    disagreement: Float[np.ndarray, "h w"] = field(repr=False)
    """Variance of those similarities at each patch (U)."""
    exemplars: tuple[Exemplar, ...] = field(repr=False)
    """Exemplars of the strongest prototypes, strongest first; empty if films are withheld."""
    rejected: bool = False
    """Whether a person rejected the concept; score and map remain those of the model."""
    moves: Mapping[str, float] | None = None
    """Contribution to each class: its probability minus the probability if the concept scored as on films without it.
    All 0 for a rejected concept; None if the concept is not an input of the head."""

    @property
    def strength(self) -> float:
        """The score scaled so that typical films without the concept have 0 and with it 1; 0 if it is rejected."""
        return 0.0 if self.rejected else strength(self.score, self.absent_score, self.present_score)

    @property
    def is_informative(self) -> bool:
        """Whether the score separates films with the concept from films without it."""
        return separates(self.score, self.absent_score, self.present_score)

    @property
    def words(self) -> Words:
        """The strength in words."""
        return "rejected" if self.rejected else describe_score(self.score, self.absent_score, self.present_score)

    def to_json(self, grid: PatchGrid) -> dict[str, Any]:
        """Return plain data, with the peak in pixels of the film."""
        x, y = peak(self.mean, grid)
        return {
            "name": self.concept.name,
            "title": self.concept.title,
            "score": _round(self.score),
            "absent_score": _round(self.absent_score),
            "present_score": _round(self.present_score),
            "strength": _round(self.strength) if self.is_informative else None,
            "words": self.words,
            "rejected": self.rejected,
            "peak": {"x": _round(x, 2), "y": _round(y, 2)},
            "mean": [[_round(value) for value in row] for row in self.mean.tolist()],
            "disagreement": [[_round_significant(value) for value in row] for row in self.disagreement.tolist()],
            "moves": None if self.moves is None else {name: _round(value) for name, value in self.moves.items()},
            "exemplars": [exemplar.to_json() for exemplar in self.exemplars],
        }


@dataclass(frozen=True)
class DrawnBox:
    """A box that a person drew on the film."""

    box: Box
    concept: str | None
    """None: every concept."""
    positive: bool
    """Whether the concept is inside the box, or is not."""


@dataclass(frozen=True, repr=False)
class FilmEvidence:
    """The evidence on one film, with concepts ranked by strength."""

    shown: Film
    """The whole film, upright."""
    grid: PatchGrid
    probabilities: Mapping[str, float]
    """Class to probability."""
    concepts: tuple[ConceptEvidence, ...]
    attention: Float[np.ndarray, "k k"] | None
    """How much each concept (row, in the model's order) attends to each other; None for a head without attention."""
    concept_names: tuple[str, ...]
    """Concepts in the model's order: rows and columns of ``attention``."""
    warnings: tuple[str, ...] = ()
    """Limits of the evidence, and the corrections of a person."""
    drawn: tuple[DrawnBox, ...] = ()
    """Boxes that a person drew, oldest first."""

    @cached_property
    def pixels(self) -> UInt8[np.ndarray, "height width"]:
        """The whole film in 8 bit."""
        return eight_bit(self.shown.pixels)

    @property
    def film(self) -> FilmSize:
        """Size of the original film, in whose pixels peaks and boxes are given."""
        return self.grid.film

    def __repr__(self) -> str:
        found = ", ".join(f"{evidence.concept.name}: {evidence.words}" for evidence in self.concepts[:4])
        return f"{type(self).__name__}({format_probabilities(self.probabilities)}; {found})"

    def to_json(self) -> dict[str, Any]:
        """Return plain data, without pixels; numbers that are not finite become null."""
        return {
            "notice": NOTICE,
            "film": {"width": self.film.width, "height": self.film.height},
            "grid": {"rows": self.grid.rows, "columns": self.grid.columns},
            "warnings": list(self.warnings),
            "drawn": [
                {"concept": drawn.concept, "positive": drawn.positive, "box": _box_to_json(drawn.box)}
                for drawn in self.drawn
            ],
            "probabilities": {name: _round(value) for name, value in self.probabilities.items()},
            "concepts": [evidence.to_json(self.grid) for evidence in self.concepts],
            "attention": None if self.attention is None else [
                {"listener": self.concept_names[row], "speaker": self.concept_names[column], "weight": _round(weight)}
                for (row, column), weight in np.ndenumerate(self.attention) if weight != 0
            ],
        }  # fmt: skip


def _box_to_json(box: Box) -> dict[str, float | None]:
    return {name: _round(value, 2) for name, value in zip(("x1", "y1", "x2", "y2"), box.corners, strict=True)}


def _round(value: float, digits: int = 4) -> float | None:
    return round(float(value), digits) if math.isfinite(value) else None


def _round_significant(value: float) -> float | None:
    """Round to four significant digits, as relevant variances may be as small as 0.0002."""
    return float(f"{value:.4g}") if math.isfinite(value) else None
