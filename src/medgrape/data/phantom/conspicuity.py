"""How plainly each finding shows: the one place to make the films easier or harder to read.

A contrast is what the finding adds to the attenuation where it is densest; a rib adds about 0.10, a large vessel 0.13.
"""

from dataclasses import dataclass

import numpy as np

EVERYWHERE = 1.4  # multiplies every contrast below


@dataclass(frozen=True)
class Contrast:
    """From a shadow that is easily missed to one that nobody misses."""

    subtle: float
    obvious: float


CONTRASTS = {
    "cavity": Contrast(0.13, 0.27),
    "nodular_opacities": Contrast(0.13, 0.25),
    "upper_lobe_infiltrate": Contrast(0.14, 0.26),
    "upper_lobe_consolidation": Contrast(0.17, 0.32),
    "calcified_granulomas": Contrast(0.20, 0.42),
    "fibrous_scar": Contrast(0.13, 0.27),
    "volume_loss": Contrast(0.13, 0.26),
    "patchy_consolidation": Contrast(0.14, 0.28),
    "tree_in_bud": Contrast(0.15, 0.28),
    "miliary_nodules": Contrast(0.12, 0.22),
    "atelectasis": Contrast(0.27, 0.42),
    "effusion": Contrast(0.60, 0.95),  # the share of the air that fluid displaces
    "infiltration": Contrast(0.07, 0.18),
    "mass": Contrast(0.28, 0.42),
    "nodule": Contrast(0.12, 0.26),
    "pneumonia": Contrast(0.12, 0.24),
    "basal_pneumonia": Contrast(0.18, 0.32),
    "pneumothorax": Contrast(0.24, 0.36),
    "consolidation": Contrast(0.17, 0.31),
    "edema": Contrast(0.14, 0.26),
    "emphysema": Contrast(0.08, 0.15),
    "fibrosis": Contrast(0.17, 0.30),
    "pleural_thickening": Contrast(0.20, 0.34),
    "hernia": Contrast(0.09, 0.16),
    "cardiomegaly": Contrast(0.60, 0.72),  # here the cardiothoracic ratio; up to 0.50 is healthy
}


def contrast_of(finding: str, random: np.random.Generator) -> float:
    """Draw a contrast; the middle of the range is a little commoner than its ends."""
    span = CONTRASTS[finding]
    drawn = span.subtle + (span.obvious - span.subtle) * float(random.beta(1.5, 1.4))
    return drawn if finding == "cardiomegaly" else EVERYWHERE * drawn
