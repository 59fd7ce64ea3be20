"""Grey levels by a table or a bent curve, which no straight window can stand for."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from pydicom import Dataset

from medgrape.data.dicom.values import first_number, rescale_of, window_of

Values = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class LookupTable:
    """What a LUT sequence holds; values before its first and behind its last entry take those."""

    first: int
    entries: Values
    top: float
    """The largest output that its declared bits allow."""

    def __call__(self, values: Values) -> Values:
        """The entry of each value."""
        places = np.clip(np.rint(values) - self.first, 0, len(self.entries) - 1)
        return np.asarray(self.entries[places.astype(np.intp)])


def has_curve(dataset: Dataset) -> bool:
    """Whether the header asks for more than a rescale and a straight window."""
    sigmoid = str(dataset.get("VOILUTFunction", "")) == "SIGMOID" and window_of(dataset) is not None
    return sigmoid or bool(dataset.get("ModalityLUTSequence")) or bool(dataset.get("VOILUTSequence"))


def curve_through(dataset: Dataset, low: int, high: int) -> tuple[str, Values]:
    """What was applied, and the grey from 0 to 1 of every stored value from ``low`` to ``high``.

    The curve is worked out once for each value that may occur, not for each pixel.
    """
    name, values = _rescaled(dataset, np.arange(low, high + 1, dtype=np.float64))
    if dataset.get("VOILUTSequence"):
        table = _table(dataset.VOILUTSequence[0], dataset)
        return f"{name}VOI LUT", table(values) / table.top
    window = window_of(dataset)
    if window is None:
        return f"{name}values stretched", (values - values.min()) / max(float(np.ptp(values)), 1e-9)
    if str(dataset.get("VOILUTFunction", "")) == "SIGMOID":
        centre, width = first_number(dataset, "WindowCenter") or 0.0, first_number(dataset, "WindowWidth") or 1.0
        return f"{name}sigmoid {window.name}", 1 / (1 + np.exp(-4 * (values - centre) / width))
    return f"{name}{window.name}", np.clip((values - window.black) / (window.white - window.black), 0, 1)


def _rescaled(dataset: Dataset, stored: Values) -> tuple[str, Values]:
    if dataset.get("ModalityLUTSequence"):
        return "modality LUT, ", _table(dataset.ModalityLUTSequence[0], dataset)(stored)
    rescale = rescale_of(dataset)
    return f"{rescale}, " if rescale else "", rescale.slope * stored + rescale.intercept


def _table(item: Dataset, dataset: Dataset) -> LookupTable:
    count, first, bits = (int(number) for number in item.LUTDescriptor)
    count = count or 65536  # DICOM has no room for this count and writes 0
    if int(dataset.get("PixelRepresentation", 0) or 0) == 1 and first > 32767:
        first -= 65536
    data = item.LUTData
    if isinstance(data, bytes):
        data = np.frombuffer(data, "<u2" if len(data) >= 2 * count else np.uint8)
    entries = np.asarray(data, dtype=np.float64)[:count]
    return LookupTable(first, entries, max(2.0**bits - 1, float(entries.max())))
