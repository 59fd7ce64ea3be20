"""Films as modalities send them, of patients who do not exist and whose names must never be seen."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from pydicom import dcmread

from medgrape.datasets.dataset import Dataset
from medgrape.films.dicom.writer import Person, write_dicom
from scenes import SECRET


@dataclass(frozen=True)
class FilmCabinet:
    """Drawn films, each written as DICOM with a name in it."""

    drawn_dataset: Path
    folder: Path

    def film(self, number: int, **changes: object) -> Path:
        """Film ``number``; ``changes`` set or (with None) remove header entries."""
        dataset = Dataset.load(self.drawn_dataset)
        record = dataset.films[number]
        self.folder.mkdir(exist_ok=True)
        path = self.folder / f"{number}-{len(list(self.folder.iterdir()))}.dcm"
        pixels = np.asarray(Image.open(dataset.film_path(record)).convert("L"))
        write_dicom(path, pixels, Person(SECRET, "F", 50), record.id, "PA")
        header = dcmread(path)
        header.PatientName, header.InstitutionName, header.StudyDescription = f"{SECRET}^J", SECRET, SECRET
        header.ImageComments, header.AccessionNumber = SECRET, f"A{number}"
        for keyword, value in changes.items():
            if value is None:
                delattr(header, keyword)
            else:
                setattr(header, keyword, value)
        header.file_meta.MediaStorageSOPInstanceUID = header.SOPInstanceUID
        header.file_meta.MediaStorageSOPClassUID = header.SOPClassUID
        header.save_as(path, enforce_file_format=True)
        return path


def uid_of(path: Path) -> str:
    return str(dcmread(path, stop_before_pixels=True).SOPInstanceUID)


def study_of(path: Path) -> str:
    return str(dcmread(path, stop_before_pixels=True).StudyInstanceUID)
