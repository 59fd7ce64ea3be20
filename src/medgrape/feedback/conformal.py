"""A threshold that correct boxes rarely cross, with a guarantee for every calibration and not only on average.

The plain split-conformal quantile keeps the *expected* rate of false alarms below the bound: half of all calibrations
may end above it. Here the order statistic is chosen one or more places higher, so that the rate stays below the bound
with the stated confidence in the calibration that somebody really has. For n independent patients, the rate at which
new ones exceed the (n - a)-th smallest value is distributed like Beta(a + 1, n - a), or lies lower where values are
tied; so the chance that it exceeds the bound is the chance of at most ``a`` successes in n trials at that bound.
"""

import math

import numpy as np
from jaxtyping import Float


def allowed_alarms(units: int, bound: float, confidence: float) -> int | None:
    """How many of the units may lie above the threshold; None where there are too few for any threshold."""
    from scipy.special import bdtr  # slow to import

    fits = np.flatnonzero(bdtr(np.arange(units + 1), units, bound) <= 1 - confidence)
    return int(fits[-1]) if fits.size else None


def conformal_threshold(
    values: Float[np.ndarray, " units"], bound: float, confidence: float, *, above_it: int = 0
) -> float | None:
    """The smallest of the values that new ones exceed at a rate of at most ``bound``, with that confidence.

    At least 0: no concept is doubted that leads itself. None where there are too few values, or too few for
    ``above_it`` of them to lie above the threshold.
    """
    above = allowed_alarms(len(values), bound, confidence)
    if above is None or above < above_it:
        return None
    return max(float(np.sort(values)[len(values) - above - 1]), 0.0)


def units_needed(bound: float, confidence: float) -> int:
    """The fewest units with which a threshold can be had: all of them below it by luck alone is too unlikely."""
    return max(math.ceil(math.log1p(-confidence) / math.log1p(-bound)), 1)
