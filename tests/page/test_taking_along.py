"""What one takes along of a reading."""

import json
from pathlib import Path

import pytest

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
