"""What moved the classes: how each would stand if one concept scored as on films without it."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.runs.checkpoint import Run

Moves = Mapping[str, Mapping[str, float]]
"""Concept to class to probability."""


@torch.no_grad()
def moves(run: Run, heard: Float[Tensor, "k m"], shares: Mapping[str, float], silent: frozenset[str]) -> Moves:
    """By how much each concept moved each class: its probability now less that with the concept silenced.

    ``heard`` is what the head heard, ``shares`` what it made of it, and ``silent`` what a person rejected: those score
    as on films without them already, so they move nothing. Concepts that the head does not listen to are left out.
    """
    names = run.concepts.names[: run.model.judged]
    rows = [row for row, name in enumerate(names) if name not in silent]
    moved: dict[str, Mapping[str, float]] = {name: dict.fromkeys(shares, 0.0) for name in names}
    if rows:
        without = run.model.judge(_silenced(heard, rows, run.usual.absent)).probabilities.tolist()
        for row, others in zip(rows, without, strict=True):
            other = dict(zip(run.classes, others, strict=True))
            moved[names[row]] = {one: share - other[one] for one, share in shares.items()}
    return moved


def _silenced(heard: Float[Tensor, "k m"], rows: list[int], absent: Float[Tensor, "k m"]) -> Float[Tensor, "b k m"]:
    """The scores once for each of the rows, with that row as on films without the concept."""
    several = heard.repeat(len(rows), 1, 1)
    several[torch.arange(len(rows)), rows] = absent[rows]
    return several
