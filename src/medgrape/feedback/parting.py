"""The lead that parts right claims from wrong ones best: no rate is promised of it, only found."""

import numpy as np
from jaxtyping import Float


def parting_lead(right: Float[np.ndarray, " rightly"], wrong: Float[np.ndarray, " wrongly"]) -> float:
    """Where (caught + 1 - false alarms) / 2 is largest, if a claim is doubted whose lead is larger than this.

    ``right`` and ``wrong`` are the leads of other concepts over the claimed one, of claims of either kind; there is at
    least one of each. At least 0: no concept is doubted that leads itself. Of several that do equally well, the largest
    of the leads that were seen: it doubts the fewest.
    """
    leads = np.unique(np.maximum(np.concatenate([[0.0], right, wrong]), 0.0))
    caught, false_alarms = (_share_above(leads, kind) for kind in (wrong, right))
    balance = caught - false_alarms
    best = np.flatnonzero(np.isclose(balance, balance.max(), rtol=0, atol=1e-12))
    return float(leads[best[-1]])


def _share_above(leads: Float[np.ndarray, " leads"], values: Float[np.ndarray, " values"]) -> Float[
    np.ndarray, " leads"
]:  # fmt: skip
    return np.asarray(1 - np.searchsorted(np.sort(values), leads, side="right") / len(values))
