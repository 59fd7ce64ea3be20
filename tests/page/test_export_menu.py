"""The export of one reading and of all readings."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect
from pydicom.uid import generate_uid

from page.reading_screen import ReadingScreen
from scenes import radiograph

pytestmark = pytest.mark.xdist_group("page")
WAYS = {"Picture (PNG)": (".png", b"\x89PNG\r\n"), "Report (PDF)": (".pdf", b"%PDF-"), "Data (JSON)": (".json", b"{")}


def test_a_reading_is_exported_as_picture_report_and_data(open_film):
    screen = open_film()
    right = screen.right_claim()
    screen.apply(right)
    for entry, (ending, beginning) in WAYS.items():
        screen.page.get_by_role("button", name="Export").click()
        with screen.page.expect_download() as download:
            screen.button(entry).click()
        assert download.value.suggested_filename == f"medgrape-{screen.film}{ending}"
        content = Path(download.value.path()).read_bytes()
        assert content.startswith(beginning)
        assert len(content) > 1_000
    study = json.loads(content)["study"]
    assert study["id"] == screen.study_id
    assert [correction["concept"] for correction in study["corrections"]] == [right.concept]


def test_a_reading_of_a_dicom_film_is_exported_as_dicom(server, window):
    down, across = np.mgrid[0:240, 0:240]
    film, content = (down * 9 + across * 7).astype(np.uint16), io.BytesIO()
    radiograph(film, StudyInstanceUID=generate_uid(), SeriesInstanceUID=generate_uid()).save_as(
        content, enforce_file_format=True
    )
    screen = ReadingScreen(server, window("rita"), "rita", server.callers["rita"].upload(content.getvalue())).opened()
    screen.page.get_by_role("button", name="Export").click()
    with screen.page.expect_download() as download:
        screen.button("For archives (DICOM)").click()
    assert download.value.suggested_filename == f"medgrape-{screen.film}.dcm.zip"
    with zipfile.ZipFile(download.value.path()) as packed:
        assert sorted(packed.namelist()) == ["film.dcm", "maps.dcm", "report.dcm"]


def test_a_film_uploaded_as_a_picture_has_no_dicom_export_and_the_menu_says_why(open_film):
    screen = open_film()
    screen.page.get_by_role("button", name="Export").click()
    entry = screen.page.get_by_role("button", name="For archives (DICOM)")
    assert entry.is_disabled()
    assert "uploaded as a picture" in entry.inner_text()


def test_a_curator_exports_all_boxes_and_readings_and_a_reader_cannot(open_film, window):
    screen = open_film()
    right = screen.right_claim()
    screen.apply(right)
    screen.page.goto("/")
    expect(screen.page.get_by_role("heading", name="Films")).to_be_visible()
    expect(screen.page.get_by_role("button", name="Export all")).to_have_count(0)
    page = window("cora")
    page.goto("/")
    ways = {"Readings (CSV)": "medgrape-readings.csv", "Boxes (COCO)": "medgrape-boxes.json"}
    for entry, name in {**ways, "Boxes (CSV)": "medgrape-boxes.csv"}.items():
        page.get_by_role("button", name="Export all").click()
        with page.expect_download() as download:
            page.get_by_role("button", name=entry).click()
        assert download.value.suggested_filename == name
        content = Path(download.value.path()).read_text("utf-8")
        assert screen.film in content
    assert f"{screen.film},{screen.film[:2]}/{screen.film}.png" in content
