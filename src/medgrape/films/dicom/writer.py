"""Writing a drawn film as a DICOM file, so that everything downstream can be tried with real DICOM."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import ComputedRadiographyImageStorage, ExplicitVRLittleEndian, generate_uid

CHEST_WIDTH = 350.0
"""Millimetres across a drawn film."""
_DATE, _TIME = "20000101", "120000"
_BITS = 12


@dataclass(frozen=True)
class Person:
    """An invented patient, as a header describes one."""

    id: str
    sex: str
    age: int


def write_dicom(path: Path, pixels: UInt8[np.ndarray, "height width"], person: Person, film: str, view: str) -> None:
    """Write a computed radiograph of 12 bits; the same arguments give the same bytes."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = ComputedRadiographyImageStorage
    entropy = [person.id, film, hashlib.sha256(pixels.tobytes()).hexdigest()]  # other pixels are another film
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=["medgrape film", *entropy])
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
    dataset.SOPClassUID = meta.MediaStorageSOPClassUID
    dataset.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    dataset.StudyInstanceUID = generate_uid(entropy_srcs=["medgrape study", *entropy])
    dataset.SeriesInstanceUID = generate_uid(entropy_srcs=["medgrape series", *entropy])
    _describe_study(dataset, person, view)
    _put_pixels(dataset, pixels)
    dataset.save_as(path, enforce_file_format=True)


def _describe_study(dataset: FileDataset, person: Person, view: str) -> None:
    dataset.PatientName, dataset.PatientID = f"Phantom^{person.id}", person.id
    dataset.PatientBirthDate, dataset.PatientSex, dataset.PatientAge = "", person.sex, f"{person.age:03d}Y"
    dataset.StudyDate = dataset.SeriesDate = dataset.ContentDate = _DATE
    dataset.StudyTime = dataset.SeriesTime = dataset.ContentTime = _TIME
    dataset.StudyID, dataset.AccessionNumber, dataset.ReferringPhysicianName = "1", "", ""
    dataset.SeriesNumber, dataset.InstanceNumber = 1, 1
    dataset.Modality, dataset.Manufacturer = "CR", "medgrape (drawn, no patient)"
    dataset.BodyPartExamined, dataset.ViewPosition = "CHEST", view
    dataset.PatientOrientation = ["L", "F"]
    dataset.ImageType = ["DERIVED", "PRIMARY"]


def _put_pixels(dataset: FileDataset, pixels: UInt8[np.ndarray, "height width"]) -> None:
    top = 2**_BITS - 1
    stored = (pixels.astype(np.uint32) * top + 127) // 255
    dataset.Rows, dataset.Columns = pixels.shape
    spacing = round(CHEST_WIDTH / pixels.shape[1], 4)
    dataset.ImagerPixelSpacing = [spacing, spacing]
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = 16, _BITS, _BITS - 1, 0
    dataset.RescaleIntercept, dataset.RescaleSlope, dataset.RescaleType = 0, 1, "US"
    # A LINEAR window of this centre and width maps 0 to black and the top value to white, exactly.
    dataset.WindowCenter, dataset.WindowWidth = (top + 1) / 2, top + 1
    dataset.PixelData = stored.astype("<u2").tobytes()
