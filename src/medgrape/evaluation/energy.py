"""How much of a concept's map lies in the boxes that somebody drew of it, against what a flat map gets."""

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float

from medgrape.data.dataset import FilmRecord
from medgrape.evaluation.pointing import boxes_of
from medgrape.evaluation.readings import Readings
from medgrape.geometry import Box, PatchGrid

FRAME = 224
"""Cells each way in which energy is counted; a cell that a box covers in part counts in part."""


@dataclass(frozen=True)
class BoxEnergy:
    """One film and one concept that it has boxes of."""

    film: str
    concept: str
    share: float
    """Of the map's energy, how much lies in the concept's boxes."""
    area: float
    """Of the film's area, how much the boxes cover: the share of a map that is the same everywhere."""


def box_energies(readings: Readings) -> tuple[BoxEnergy, ...]:
    """Every film and concept with a box, concept by concept, by the mean over the concept's prototypes.

    Cosines may be negative and energy may not, so that every map is first shifted until its lowest patch is 0: what
    counts is how far a patch stands out above the least likely one. The map is then upsampled bilinearly.
    """
    return tuple(
        box_energy(readings.mean_maps[place, row], film, name, boxes)
        for row, name in enumerate(readings.dataset.concepts.names)
        for place, film in enumerate(readings.films)
        if (boxes := boxes_of(readings.dataset, film, name))
    )


def box_energy(scores: Float[np.ndarray, "h w"], film: FilmRecord, concept: str, boxes: tuple[Box, ...]) -> BoxEnergy:
    """The same of one map."""
    cells = PatchGrid(film.size, FRAME, FRAME)
    covered = np.maximum.reduce([cells.overlap(box) for box in boxes])
    area = float(covered.mean())
    shifted = scores.astype(np.float64) - scores.min()
    energy = cv2.resize(shifted, (FRAME, FRAME), interpolation=cv2.INTER_LINEAR)
    total = float(energy.sum())
    return BoxEnergy(film.id, concept, float((energy * covered).sum()) / total if total else area, area)
