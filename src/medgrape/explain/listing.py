"""The evidence on one film as words and plain data, for programs and for files."""

import math
from typing import Any

import numpy as np

from medgrape.explain.explanation import ConceptEvidence, Exemplar, Explanation
from medgrape.explain.words import NOTICE, Words, parts, seen
from medgrape.geometry import Box, PatchGrid, peak


def tells(evidence: ConceptEvidence) -> bool:
    """Whether the concept's score can part films with it from films without it."""
    return parts(evidence.score, evidence.absent_score, evidence.present_score)


def in_words(evidence: ConceptEvidence) -> Words:
    """How strongly a concept is seen, as one would say it."""
    if evidence.rejected:
        return "rejected"
    return seen(evidence.score, evidence.absent_score, evidence.present_score)


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
        "strength": _number(evidence.strength) if tells(evidence) else None,
        "words": in_words(evidence),
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
