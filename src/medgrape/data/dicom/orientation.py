"""Turning a stored radiograph upright: head up, the patient's left on the viewer's right."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from pydicom import Dataset

from medgrape.data.film import FilmFacts
from medgrape.geometry import Turn


def _by_edges(rows_lead_to: str, columns_lead_to: str) -> Turn | None:
    """The turn after which rows lead to the patient's left and columns to the feet.

    None where the film is not frontal (rows that lead to front or back have no such turn).
    """
    turns = {
        ("L", "F"): Turn(0), ("R", "F"): Turn(0, True), ("R", "H"): Turn(2), ("L", "H"): Turn(2, True),
        ("F", "R"): Turn(1), ("F", "L"): Turn(1, True), ("H", "L"): Turn(3), ("H", "R"): Turn(3, True),
    }  # fmt: skip
    return turns.get((rows_lead_to[:1], columns_lead_to[:1]))


def _from_presentation(dataset: Dataset) -> Turn | None:
    """Image Rotation and Image Horizontal Flip: how the film asks to be shown."""
    if "ImageRotation" not in dataset and "ImageHorizontalFlip" not in dataset:
        return None
    degrees = int(dataset.get("ImageRotation", 0) or 0)
    if degrees % 90:
        return None  # a film on a slant is no film that was stored on its side
    return Turn(degrees // 90 % 4, str(dataset.get("ImageHorizontalFlip", "N")).upper() == "Y")


def _from_patient(dataset: Dataset) -> Turn | None:
    """Patient Orientation: where rows and columns of the stored pixels lead."""
    edges = [str(edge).upper() for edge in (dataset.get("PatientOrientation") or [])]
    return _by_edges(*edges) if len(edges) == 2 and all(edges) else None


ORIENTATION_KEYWORDS = ("ImageRotation", "ImageHorizontalFlip", "PatientOrientation")

# Field of View Rotation and Flip are not here: they tell what the detector already did to the stored pixels.
_SOURCES: tuple[tuple[str, Callable[[Dataset], Turn | None]], ...] = (
    ("its rotation and flip flags", _from_presentation),
    ("its patient orientation", _from_patient),
)


def turn_of(dataset: Dataset) -> Turn:
    """The turn that the first header entry with a say asks for."""
    return _asked(dataset)[0]


def turn_upright(dataset: Dataset, facts: FilmFacts, stored: np.ndarray) -> tuple[FilmFacts, np.ndarray]:
    """The film as it should stand."""
    turn, reason = _asked(dataset)
    return (_turned(facts, turn, reason), turn.pixels(stored)) if turn else (facts, stored)


def _asked(dataset: Dataset) -> tuple[Turn, str]:
    """The turn, and which header entry asks for it."""
    for reason, turn_from in _SOURCES:
        turn = turn_from(dataset)
        if turn is not None:
            return turn, reason
    return Turn(), ""


def _turned(stored: FilmFacts, turn: Turn, reason: str) -> FilmFacts:
    """The facts about the film once it is turned."""
    spacing = stored.spacing
    if turn.quarters % 2 and spacing is not None:
        spacing = spacing[1], spacing[0]
    turned = stored.noting(applied=f"{turn} (by {reason})")
    return replace(turned, size=turn.size(stored.size), spacing=spacing)
