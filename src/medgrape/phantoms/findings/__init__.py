"""All findings that can be drawn, by name.

A finding is a function that draws on a chest at a site and returns its mask. A few change the anatomy first.
"""

from collections.abc import Callable

import numpy as np

from medgrape.phantoms.anatomy import Anatomy
from medgrape.phantoms.chest import Chest
from medgrape.phantoms.findings import nih, tuberculosis
from medgrape.phantoms.findings.base import Mask, Site

Drawer = Callable[[Chest, Site, np.random.Generator], Mask]
Change = Callable[[Anatomy, float, np.random.Generator], Anatomy]
DRAWERS: dict[str, Drawer] = {
    "cavity": tuberculosis.cavity,
    "nodular_opacities": tuberculosis.nodular_opacities,
    "upper_lobe_infiltrate": tuberculosis.upper_lobe_infiltrate,
    "upper_lobe_consolidation": nih.consolidation,
    "calcified_granulomas": tuberculosis.calcified_granulomas,
    "fibrous_scar": tuberculosis.fibrous_scar,
    "volume_loss": tuberculosis.volume_loss,
    "patchy_consolidation": tuberculosis.patchy_consolidation,
    "tree_in_bud": tuberculosis.tree_in_bud,
    "miliary_nodules": tuberculosis.miliary_nodules,
    "atelectasis": nih.plates,
    "cardiomegaly": nih.cardiomegaly,
    "effusion": nih.effusion,
    "infiltration": nih.infiltration,
    "mass": nih.mass,
    "nodule": nih.nodule,
    "pneumonia": nih.patches,
    "basal_pneumonia": nih.consolidation,
    "pneumothorax": nih.pneumothorax,
    "consolidation": nih.consolidation,
    "edema": nih.edema,
    "emphysema": nih.emphysema,
    "fibrosis": nih.fibrosis,
    "pleural_thickening": nih.thickening,
    "hernia": nih.hernia,
}
ANATOMY_CHANGES: dict[str, Change] = {
    "cardiomegaly": nih.enlarged,
    "effusion": nih.compressed,
    "emphysema": nih.overinflated,
    "edema": nih.congested,
}
