"""Login, upload of films, and the list of films."""

import pytest
from playwright.sync_api import Page, expect

from medgrape.films.dicom.writer import Person, write_dicom
from page.reading_screen import ReadingScreen
from page.server import PASSWORD, SIDE, pixels, png

pytestmark = pytest.mark.xdist_group("page")


def upload(page: Page, files) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add films").click()
    chooser.value.set_files(files)


def test_a_wrong_password_is_refused_and_the_right_one_logs_in(window, watch):
    watch.expects("401")
    page = window(None)
    page.goto("/")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.get_by_label("Name").fill("rita")
    page.get_by_label("Password").fill("wrong horse battery")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("Name or password is wrong")
    expect(page.get_by_label("Password")).to_be_focused()
    expect(page.get_by_label("Password")).to_have_value("")

    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Films", exact=True)).to_be_visible()
    expect(page.locator(".current-user")).to_have_text("rita (reader)")

    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_dicom_file_is_uploaded_read_by_the_model_and_opened(server, window, tmp_path):
    path = tmp_path / "IM0001"  # X-ray machines write names without a suffix
    write_dicom(path, pixels(31), Person("p31", "F", 54), "31", "PA")
    page = window("rita")
    page.goto("/")
    upload(page, path)

    expect(page.locator(".upload.done .upload-name")).to_have_text("IM0001")
    film = page.locator(".upload.done a").get_attribute("href").rpartition("/")[2]
    row = page.get_by_role("row").filter(has_text=film[:8])
    expect(row).to_contain_text("PA")
    expect(row).to_contain_text("female, 54 years")
    expect(row.locator(".likeliest .figure")).to_contain_text("%")
    listed = server.callers["rita"].get(f"/films/{film}")

    row.get_by_role("link").click()
    screen = ReadingScreen(server, page, "rita", film).shown()
    assert screen.study()["prediction"].keys() == listed["prediction"].keys()
    expect(page.locator(".classes li")).to_have_count(len(listed["prediction"]))
    expect(page.locator(".findings .title")).to_have_text(list(screen.titles().values()))
    facts = f"PA · female · 54 years · DICOM, 12 bit · {SIDE} × {SIDE}"
    expect(page.locator(".side-panel")).to_contain_text(facts)
    assert "Phantom" not in page.content()  # the patient's name stayed behind


def test_a_file_that_is_not_a_film_is_refused_and_the_others_are_uploaded(server, window, watch):
    films = [{"name": f"film{seed}.png", "mimeType": "image/png", "buffer": png(seed)} for seed in range(41, 46)]
    letter = {"name": "letter.png", "mimeType": "image/png", "buffer": b"Dear colleague, please find enclosed."}
    page = window("rita")
    page.goto("/")
    watch.expects("422")
    slow, held = [True], []
    page.route("**/api/v1/films", lambda route: held.append(route) if slow else route.continue_())

    upload(page, [*films[:2], letter, *films[2:]])

    uploads = page.locator(".uploads")
    expect(uploads.get_by_role("status")).to_have_text("0 of 6 done")
    expect(uploads.get_by_role("progressbar")).to_have_count(6)
    slow.clear()
    for route in held:
        route.continue_()
    expect(uploads.get_by_role("status")).to_have_text("6 of 6 done · 5 new · 1 refused")
    refused = uploads.locator(".upload.refused")
    expect(refused.locator(".upload-name")).to_have_text("letter.png")
    expect(refused).to_contain_text("it is not a film: neither PNG, JPEG nor DICOM")
    expect(uploads.locator(".upload.done")).to_have_count(5)
    arrived = {one["id"][:8] for one in server.callers["rita"].get("/films")["films"]}
    for link in uploads.locator(".upload.done a").all():
        assert link.get_attribute("href").rpartition("/")[2][:8] in arrived
