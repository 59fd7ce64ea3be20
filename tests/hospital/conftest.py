"""A study written as DICOM, shared by the tests."""

import pytest

from dicom_scenes import (
    UPRIGHT,
    stored_film,
)
from medgrape.films.decoder import Decoder
from medgrape.geometry import Box, Turn
from medgrape.hospital.objects import write_dicom_reading
from medgrape.reader import load
from medgrape.study import ConceptMismatchError


@pytest.fixture(scope="session")
def reader(strict_run):
    return load(strict_run)


@pytest.fixture(scope="session")
def opened(reader):
    """Return a function that opens a film."""
    with Decoder() as decoder:
        yield lambda film: reader.open(film, decoder)


@pytest.fixture(scope="session")
def corrected(opened, tmp_path_factory):
    """A study with a doubted box, an unchecked one, one for any finding and a rejection; and its film."""
    film = stored_film(tmp_path_factory.mktemp("film") / "film.dcm", Turn(1), PatientName="Müller^Jörg")
    study, doubted = _doubted(opened(film))
    study = study.apply(UPRIGHT, doubted, confirmed=True)
    study = study.rule_out(Box(0, 0, 30, 30), "active_tb").apply(Box(100, 80, 180, 140), None)
    return study.reject("obsolete_tb"), film


def _doubted(study):
    """Return the study, and a finding that the check doubts inside the bright block."""
    for name in study.original.concepts.names:
        try:
            study.apply(UPRIGHT, name)
        except ConceptMismatchError:
            return study, name
    raise AssertionError("the model doubts nothing")


@pytest.fixture(scope="session")
def written(corrected, tmp_path_factory):
    """Its DICOM files, by name."""
    out = tmp_path_factory.mktemp("reading") / "out"
    paths = write_dicom_reading(*corrected, out, observer="Curie^Marie")
    return {path.name: path for path in paths}
