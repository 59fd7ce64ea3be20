"""Odd headers: objects stay valid, names stay private, and patient and study are copied exactly."""

import warnings

import pytest
from pydicom import Dataset, config, dcmread
from pydicom.uid import UID

from dicom_scenes import UPRIGHT, complaints, stored_film
from medgrape.config import FilmLimits
from medgrape.films.film import FilmError
from medgrape.hospital.codes import code_meaning
from medgrape.hospital.objects import DicomOutError, check_source, person_name, write_objects
from medgrape.hospital.source import read_source

pytestmark = pytest.mark.xdist_group("dicom out")  # what they share is made once


def odd_film(path, **changes):
    """Write a film whose header breaks DICOM's rules."""
    with config.disable_value_validation():
        return stored_film(path, **changes)


def method(words="Basic Application Confidentiality Profile"):
    code = Dataset()
    code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = "113100", "DCM", words
    return [code]


ODD = {
    "an age without its unit": {"PatientAge": "45"},
    "an age of three characters": {"PatientAge": "45Y"},
    "a date with dots": {"StudyDate": "2024.02.29"},
    "a day that is none": {"PatientBirthDate": "19500000"},
    "one edge": {"PatientOrientation": ["L"]},
    "three edges": {"PatientOrientation": ["L", "F", "H"]},
    "edges in words": {"PatientOrientation": ["LEFT", "FOOT"]},
    "a window in small letters": {"VOILUTFunction": "linear"},
    "a window of no kind": {"VOILUTFunction": "STEEP"},
    "a description in lines": {"StudyDescription": "Thorax\r\npa"},
    "a description in parts": {"StudyDescription": "Thorax\\pa"},
    "a long description": {"StudyDescription": "d" * 70},
    "names taken away by a method": {"PatientIdentityRemoved": "YES", "DeidentificationMethodCodeSequence": method()},
    "names taken away, so to speak": {"PatientIdentityRemoved": "TRUE"},
}


@pytest.mark.parametrize("changes", ODD.values(), ids=ODD)
def test_invalid_header_values_are_not_copied(opened, tmp_path, changes):
    film = odd_film(tmp_path / "film.dcm", **changes)
    study = opened(film).apply(UPRIGHT, "active_tb", confirmed=True)
    for path in write_objects(study, film, tmp_path / "out", None, FilmLimits()):
        assert complaints(path) == [], path.name


def source_of(path, **changes):
    return read_source(odd_film(path, **changes), FilmLimits())


def test_valid_header_values_are_copied(tmp_path):
    film = tmp_path / "film.dcm"
    changes = {"PatientAge": "045Y", "PatientOrientation": ["L", "FP"], "VOILUTFunction": "sigmoid"}
    german = {"SpecificCharacterSet": "ISO_IR 100", "DeidentificationMethodCodeSequence": method("Schlüssel")}
    kept = source_of(film, **changes, **german)
    assert (kept.header.PatientAge, list(kept.header.PatientOrientation)) == ("045Y", ["L", "FP"])
    assert kept.greys.SoftcopyVOILUTSequence[0].VOILUTFunction == "SIGMOID"
    assert kept.header.DeidentificationMethodCodeSequence[0].CodeMeaning == "Schlüssel"
    assert source_of(film, StudyDescription="Thorax\tpa" + "d" * 70).header.StudyDescription == "Thorax pa" + "d" * 55
    assert "VOILUTFunction" not in source_of(film, VOILUTFunction="STEEP").greys.SoftcopyVOILUTSequence[0]


@pytest.mark.parametrize("name", ["Doe\\Jane", "Doe^Jane\\Roe", "a^b^c^d^e^f", "A" * 70])
def test_names_and_numbers_are_copied_exactly_even_if_invalid(opened, tmp_path, name):
    same = {"PatientName": name, "PatientID": "47\\11", "AccessionNumber": "ACC-2024-000000123456", "StudyID": "S" * 20}
    film = odd_film(tmp_path / "film.dcm", **same)
    study = opened(film).apply(UPRIGHT, None)
    with config.disable_value_validation():
        for path in write_objects(study, film, tmp_path / "out", None, FilmLimits()):
            written, original = dcmread(path), dcmread(film)
            assert all(written[keyword].value == original[keyword].value for keyword in same), path.name
            assert f"{name}".encode() in path.read_bytes()


def test_a_name_without_caret_is_in_the_objects_and_in_no_warning(opened, tmp_path):
    film = odd_film(tmp_path / "film.dcm", PatientName="MUSTERMANN ERIKA", PatientOrientation=["Erika", "Mustermann"])
    study = opened(film).apply(UPRIGHT, None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_source(film, FilmLimits())
        paths = write_objects(study, film, tmp_path / "out", None, FilmLimits())
    assert [str(warning.message) for warning in caught] == []
    assert {str(dcmread(path).PatientName) for path in paths} == {"MUSTERMANN ERIKA"}


@pytest.mark.parametrize("kind", ["1.2.3.4.5", "1.2.840.10008.5.1.4.1.1.77.1", "1.2.840.10008.5.1.4.1.1.104.1"])
def test_a_film_of_an_unknown_sop_class_is_refused_before_it_is_read(tmp_path, kind):
    film = stored_film(tmp_path / "film.dcm", SOPClassUID=UID(kind))
    with pytest.raises(FilmError, match="its SOP class is none that DICOM has for images"):
        check_source(film, FilmLimits())


@pytest.mark.parametrize("fault", [KeyError("Doe^Jane"), OSError("for data_element: Doe^Jane")], ids=["key", "pydicom"])
def test_an_unexpected_error_is_reported_by_its_type_only(opened, tmp_path, monkeypatch, fault):
    def stumble(*_):
        raise fault

    film = stored_film(tmp_path / "film.dcm")
    study = opened(film)
    monkeypatch.setattr("medgrape.hospital.report.build_report", stumble)
    with pytest.raises(DicomOutError, match=rf"cannot be written as DICOM \({type(fault).__name__}\)") as raised:
        write_objects(study, film, tmp_path / "out", None, FilmLimits())
    assert "Doe" not in str(raised.value)
    assert isinstance(raised.value, FilmError), "a watch refuses the film, and goes on"
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_reported_as_such(opened, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    film = stored_film(tmp_path / "film.dcm")
    study = opened(film)
    monkeypatch.setattr(Dataset, "save_as", full)
    with pytest.raises(OSError, match="No space left"):
        write_objects(study, film, tmp_path / "out", None, FilmLimits())


@pytest.mark.parametrize("words", ["b" * 80, "Ж" * 40, "b" * 60 + "Ж" * 9, "猫" * 22, "a" + "😀" * 20])
def test_the_meaning_of_a_code_fits_into_64_bytes_whatever_the_alphabet(words):
    meaning = code_meaning(words)
    assert 60 <= len(meaning.encode()) <= 64
    assert meaning.endswith("...")
    assert words.startswith(meaning.removesuffix("..."))
    assert code_meaning("b" * 64) == "b" * 64
    assert code_meaning("Ж" * 32) == "Ж" * 32


def test_an_observer_has_up_to_five_parts():
    assert person_name("a^b^c^d^e") == "a^b^c^d^e"
    with pytest.raises(DicomOutError, match="up to 5 parts"):
        person_name("a^b^c^d^e^f")
