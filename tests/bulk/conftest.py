"""A model that learnt nothing and reads in no time."""

from pathlib import Path

import pytest

from benchmarks.untrained import untrained_reader
from medgrape.concepts import ConceptSet
from medgrape.config import parse_config

TINY = {
    "preprocessing": {"size": 64},
    "backbone": {"name": "efficientnet-lite0", "pretrained": False, "leave_off": 3},
    "model": {"prototypes": 2, "width": 8},
}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """Its run."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    folder.mkdir()
    reader = untrained_reader(parse_config(TINY), ConceptSet.built_in("tbx11k"))
    reader.loaded.run.save(folder, {"name": "none", "checksum": "none"})
    return folder


@pytest.fixture
def films(films_folder) -> list[Path]:
    """Eight small films."""
    return sorted(films_folder.iterdir())
