"""Does the model see inside a box what somebody says is there? (Paper, Module B.)

How odd boxes are taken:

- A box that reaches over the edge of the film counts with the part that lies on it.
- One that lies outside altogether is refused: nobody can have meant it.
- One smaller than a patch counts as much of each patch as it covers, so it sees the patch or patches it lies in.
- One that covers the film is checked like any other, against means over the whole film, and the reason says so.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.concepts import ConceptSet
from medgrape.geometry import Box, PatchGrid, on_film
from medgrape.model.evidence import Evidence
from medgrape.runs.checkpoint import SafetyRule

ALL_OF_IT = 0.99
"""A box over this much of the film is said to cover it."""


@dataclass(frozen=True)
class ConceptInBox:
    """One concept inside a box."""

    name: str
    mean: float
    """Mean of ``mu`` over the box, patches weighted by overlap."""
    variance: float
    """The same of ``U``."""


@dataclass(frozen=True)
class SafetyCheck:
    """What the model sees inside a box that somebody says shows ``claimed``."""

    claimed: str
    dominant: str
    """The concept with the highest mean."""
    rival: str
    """The strongest of the other concepts; the claimed one where there is no other to be believed."""
    gap: float
    """By how much the rival leads over the claimed concept; below 0 where the claimed one leads itself."""
    allowed: float
    """A lead up to this is no warning (eta)."""
    gate: float
    """The rival is believed up to this variance (theta_V)."""
    silenced: bool
    """The lead is large enough for a warning, but the gate holds it back."""
    mismatch: bool
    calibrated: bool
    """Whether the thresholds were learnt from boxes, and since then no concept that may lead."""
    origin: str
    """Where the thresholds come from, in one sentence."""
    concepts: tuple[ConceptInBox, ...] = field(repr=False)
    """Every concept, the highest mean first."""
    reason: str
    """In one sentence."""

    def _repr_html_(self) -> str:
        """In a notebook: the verdict, and what is inside the box."""
        from medgrape.explain.notebook import table

        verdict = "Mismatch" if self.mismatch else "No mismatch"
        rows = [(one.name, f"{one.mean:.3f}", f"{one.variance:.2g}") for one in self.concepts]
        told = f"{self.reason} {self.origin}"
        return table(f"{verdict}: {self.claimed} claimed", ("inside the box", "mean", "variance"), rows, told)

    def to_json(self) -> dict[str, Any]:
        """Plain data; a gate that is always open is null."""
        told = asdict(self) | {"concepts": [asdict(one) for one in self.concepts]}
        return told | {"gate": None if self.gate == float("inf") else self.gate}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> "SafetyCheck":
        """The inverse of ``to_json``."""
        concepts = tuple(ConceptInBox(**one) for one in told["concepts"])
        gate = float("inf") if told["gate"] is None else told["gate"]
        return cls(**told | {"concepts": concepts, "gate": gate})


def check_box(evidence: Evidence, box: Box, claimed: str, rule: SafetyRule | None = None) -> SafetyCheck:
    """Flag a box where another concept beats ``claimed`` by more than the rule allows.

    Compares spatial means, not maxima: one stray patch must neither raise nor hide a warning.
    """
    means = inside(evidence.mean, evidence.grid, box)
    variances = inside(evidence.disagreement, evidence.grid, box)
    return judge(means, variances, evidence.concepts, claimed, rule or SafetyRule.plain(), whole=_covers(box, evidence))


def inside(maps: Float[Tensor, "k h w"], grid: PatchGrid, box: Box) -> Float[Tensor, " k"]:
    """Mean of each map over a box, patches weighted by how much of them it covers."""
    weights = torch.from_numpy(grid.overlap(on_film(box, grid))).to(maps.dtype)
    return (maps * weights).sum(dim=(-2, -1)) / weights.sum()


def judge(
    means: Float[Tensor, " k"],
    variances: Float[Tensor, " k"],
    concepts: ConceptSet,
    claimed: str,
    rule: SafetyRule,
    *,
    whole: bool = False,
) -> SafetyCheck:
    """The rule itself, on what was measured inside a box."""
    row = concepts.index(claimed)
    rivals = [k for k, name in enumerate(concepts.names) if name not in rule.untrained and k != row]
    rival = max(rivals, key=lambda k: float(means[k]), default=row)
    gap, allowed = float(means[rival]) - float(means[row]), rule.lead(claimed)
    leads, believed = rival != row and gap > allowed, float(variances[rival]) <= rule.gate
    found = [ConceptInBox(n, float(m), float(v)) for n, m, v in zip(concepts.names, means, variances, strict=True)]
    return SafetyCheck(
        claimed=claimed,
        dominant=concepts.names[rival if gap > 0 else row],
        rival=concepts.names[rival],
        gap=gap,
        allowed=allowed,
        gate=rule.gate,
        silenced=leads and not believed,
        mismatch=leads and believed,
        calibrated=rule.calibrated,
        origin=rule.origin,
        concepts=tuple(sorted(found, key=lambda one: -one.mean)),
        reason=_reason(concepts, row, rival, gap, allowed, leads=leads, believed=believed, whole=whole),
    )


def _reason(
    concepts: ConceptSet, row: int, rival: int, gap: float, allowed: float, *, leads: bool, believed: bool, whole: bool
) -> str:
    claimed, other = concepts.concepts[row].title, concepts.concepts[rival].title
    where = "The box covers the whole film, where" if whole else "Inside the box"
    if gap <= 0 and not leads:
        return f"{where} nothing looks more like a finding than {claimed}, as claimed."
    lead = f"{where} {other} leads over {claimed} by {gap:.3f}"
    least = f"more than the {allowed:.3f} that correct boxes may show"
    if gap <= 0:
        lead = f"{where} {claimed} leads over {other} by {-gap:.3f} only"
        least = f"less than the {-allowed:.3f} that correct boxes show"
    if not leads:
        return f"{lead}, which is no more than the {allowed:.3f} that correct boxes may show."
    if not believed:
        return f"{lead}, but its prototypes disagree too much there to be believed, so there is no warning."
    return f"{lead}, {least}: look again before you confirm."


def _covers(box: Box, evidence: Evidence) -> bool:
    film = evidence.grid.film
    on_film = box.clipped(film)
    return on_film is not None and on_film.area >= ALL_OF_IT * film.pixels
