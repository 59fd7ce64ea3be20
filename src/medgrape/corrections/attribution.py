"""How much each concept contributes to the classes: the change if the concept scored as on films without it."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.runs.checkpoint import Run

Contributions = Mapping[str, Mapping[str, float]]  # concept to class to difference of probability


@torch.no_grad()
def class_contributions(
    run: Run, scores: Float[Tensor, "k m"], probabilities: Mapping[str, float], rejected: frozenset[str]
) -> Contributions:
    """Return by how much each probability would fall if a concept were rejected.

    ``probabilities`` is the head's output for ``scores``. A ``rejected`` concept already scores as on films without it,
    so it contributes 0. Concepts that are not inputs of the head are left out.
    """
    names = run.concepts.names[: run.model.head_concepts]
    contributions: dict[str, Mapping[str, float]] = {name: dict.fromkeys(probabilities, 0.0) for name in names}
    rows = [row for row, name in enumerate(names) if name not in rejected]
    if rows:
        batch = scores.repeat(len(rows), 1, 1)
        batch[torch.arange(len(rows)), rows] = run.reference_scores.absent[rows]
        outputs = run.model.classify(batch).probabilities.tolist()
        for row, output in zip(rows, outputs, strict=True):
            without = dict(zip(run.classes, output, strict=True))
            contributions[names[row]] = {name: value - without[name] for name, value in probabilities.items()}
    return contributions
