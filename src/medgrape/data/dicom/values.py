"""Numbers from a DICOM header, which may be absent, empty or several."""

from dataclasses import dataclass

import numpy as np
from pydicom import Dataset

from medgrape.data.film import FilmError


def first_number(dataset: Dataset, keyword: str) -> float | None:
    """The first number of an entry, or None where there is none."""
    value = dataset.get(keyword)
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return None if value in (None, "") else float(value)
    return float(value[0]) if len(value) > 0 else None


def whole_number(dataset: Dataset, keyword: str, absent: int) -> int:
    """The first number of an entry as a whole one."""
    value = first_number(dataset, keyword)
    return absent if value is None else int(value)


@dataclass(frozen=True)
class Rescale:
    """What stored numbers mean: ``slope * stored + intercept``."""

    slope: float
    intercept: float

    def __str__(self) -> str:
        return f"rescaled by {self.slope:g} and {self.intercept:+g}"

    def __bool__(self) -> bool:
        return (self.slope, self.intercept) != (1.0, 0.0)

    def undone(self, value: float) -> float:
        """The stored number that means ``value``."""
        return (value - self.intercept) / self.slope


def rescale_of(dataset: Dataset) -> Rescale:
    """The header's rescale; one that would make all pixels alike is refused."""
    slope, intercept = first_number(dataset, "RescaleSlope"), first_number(dataset, "RescaleIntercept")
    rescale = Rescale(1.0 if slope is None else slope, 0.0 if intercept is None else intercept)
    if rescale.slope == 0 or not np.isfinite((rescale.slope, rescale.intercept)).all():
        raise FilmError(
            f"it cannot be {rescale}: every pixel would be the same; correct its header or export it again."
        )
    return rescale


@dataclass(frozen=True)
class Window:
    """The values that become black and white, with straight grey between; ``black`` may be the larger one."""

    black: float
    white: float
    name: str


def window_function(dataset: Dataset) -> str:
    """What the header says of the way from black to white, in capitals; empty where it says nothing."""
    return str(dataset.get("VOILUTFunction") or "").strip().upper()


def window_of(dataset: Dataset) -> Window | None:
    """The header's first window, in rescaled values; DICOM PS3.3 C.11.2."""
    centre, width = first_number(dataset, "WindowCenter"), first_number(dataset, "WindowWidth")
    if centre is None or width is None:
        return None
    exact = window_function(dataset) == "LINEAR_EXACT"
    # LINEAR puts the centre between two values and counts both ends of the width.
    middle, half = (centre, width / 2) if exact else (centre - 0.5, (width - 1) / 2)
    if width >= 1 and half == 0:
        half = 1e-3  # a width of 1 is a step
    return Window(middle - half, middle + half, f"window {centre:g} / {width:g}")
