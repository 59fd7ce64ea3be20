"""The lead that parts right claims from wrong ones: no rate is promised of it, only found."""

import numpy as np
from jaxtyping import Float


def parting_lead(right: Float[np.ndarray, " rightly"], wrong: Float[np.ndarray, " wrongly"]) -> float:
    """Half way between the mean leads of right and of wrong claims; a claim is doubted whose lead is larger.

    ``right`` and ``wrong`` are the leads of the strongest other concept over the claimed one, below 0 where the claimed
    one leads itself, minus infinity where the other is not believed; there is at least one of each. Half way between
    means, and not where the shares on these very claims are best: of a rare finding there are a dozen boxes, and the
    best place between them is luck. Where wrong claims do not lie above right ones, looking is of no use, and the
    largest lead of all doubts none of them.
    """
    rightly, wrongly = (leads[np.isfinite(leads)] for leads in (right, wrong))
    if rightly.size and wrongly.size and wrongly.mean() > rightly.mean():
        return float(rightly.mean() + wrongly.mean()) / 2
    return float(np.concatenate([[0.0], rightly, wrongly]).max())
