"""What one takes along of a reading."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("page")


@pytest.mark.parametrize(
    ("entry", "ending", "beginning"),
    [("Picture (PNG)", ".png", b"\x89PNG\r\n"), ("Report (PDF)", ".pdf", b"%PDF-"), ("Data (JSON)", ".json", b"{")],
)
def test_a_reading_is_taken_along_as_picture_report_and_data(at_the_light_box, entry, ending, beginning):
    desk = at_the_light_box()
    desk.apply(desk.right_claim())
    desk.page.get_by_role("button", name="Export").click()
    with desk.page.expect_download() as download:
        desk.button(entry).click()
    assert download.value.suggested_filename == f"medgrape-{desk.film}{ending}"
    content = Path(download.value.path()).read_bytes()
    assert content.startswith(beginning)
    if ending == ".json":
        assert json.dumps(json.loads(content)).count(desk.study_id) > 0
    else:
        assert len(content) > 5_000
