"""Texts for scores and probabilities."""

import math
from collections.abc import Mapping
from typing import Literal

NOTICE = "Research software, not a medical device."
CLEARLY, PERHAPS = 0.75, 0.40  # smallest strengths that are called "clearly seen" and "perhaps"
LEAST_STEP = 1e-3  # smallest difference of typical scores with and without a concept for an informative score
Words = Literal["clearly seen", "perhaps", "not seen", "rejected", "cannot be told"]


def strength(score: float, absent: float, present: float) -> float:
    """Scale a score so that typical films without the concept have 0 and typical films with it 1."""
    return (score - absent) / max(present - absent, 1e-6)


def separates(score: float, absent: float, present: float) -> bool:
    """Whether the score separates films with the concept from films without it."""
    step = present - absent
    return math.isfinite(step) and step >= LEAST_STEP and math.isfinite(score)


def describe_score(score: float, absent: float, present: float) -> Words:
    """Return the words for a score that no person has rejected."""
    if not separates(score, absent, present):
        return "cannot be told"
    value = strength(score, absent, present)
    if value >= CLEARLY:
        return "clearly seen"
    return "perhaps" if value >= PERHAPS else "not seen"


def format_probabilities(probabilities: Mapping[str, float]) -> str:
    """Return the three most probable classes on one line."""
    ranked = sorted(probabilities.items(), key=lambda item: -item[1])
    text = ", ".join(f"{name} {probability:.0%}" for name, probability in ranked[:3])
    return text + (", ..." if len(ranked) > 3 else "")
