"""Thresholds of the concept-mismatch check that apply to a run: calibrated ones, or those of its settings."""

from collections.abc import Callable
from dataclasses import dataclass

from medgrape.runs.checkpoint import Run


@dataclass(frozen=True)
class SafetyRule:
    """When the safety check warns about a box."""

    lead: Callable[[str], float]
    """Lead over this concept that another one needs for a warning (eta). Negative: a warning unless this one leads."""
    gate: float
    """Highest variance of the leading concept for a warning (theta_V)."""
    unbelieved: frozenset[str] = frozenset()
    """Concepts without training films: they are listed, and never cause a warning."""
    calibrated: bool = False
    origin: str = "The thresholds are the paper's."
    """Their source, in one sentence."""

    @classmethod
    def plain(cls, lead: float = 0.05, gate: float = 2e-4) -> "SafetyRule":
        """Return the paper's rule: one lead for all concepts."""
        return cls(lambda _: lead, gate)

    @classmethod
    def of(cls, run: Run) -> "SafetyRule":
        """Return the calibrated thresholds of the run, or those of its settings."""
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
