"""The concept-mismatch check: does the model see inside a box what a person says is there? (Paper, Module B.)

- A box over the edge of the film counts with the part on the film.
- A box outside the film is an error.
- A box smaller than a patch weighs each patch by the fraction of it that the box covers.
- A box over the whole film is compared with means over the whole film, and the reason says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from pydantic import BeforeValidator, Field, PlainSerializer
from torch import Tensor

from medgrape.concepts import ConceptSet
from medgrape.geometry import Box, PatchGrid, on_film
from medgrape.model.evidence import Evidence
from medgrape.records import Record
from medgrape.runs.checkpoint import SafetyRule

WHOLE_FILM = 0.99  # a box over at least this fraction of the film covers the whole film


class ConceptInBox(Record):
    """Measurements of one concept inside a box."""

    name: str
    mean: float
    """Mean of ``mu`` over the box, patches weighted by overlap."""
    variance: float
    """Mean of ``U`` over the box, likewise."""


Gate = Annotated[
    float,
    BeforeValidator(lambda gate: math.inf if gate is None else gate),
    PlainSerializer(lambda gate: None if gate == math.inf else gate),
]
"""A limit of the variance; in JSON, null is no limit."""


class SafetyCheck(Record):
    """What the model sees inside a box, compared with the concept that a person claims."""

    claimed: str
    dominant: str
    """The concept with the highest mean."""
    rival: str
    """The strongest other concept with training films; the claimed one if there is no other."""
    gap: float
    """Lead of the rival over the claimed concept; negative if the claimed one leads."""
    allowed: float
    """Largest lead without a warning (eta)."""
    gate: Gate
    """Highest variance of the rival for a warning (theta_V)."""
    silenced: bool
    """The lead is large enough for a warning, but the rival's variance is above the gate."""
    mismatch: bool
    calibrated: bool
    """Whether the thresholds were learnt from boxes, and no concept was added since."""
    origin: str
    """Source of the thresholds, in one sentence."""
    concepts: tuple[ConceptInBox, ...] = Field(repr=False)
    """Every concept, the highest mean first."""
    reason: str
    """The result in one sentence."""

    def _repr_html_(self) -> str:
        """Return the result as a table for a notebook."""
        from medgrape.explain.notebook import table

        verdict = "Mismatch" if self.mismatch else "No mismatch"
        rows = [(concept.name, f"{concept.mean:.3f}", f"{concept.variance:.2g}") for concept in self.concepts]
        heading, columns = f"{verdict}: {self.claimed} claimed", ("inside the box", "mean", "variance")
        return table(heading, columns, rows, f"{self.reason} {self.origin}")


@dataclass(frozen=True)
class Comparison:
    """The strongest other concept inside each box, compared with each concept that the box may be claimed to show."""

    rival: Int[np.ndarray, "boxes claims"]  # index among the model's concepts; the claimed one if no other can lead
    gap: Float[np.ndarray, "boxes claims"]  # mean of the rival minus mean of the claimed concept
    trusted: Bool[np.ndarray, "boxes claims"]  # whether there is a rival whose variance is within the gate
    allowed: Float[np.ndarray, " claims"]

    @property
    def lead(self) -> Float[np.ndarray, "boxes claims"]:
        """The gap; minus infinity if the rival is not trusted."""
        return np.where(self.trusted, self.gap, -np.inf)

    @property
    def warns(self) -> Bool[np.ndarray, "boxes claims"]:
        """Whether the check warns."""
        return self.trusted & (self.gap > self.allowed)


