"""Films that several tests use."""

from pathlib import Path

import numpy as np
from pydicom import Dataset
from pydicom.dataset import FileMetaDataset
from pydicom.uid import ComputedRadiographyImageStorage, ExplicitVRLittleEndian, generate_uid

REAL = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Real films, if they are beside the project; they are not part of it."""

SECRET = "Rumpelstiltskin"  # noqa: S105 (a patient's name)


def radiograph(pixels: np.ndarray, **changes: object) -> Dataset:
    """Return a computed radiograph as a modality stores it; ``changes`` set or (with None) remove header entries."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = ComputedRadiographyImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset = Dataset()
    dataset.file_meta = meta
    dataset.SOPClassUID, dataset.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    dataset.Modality, dataset.PatientName, dataset.PatientID = "CR", "Doe^Jane", "4711"
    dataset.Rows, dataset.Columns, dataset.SamplesPerPixel = pixels.shape[0], pixels.shape[1], 1
    dataset.PhotometricInterpretation = "MONOCHROME2"
    dataset.BitsAllocated = pixels.itemsize * 8
    dataset.BitsStored = 12 if pixels.itemsize == 2 else 8
    dataset.HighBit, dataset.PixelRepresentation = dataset.BitsStored - 1, int(pixels.dtype.kind == "i")
    dataset.PixelData = pixels.tobytes()
    for keyword, value in changes.items():
        if value is None:
            delattr(dataset, keyword)
        else:
            setattr(dataset, keyword, value)
    return dataset


def save(dataset: Dataset, path: Path) -> Path:
    dataset.save_as(path, enforce_file_format=True)
    return path


def planted(pixels, **changes):
    """Return a radiograph with the patient's name in every possible place."""
    dataset = radiograph(pixels, **changes)
    dataset.PatientName, dataset.PatientID, dataset.OtherPatientIDs = f"{SECRET}^J", SECRET, SECRET
    dataset.PatientComments = dataset.ImageComments = dataset.InstitutionName = dataset.StudyDescription = SECRET
    dataset.PatientBirthDate, dataset.PatientAge, dataset.PatientSex = "19120101", "113Y", "F"
    dataset.ImageLaterality = dataset.BodyPartExamined = SECRET.upper()
    dataset.file_meta.SourceApplicationEntityTitle = SECRET
    block = dataset.private_block(0x0011, SECRET, create=True)
    block.add_new(0x01, "LO", SECRET)
    code = Dataset()
    code.CodeValue, code.CodeMeaning, code.CodingSchemeDesignator = "R-10206", f"postero-anterior {SECRET}", "SRT"
    dataset.ViewCodeSequence = [code]
    if "VOILUTSequence" in changes:
        dataset.VOILUTSequence[0].LUTExplanation = SECRET
    dataset.PixelData += b"%s " % SECRET.encode()  # behind the last pixel
    return dataset
