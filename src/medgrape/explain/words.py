"""How strongly a concept is seen, as one would say it: its score beside those of training films with and without it."""

import math
from typing import Literal

NOTICE = "Research software, not a medical device."
CLEARLY, PERHAPS = 0.75, 0.40
"""From which strength on a concept is called clearly seen, or perhaps; 0 is typical without it, 1 with it."""
LEAST_STEP = 1e-3
"""If the typical scores with and without a concept lie closer than this, its score tells nothing."""
Words = Literal["clearly seen", "perhaps", "not seen", "rejected", "cannot be told"]


def strength(score: float, absent: float, present: float) -> float:
    """The score on a scale where films without the concept have about 0 and films with it about 1."""
    return (score - absent) / max(present - absent, 1e-6)


def separates(score: float, absent: float, present: float) -> bool:
    """Whether the score can part films with the concept from films without it."""
    step = present - absent
    return math.isfinite(step) and step >= LEAST_STEP and math.isfinite(score)


def describe_score(score: float, absent: float, present: float) -> Words:
    """The word for a score that nobody has judged."""
    if not separates(score, absent, present):
        return "cannot be told"
    found = strength(score, absent, present)
    if found >= CLEARLY:
        return "clearly seen"
    return "perhaps" if found >= PERHAPS else "not seen"
