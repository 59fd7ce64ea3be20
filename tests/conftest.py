"""Scenes that several tests look at."""

from pathlib import Path

import cv2
import numpy as np
import pytest


@pytest.fixture(scope="session")
def chest() -> np.ndarray:
    """A 12 bit film of 300 x 200 pixels with nothing symmetrical about it: bright at the top left."""
    down, across = np.mgrid[0:200, 0:300]
    film = 3600 - 9 * down - 3 * across + 200 * np.sin(across / 11) * np.cos(down / 7)
    film[20:60, 30:90] += 300
    return np.clip(film, 0, 4095).astype(np.uint16)


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
