"""Evidence after a person corrected it. The original is never touched, and is always what one starts from again.

The boxes of one concept make one importance map of the film: 1 inside positive boxes, 0 inside negative ones (which win
where both lie), alpha = 0.5 elsewhere. As soon as a concept has any box, negative or positive, "elsewhere" counts half:
that is how the method is settled, and so a further positive box never lowers the concept's scores and a negative one
never raises them, in whatever order they were drawn.

A patch that boxes cover in part counts the mean over its area: ``alpha - n + (1 - alpha) * t`` where negative boxes
cover the share ``n`` of it, and boxes of either kind ``t``. The importance is applied to ``(S + 1) / 2``, from 0 to 1,
and mapped back: cosines may be negative, and a plain product would then raise what a negative box should lower.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.concepts import ConceptSet
from medgrape.corrections.statements import BoxCorrection, Correction, Rejection
from medgrape.geometry import Box, PatchGrid, on_film
from medgrape.model.evidence import Evidence

ELSEWHERE = 0.5
"""alpha: what a patch counts beside the boxes of its concept."""


def revise(evidence: Evidence, corrections: Sequence[Correction]) -> Evidence:
    """The evidence as all boxes together make it; concepts without a box keep theirs to the last bit.

    Rejecting a concept changes its scores (``revised_scores``) and leaves its map as the model saw it.
    """
    drawn = [(one, one.rows(evidence.concepts)) for one in corrections if isinstance(one, BoxCorrection)]
    if not drawn:
        return evidence
    revised = {}
    for row in sorted({row for _, rows in drawn for row in rows}):
        own = evidence.similarity[row]
        counts = importance(evidence.grid, [one for one, rows in drawn if row in rows]).to(own.dtype)
        # From -1, nothing like the concept, to what it was: importance * (S + 1) - 1, and exact at both ends.
        revised[row] = torch.lerp(own.new_tensor(-1.0).expand_as(own), own, counts)
    return evidence.revised(revised)


def revised_scores(
    evidence: Evidence, corrections: Sequence[Correction], absent: Float[Tensor, "k m"]
) -> Float[Tensor, "k m"]:
    """What the head is to hear: rejected concepts score as they do on training films without them."""
    gone = rejected(evidence.concepts, corrections)
    silenced = torch.tensor([name in gone for name in evidence.concepts.names])
    return torch.where(silenced[:, None], absent, evidence.scores)


def rejected(concepts: ConceptSet, corrections: Iterable[Correction]) -> frozenset[str]:
    """The concepts that somebody rejected."""
    rows = (row for one in corrections if isinstance(one, Rejection) for row in one.rows(concepts))
    return frozenset(concepts.names[row] for row in rows)


def importance(grid: PatchGrid, drawn: Sequence[BoxCorrection]) -> Float[Tensor, "h w"]:
    """What each patch counts for a concept with these boxes, from 0 to 1."""
    touched = _coverage(grid, [one.box for one in drawn])
    ruled_out = _coverage(grid, [one.box for one in drawn if not one.positive])
    return torch.from_numpy(np.clip(ELSEWHERE - ruled_out + (1.0 - ELSEWHERE) * touched, 0.0, 1.0))


def _coverage(grid: PatchGrid, boxes: Sequence[Box]) -> Float[np.ndarray, "h w"]:
    """How much of each patch the boxes cover together; what two of them cover counts once."""
    covered = np.zeros((grid.rows, grid.columns))
    for piece in _apart([on_film(box, grid) for box in boxes]):
        covered += grid.overlap(piece)
    return np.minimum(covered, 1.0)


def _apart(boxes: Sequence[Box]) -> Iterator[Box]:
    """The same area in boxes that do not overlap, band by band; always the same ones, however it was drawn."""
    edges = sorted({y for box in boxes for y in (box.y1, box.y2)})
    for top, bottom in pairwise(edges):
        spans = sorted((box.x1, box.x2) for box in boxes if box.y1 <= top and bottom <= box.y2)
        for left, right in _joined(spans):
            yield Box(left, top, right, bottom)


def _joined(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans, sorted by their start, with those that touch made one."""
    joined: list[tuple[float, float]] = []
    for left, right in spans:
        if joined and left <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], right)
        else:
            joined.append((left, right))
    return joined
