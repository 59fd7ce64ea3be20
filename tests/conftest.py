"""Scenes that several tests look at."""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from medgrape.datasets.sources.phantoms import PhantomOrder, draw_dataset
from medgrape.datasets.splits import SplitRule
from schooling import small


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


@pytest.fixture(scope="session")
def ward(tmp_path_factory) -> Path:
    """A prepared data set of 48 small drawn films."""
    folder = tmp_path_factory.mktemp("ward") / "films"
    rule = SplitRule(validation=0.25, test=0.2, seed=0)
    draw_dataset(PhantomOrder(films=48, seed=5, size=64), folder, rule)
    return folder


@pytest.fixture(scope="session")
def graduate(ward, tmp_path_factory) -> Path:
    """A run that learnt from those films without being disturbed."""
    from medgrape.training.run import Order, train  # slow to import

    return train(Order(small(), ward, tmp_path_factory.mktemp("runs") / "undisturbed"))


@pytest.fixture(scope="session")
def sceptic(graduate, tmp_path_factory) -> Path:
    """The graduate, who doubts every box in which another finding leads by ever so little."""
    from medgrape.reader import load  # slow to import
    from medgrape.runs.checkpoint import SafetyThresholds

    reader = load(graduate)
    thresholds = SafetyThresholds({}, 0.0, None, None, None, {}, {})
    strict = reader.changed(replace(reader.loaded.run, safety=thresholds), "Made to doubt.")
    return strict.save(tmp_path_factory.mktemp("runs") / "sceptic").loaded.folder
