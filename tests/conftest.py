"""Scenes that several tests look at."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from pydicom import Dataset
from pydicom.dataset import FileMetaDataset
from pydicom.uid import ComputedRadiographyImageStorage, ExplicitVRLittleEndian, generate_uid

REAL = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Real films, where somebody has put them beside the project; they are never part of it."""


@pytest.fixture(scope="session")
def chest() -> np.ndarray:
    """A 12 bit film of 300 x 200 pixels with nothing symmetrical about it: bright at the top left."""
    down, across = np.mgrid[0:200, 0:300]
    film = 3600 - 9 * down - 3 * across + 200 * np.sin(across / 11) * np.cos(down / 7)
    film[20:60, 30:90] += 300
    return np.clip(film, 0, 4095).astype(np.uint16)


def radiograph(pixels: np.ndarray, **changes: object) -> Dataset:
    """A computed radiograph as a modality would store it; ``changes`` set or (with None) remove header entries."""
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


@pytest.fixture
def films_folder(tmp_path) -> Path:
    """Eight small films that differ from each other."""
    folder = tmp_path / "films"
    folder.mkdir()
    chance = np.random.default_rng(3)
    for number in range(8):
        blocks = cv2.resize(chance.integers(0, 255, (6, 6)).astype(np.uint8), (96, 80), interpolation=cv2.INTER_CUBIC)
        cv2.imwrite(str(folder / f"film{number}.png"), blocks)
    return folder
