"""Thresholds of the concept-mismatch check, as a run has them: calibrated, or those of its settings."""

from collections.abc import Callable
from dataclasses import dataclass

from medgrape.runs.checkpoint import Run


@dataclass(frozen=True)
class SafetyRule:
    """From when on a box is doubted."""

    lead: Callable[[str], float]
    """By how much another concept must lead over this one (eta). Below 0: it is doubted unless it leads by so much."""
    gate: float
    """Highest variance at which the leading concept is believed (theta_V)."""
    unbelieved: frozenset[str] = frozenset()
    """Concepts that no film has taught: they are listed, and never lead."""
    calibrated: bool = False
    origin: str = "The thresholds are the paper's."
    """Where they come from, in one sentence."""

    @classmethod
    def plain(cls, lead: float = 0.05, gate: float = 2e-4) -> "SafetyRule":
        """The paper's rule: one lead for all concepts."""
        return cls(lambda _: lead, gate)

    @classmethod
    def of(cls, run: Run) -> "SafetyRule":
        """What the run was calibrated to, or else what its settings say."""
        untaught = frozenset(run.metrics.get("untrained_concepts", ()))
        if run.safety is None:
            lead = run.config.safety.lead
            origin = "Nobody calibrated this run, so the thresholds are those of its settings."
            return cls(lambda _: lead, run.config.safety.gate, untaught, origin=origin)
        gate = float("inf") if run.safety.gate is None else run.safety.gate
        later = [concept.title for concept in run.concepts if concept.name not in {*run.safety.boxes, *untaught}]
        origin = (
            f"The thresholds were learnt before the model knew {', '.join(later)}; calibrate it again."
            if later
            else "The thresholds were learnt from boxes on films like these."
        )
        return cls(run.safety.lead, gate, untaught, calibrated=not later, origin=origin)
