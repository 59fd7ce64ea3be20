"""Evidence after corrections, always computed from the original evidence, which does not change.

The boxes of one concept make one importance map of the film: 1 inside positive boxes, 0 inside negative ones (which win
where both overlap), alpha = 0.5 elsewhere. "Elsewhere" has 0.5 as soon as a concept has any box, positive or negative.
So a further positive box never lowers the concept's scores, and a negative one never raises them, in any order.

A patch that boxes cover in part has the mean over its area: ``alpha - n + (1 - alpha) * t`` where negative boxes cover
the fraction ``n`` of it, and boxes of either kind ``t``. The importance is applied to ``(S + 1) / 2``, from 0 to 1, and
mapped back: cosines may be negative, and a plain product would then raise what a negative box should lower.
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

ELSEWHERE = 0.5  # alpha: importance of a patch outside the boxes of its concept


def revise(evidence: Evidence, corrections: Sequence[Correction]) -> Evidence:
    """Return the evidence after all boxes; concepts without a box keep theirs to the last bit.

    A rejection changes the scores (``revised_scores``) and not the map.
    """
    boxes = [(box, box.rows(evidence.concepts)) for box in corrections if isinstance(box, BoxCorrection)]
    if not boxes:
        return evidence
    revised = {}
    for row in sorted({row for _, rows in boxes for row in rows}):
        maps = evidence.similarity[row]
        weights = importance(evidence.grid, [box for box, rows in boxes if row in rows]).to(maps.dtype)
        # importance * (S + 1) - 1, which is exact for importance 0 (no similarity) and 1 (no change)
        revised[row] = torch.lerp(maps.new_tensor(-1.0).expand_as(maps), maps, weights)
    return evidence.revised(revised)


def revised_scores(
    evidence: Evidence, corrections: Sequence[Correction], absent: Float[Tensor, "k m"]
) -> Float[Tensor, "k m"]:
    """Return the input of the head, where rejected concepts have the scores ``absent`` of films without them."""
    names = rejected(evidence.concepts, corrections)
    is_rejected = torch.tensor([name in names for name in evidence.concepts.names])
    return torch.where(is_rejected[:, None], absent, evidence.scores)


def rejected(concepts: ConceptSet, corrections: Iterable[Correction]) -> frozenset[str]:
    """Return the names of the rejected concepts."""
    rejections = (correction for correction in corrections if isinstance(correction, Rejection))
    return frozenset(concepts.names[row] for rejection in rejections for row in rejection.rows(concepts))


def importance(grid: PatchGrid, corrections: Sequence[BoxCorrection]) -> Float[Tensor, "h w"]:
    """Return the importance of each patch for a concept with these boxes, from 0 to 1."""
    covered = _coverage(grid, [box.box for box in corrections])
    ruled_out = _coverage(grid, [box.box for box in corrections if not box.positive])
    return torch.from_numpy(np.clip(ELSEWHERE - ruled_out + (1.0 - ELSEWHERE) * covered, 0.0, 1.0))


def _coverage(grid: PatchGrid, boxes: Sequence[Box]) -> Float[np.ndarray, "h w"]:
    """Return the fraction of each patch that the union of the boxes covers."""
    pieces = _disjoint([on_film(box, grid) for box in boxes])
    return np.minimum(sum(map(grid.overlap, pieces), np.zeros((grid.rows, grid.columns))), 1.0)


def _disjoint(boxes: Sequence[Box]) -> Iterator[Box]:
    """Yield boxes without overlap that cover the same area, band by band, whatever the order of ``boxes``."""
    edges = sorted({y for box in boxes for y in (box.y1, box.y2)})
    for top, bottom in pairwise(edges):
        band: list[Box] = []
        for left, right in sorted((box.x1, box.x2) for box in boxes if box.y1 <= top and bottom <= box.y2):
            if band and left <= band[-1].x2:
                touching = band.pop()
                left, right = touching.x1, max(touching.x2, right)
            band.append(Box(left, top, right, bottom))
        yield from band