def compare(
    means: Float[np.ndarray, "boxes k"],
    variances: Float[np.ndarray, "boxes k"],
    concepts: ConceptSet,
    claimed: Sequence[str],
    rule: SafetyRule,
) -> Comparison:
    """Apply the rule to what was measured inside boxes, for every claim; of equal rivals the first one counts."""
    rows = np.array([concepts.index(name) for name in claimed])
    trained = np.array([name not in rule.untrained for name in concepts.names])
    can_lead = trained & (np.arange(len(concepts)) != rows[:, None])
    strongest = np.where(can_lead, means[:, None], -np.inf).argmax(axis=2)
    rival = np.where(can_lead.any(axis=1), strongest, rows)
    gap = np.take_along_axis(means, rival, axis=1) - means[:, rows]
    trusted = (rival != rows) & (np.take_along_axis(variances, rival, axis=1) <= rule.gate)
    return Comparison(rival, gap, trusted, np.array([rule.lead(name) for name in claimed]))


def check_box(evidence: Evidence, box: Box, claimed: str, rule: SafetyRule | None = None) -> SafetyCheck:
    """Check whether another concept leads over ``claimed`` inside the box by more than the rule allows.

    Compares means, not maxima, so that one stray patch can neither cause nor hide a warning.
    """
    means = inside(evidence.mean, evidence.grid, box)
    variances = inside(evidence.disagreement, evidence.grid, box)
    whole = on_film(box, evidence.grid).area >= WHOLE_FILM * evidence.grid.film.pixels
    return check_claim(means, variances, evidence.concepts, claimed, rule or SafetyRule.plain(), whole=whole)


def inside(maps: Float[Tensor, "k h w"], grid: PatchGrid, box: Box) -> Float[Tensor, " k"]:
    """Return the mean of each map over a box, patches weighted by overlap."""
    weights = torch.from_numpy(grid.overlap(on_film(box, grid))).to(maps.dtype)
    return (maps * weights).sum(dim=(-2, -1)) / weights.sum()


def check_claim(
    means: Float[Tensor, " k"],
    variances: Float[Tensor, " k"],
    concepts: ConceptSet,
    claimed: str,
    rule: SafetyRule,
    *,
    whole: bool = False,
) -> SafetyCheck:
    """Apply the rule to what was measured inside one box; ``whole`` says that it covers the whole film."""
    compared = compare(means[None].double().numpy(), variances[None].double().numpy(), concepts, [claimed], rule)
    gap, allowed, mismatch = float(compared.gap.item()), float(compared.allowed.item()), bool(compared.warns.item())
    rival = concepts.concepts[int(compared.rival.item())]
    exceeds = rival.name != claimed and gap > allowed
    measured = zip(concepts.names, means.tolist(), variances.tolist(), strict=True)
    measured_concepts = [ConceptInBox(name=name, mean=mean, variance=variance) for name, mean, variance in measured]
    where = "The box covers the whole film, where" if whole else "Inside the box"
    reason = _reason(concepts[claimed].title, rival.title, gap, allowed, exceeds=exceeds, mismatch=mismatch)
    return SafetyCheck(
        claimed=claimed,
        dominant=rival.name if gap > 0 else claimed,
        rival=rival.name,
        gap=gap,
        allowed=allowed,
        gate=rule.gate,
        silenced=exceeds and not mismatch,
        mismatch=mismatch,
        calibrated=rule.calibrated,
        origin=rule.origin,
        concepts=tuple(sorted(measured_concepts, key=lambda concept: -concept.mean)),
        reason=f"{where} {reason}",
    )


def _reason(claimed: str, rival: str, gap: float, allowed: float, *, exceeds: bool, mismatch: bool) -> str:
    if gap <= 0 and not exceeds:
        return f"nothing looks more like a finding than {claimed}, as claimed."
    if gap > 0:
        lead = f"{rival} leads over {claimed} by {gap:.3f}"
        limit = f", more than the {allowed:.3f} that correct boxes may show"
    else:
        lead = f"{claimed} is only {abs(gap):.3f} above {rival}"
        limit = f"; correct boxes show at least {-allowed:.3f}"
    if mismatch:
        return f"{lead}{limit}: look again before you confirm."
    if exceeds:
        return f"{lead}. No warning: the variance of the prototypes of {rival} is above the limit."
    return f"{lead}, which is no more than the {allowed:.3f} that correct boxes may show."
