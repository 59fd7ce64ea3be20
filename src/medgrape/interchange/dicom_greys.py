"""How a film's stored numbers become greys, told as a presentation state tells it."""

from copy import deepcopy

from pydicom import Dataset, Sequence
from pydicom.valuerep import DSfloat

from medgrape.data.dicom.values import first_number, window_function, window_of

_UNSPECIFIED = "US"
_FUNCTIONS = ("LINEAR", "LINEAR_EXACT", "SIGMOID")


def shown_greys(film: Dataset) -> Dataset:
    """The film's own rescale or table, then its own table or window: what the model saw it through.

    A film without any is shown from its lowest possible value to its highest, as DICOM has it.
    """
    greys = Dataset()
    _put_modality(greys, film)
    voi = _voi(film)
    if voi is not None:
        greys.SoftcopyVOILUTSequence = Sequence([voi])
    return greys


def _put_modality(greys: Dataset, film: Dataset) -> None:
    if film.get("ModalityLUTSequence"):
        table = deepcopy(film.ModalityLUTSequence[0])
        table.ModalityLUTType = table.get("ModalityLUTType") or _UNSPECIFIED
        greys.ModalityLUTSequence = Sequence([table])
        return
    slope, intercept = first_number(film, "RescaleSlope"), first_number(film, "RescaleIntercept")
    if slope is not None or intercept is not None:
        greys.RescaleSlope = _decimal(1.0 if slope is None else slope)
        greys.RescaleIntercept = _decimal(intercept or 0.0)
        greys.RescaleType = film.get("RescaleType") or _UNSPECIFIED


def _voi(film: Dataset) -> Dataset | None:
    """Of several tables or windows the first, which is also the one that was read with."""
    voi = Dataset()
    if film.get("VOILUTSequence"):
        voi.VOILUTSequence = Sequence([deepcopy(film.VOILUTSequence[0])])
        return voi
    window = window_of(film)
    if window is None or not window.black < window.white:
        return None
    centre, width = first_number(film, "WindowCenter"), first_number(film, "WindowWidth")
    voi.WindowCenter, voi.WindowWidth = _decimal(centre or 0.0), _decimal(width or 0.0)
    if window_function(film) in _FUNCTIONS:
        voi.VOILUTFunction = window_function(film)
    return voi


def _decimal(value: float) -> DSfloat:
    """A number in the 16 characters that DICOM has for it."""
    return DSfloat(value, auto_format=True)
