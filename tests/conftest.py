"""Fixtures that many tests share."""

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from filelock import FileLock

from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset
from small_settings import small

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background job of a shell; tests send it to programs
    signal.signal(signal.SIGINT, signal.default_int_handler)

INTEGRATION = {"bulk", "cli", "documents", "hospital", "paper", "server", "sklearn", "tools"}
BROWSER = {"page"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests of the package first, then those of commands, servers and documents, then those in a browser."""

    def stage(item: pytest.Item) -> int:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        return 2 if folder in BROWSER else 1 if folder in INTEGRATION else 0

    items.sort(key=stage)


@pytest.fixture(scope="session")
def chest() -> np.ndarray:
    """Return an asymmetric 12-bit film of 300 x 200 pixels, bright at the top left."""
    down, across = np.mgrid[0:200, 0:300]
    film = 3600 - 9 * down - 3 * across + 200 * np.sin(across / 11) * np.cos(down / 7)
    film[20:60, 30:90] += 300
    return np.clip(film, 0, 4095).astype(np.uint16)


@pytest.fixture
def films_folder(tmp_path) -> Path:
    """Return a folder with eight different small films."""
    folder = tmp_path / "films"
    folder.mkdir()
    chance = np.random.default_rng(3)
    for number in range(8):
        blocks = cv2.resize(chance.integers(0, 255, (6, 6)).astype(np.uint8), (96, 80), interpolation=cv2.INTER_CUBIC)
        cv2.imwrite(str(folder / f"film{number}.png"), blocks)
    return folder


@pytest.fixture(scope="session")
def made_once(tmp_path_factory, worker_id) -> Callable[[str, Callable[[Path], object]], Path]:
    """Return a function that makes a folder once for all test processes: ``made_once(name, make)``."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "shared"
    shared.mkdir(exist_ok=True)

    def made(name: str, make: Callable[[Path], object]) -> Path:
        path, done = shared / name, shared / f"{name}.done"
        with FileLock(shared / f"{name}.lock"):
            if not done.exists():
                make(path)
                done.touch()
        return path

    return made


@pytest.fixture(scope="session")
def drawn_dataset(made_once) -> Path:
    """Return a prepared data set of 48 small drawn films."""
    rule = SplitRule(validation=0.25, test=0.2, seed=0)
    return made_once("drawn_dataset", lambda path: draw_dataset(PhantomOptions(films=48, seed=5, size=64), path, rule))


@pytest.fixture(scope="session")
def trained_run(made_once, drawn_dataset) -> Path:
    """Return a run that was trained on those films."""
    from medgrape.training.run import TrainingJob, train  # slow to import

    return made_once("trained_run", lambda path: train(TrainingJob(small(), drawn_dataset, path)))


@pytest.fixture(scope="session")
def strict_run(made_once, trained_run) -> Path:
    """Return the trained run with a check that doubts every box in which another finding leads."""
    from medgrape.reader import load  # slow to import
    from medgrape.runs.checkpoint import SafetyThresholds

    def with_strict_check(path: Path) -> None:
        reader = load(trained_run)
        thresholds = SafetyThresholds({}, 0.0, None, None, None, {}, {})
        reader.changed(replace(reader.loaded.run, safety=thresholds), "Strict check.").save(path)

    return made_once("strict_run", with_strict_check)
