"""A study as DICOM files: a structured report, the maps as a segmentation, the boxes as a presentation state."""

from pathlib import Path

from medgrape.data.files import whole_folder
from medgrape.errors import UserError
from medgrape.feedback.study import Study

REPORT, MAPS, BOXES, FILM = "report.dcm", "maps.dcm", "boxes.dcm", "film.dcm"


class DicomOutError(UserError):
    """A study that cannot be written as DICOM."""


def write_dicom_reading(study: Study, film: Path, out: Path, *, observer: str | None = None) -> tuple[Path, ...]:
    """Report, maps and boxes of a study as DICOM files in the folder ``out`` (new or empty), whole or not there.

    ``film`` is the DICOM file that the study was opened from; patient and study are those of its header.
    """
    _check_parts()
    from medgrape.interchange.dicom_equipment import Makers
    from medgrape.interchange.dicom_report import report
    from medgrape.interchange.dicom_source import read_source

    source = read_source(film, study.run.config.limits)
    makers = Makers(study.model, observer)
    objects = {REPORT: report(study, study.explain(), source, makers, None, ())}
    with whole_folder(out) as draft:
        for name, dataset in objects.items():
            dataset.save_as(draft / name, enforce_file_format=True)
    return tuple(out / name for name in objects)


def _check_parts() -> None:
    try:
        import highdicom  # noqa: F401
    except ModuleNotFoundError as missing:
        raise DicomOutError("DICOM readings need more packages: pip install 'medgrape[dicom]'.") from missing
