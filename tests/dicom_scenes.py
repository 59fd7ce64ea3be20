"""Films for DICOM readings, and other programs that validate the written files."""

import os
import shutil
import subprocess
from pathlib import Path

import cv2
import numpy as np
import pytest
from pydicom import Dataset
from pydicom.uid import generate_uid

from medgrape.geometry import Box, Turn
from scenes import radiograph, save

UPRIGHT = Box(60, 20, 96, 45)
"""Place of the bright block on the upright film."""
EDGES = {
    Turn(0): ("L", "F"), Turn(0, True): ("R", "F"), Turn(2): ("R", "H"), Turn(2, True): ("L", "H"),
    Turn(1): ("F", "R"), Turn(1, True): ("F", "L"), Turn(3): ("H", "L"), Turn(3, True): ("H", "R"),
}  # fmt: skip
"""Patient orientation of stored pixels that each turn makes upright."""


def upright_chest() -> np.ndarray:
    """Return an asymmetric film of 150 x 110 pixels with one bright block."""
    down, across = np.mgrid[0:110, 0:150]
    film = 1500 + 6 * down + 4 * across
    x1, y1, x2, y2 = (int(corner) for corner in UPRIGHT.corners)
    film[y1:y2, x1:x2] = 4000
    return film.astype(np.uint16)


def stored_film(path: Path, turn: Turn = Turn(), **changes: object) -> Path:  # noqa: B008 (frozen)
    """Write a film of that chest as a device stores it, before it is turned."""
    stored = np.ascontiguousarray(turn.back.pixels(upright_chest()))
    if changes.get("PhotometricInterpretation") == "MONOCHROME1":
        stored = (4095 - stored).astype(np.uint16)
    told = {
        "StudyInstanceUID": generate_uid(), "SeriesInstanceUID": generate_uid(), "StudyDate": "20240229",
        "StudyTime": "101112", "AccessionNumber": "A-1", "PatientOrientation": list(EDGES[turn]),
        "PatientSex": "F", "WindowCenter": 2048, "WindowWidth": 4096,
    }  # fmt: skip
    kept = {keyword: entry for keyword, entry in (told | changes).items() if entry is not None or keyword not in told}
    return save(radiograph(stored, **kept), path)


def colour_film(path: Path) -> Path:
    """Write a colour screenshot of that chest."""
    grey = cv2.convertScaleAbs(upright_chest(), alpha=255 / 4095)
    rgb = np.ascontiguousarray(np.repeat(grey[:, :, np.newaxis], 3, axis=2))
    return save(
        radiograph(
            grey, PhotometricInterpretation="RGB", SamplesPerPixel=3, PlanarConfiguration=0, Modality="OT",
            PixelData=rgb.tobytes(), StudyInstanceUID=generate_uid(), SeriesInstanceUID=generate_uid(),
        ),
        path,
    )  # fmt: skip


def ask(program: str, *words: object) -> str:
    """Return the output of a program; if it is missing, skip the test, but never in CI."""
    if shutil.which(program) is None and not os.environ.get("CI"):
        pytest.skip(f"{program} is not installed")
    done = subprocess.run([program, *(str(word) for word in words)], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def complaints(path: Path) -> list[str]:
    """Return the errors of dciodvfy, except those about our codes and empty entries of the film's header."""
    said = ask("dciodvfy", path).splitlines()
    assert any("SR" in line or "Segmentation" in line or "PresentationState" in line for line in said), said
    wrong = [line for line in said if line.startswith(("Error", "Abort", "Warning"))]
    return [line for line in wrong if "99MEDGRAPE" not in line and "needed to build DICOMDIR" not in line]


def groups(report: Dataset) -> dict[str, Dataset]:
    """Return the measurement groups of a report by their tracking identifiers."""
    (measurements,) = [item for item in report.ContentSequence if said(item) == "Imaging Measurements"]
    return {value(group, "Tracking Identifier"): group for group in measurements.ContentSequence}


def said(item: Dataset) -> str:
    return item.ConceptNameCodeSequence[0].CodeMeaning


def value(group: Dataset, name: str) -> object:
    """Return the value of a name in a group: a number, a code, or text; None if there is none."""
    for item in group.ContentSequence:
        if name in (said(item), item.ConceptNameCodeSequence[0].get("CodeValue")):
            return _told(item)
    return None


def _told(item: Dataset) -> object:
    if item.ValueType == "NUM":
        return float(item.MeasuredValueSequence[0].NumericValue)
    if item.ValueType == "CODE":
        return item.ConceptCodeSequence[0].CodeValue
    return item.get("TextValue")


def region(group: Dataset) -> np.ndarray:
    """Return the corners of a group's outline, as columns and rows."""
    (outline,) = [item for item in group.ContentSequence if item.ValueType == "SCOORD"]
    assert outline.GraphicType == "POLYLINE"
    return np.array(outline.GraphicData).reshape(-1, 2)


def inside(points: np.ndarray) -> tuple[slice, slice]:
    """Return the pixels of a film inside an outline."""
    (x1, y1), (x2, y2) = points.min(axis=0), points.max(axis=0)
    return slice(int(y1), int(y2)), slice(int(x1), int(x2))
