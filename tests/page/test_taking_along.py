"""What one takes along of a reading, or of all of them."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect
from pydicom.uid import generate_uid

from page.light_box import LightBox
from scenes import radiograph

pytestmark = pytest.mark.xdist_group("page")
WAYS = {"Picture (PNG)": (".png", b"\x89PNG\r\n"), "Report (PDF)": (".pdf", b"%PDF-"), "Data (JSON)": (".json", b"{")}


def test_a_reading_is_taken_along_as_picture_report_and_data(at_the_light_box):
    desk = at_the_light_box()
    right = desk.right_claim()
    desk.apply(right)
    for entry, (ending, beginning) in WAYS.items():
        desk.page.get_by_role("button", name="Export").click()
        with desk.page.expect_download() as download:
            desk.button(entry).click()
        assert download.value.suggested_filename == f"medgrape-{desk.film}{ending}"
        content = Path(download.value.path()).read_bytes()
        assert content.startswith(beginning)
        assert len(content) > 1_000
    told = json.loads(content)
    assert told["study"]["id"] == desk.study_id
    assert [one["concept"] for one in told["study"]["corrections"]] == [right.concept]


def test_a_reading_of_a_dicom_film_is_taken_along_for_archives(house, window):
    down, across = np.mgrid[0:240, 0:240]
    film, content = (down * 9 + across * 7).astype(np.uint16), io.BytesIO()
    radiograph(film, StudyInstanceUID=generate_uid(), SeriesInstanceUID=generate_uid()).save_as(
        content, enforce_file_format=True
    )
    desk = LightBox(house, window("rita"), "rita", house.callers["rita"].upload(content.getvalue())).opened()
    desk.page.get_by_role("button", name="Export").click()
    with desk.page.expect_download() as download:
        desk.button("For archives (DICOM)").click()
    assert download.value.suggested_filename == f"medgrape-{desk.film}.dcm.zip"
    with zipfile.ZipFile(download.value.path()) as packed:
        assert sorted(packed.namelist()) == ["film.dcm", "maps.dcm", "report.dcm"]


def test_a_picture_has_no_reading_for_archives_and_the_menu_says_why(at_the_light_box):
    desk = at_the_light_box()
    desk.page.get_by_role("button", name="Export").click()
    entry = desk.page.get_by_role("button", name="For archives (DICOM)")
    assert entry.is_disabled()
    assert "uploaded as a picture" in entry.inner_text()


def test_a_curator_takes_everybodys_boxes_and_readings_along_and_a_reader_is_not_offered_them(at_the_light_box, window):
    desk = at_the_light_box()
    right = desk.right_claim()
    desk.apply(right)
    desk.page.goto("/")
    expect(desk.page.get_by_role("heading", name="Films")).to_be_visible()
    expect(desk.page.get_by_role("button", name="Export all")).to_have_count(0)
    page = window("cora")
    page.goto("/")
    ways = {"Readings (CSV)": "medgrape-readings.csv", "Boxes (COCO)": "medgrape-boxes.json"}
    for entry, name in {**ways, "Boxes (CSV)": "medgrape-boxes.csv"}.items():
        page.get_by_role("button", name="Export all").click()
        with page.expect_download() as download:
            page.get_by_role("button", name=entry).click()
        assert download.value.suggested_filename == name
        content = Path(download.value.path()).read_text("utf-8")
        assert desk.film in content
    assert f"{desk.film},{desk.film[:2]}/{desk.film}.png" in content
