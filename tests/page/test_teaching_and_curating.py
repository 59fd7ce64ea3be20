"""A curator teaches a finding or discards prototypes, then uses or removes the new model."""

import pytest
from playwright.sync_api import expect

from page.reading_screen import ReadingScreen

pytestmark = pytest.mark.xdist_group("page")


@pytest.fixture
def first_model(server):
    """The model in use, which is put to use again after the test."""
    first = server.model_in_use()
    yield first
    server.callers["cora"].post(f"/models/{first}/use")


def teach(screen: ReadingScreen, title: str, name: str) -> str:
    """Teach a finding with one box; return the version of the new model."""
    screen.page.get_by_role("button", name="Teach a finding").click()
    panel = screen.page.locator(".teach")
    learn = panel.get_by_role("button", name="Learn it")
    expect(learn).to_be_disabled()
    panel.get_by_label("Name").fill(title)
    panel.get_by_label("How it looks").fill("A thick ring around a dark hole in the upper lobe.")
    expect(panel).to_contain_text(f"Its identifier in files and programs: {name}")
    screen.draw((60.0, 60.0, 110.0, 110.0))
    screen.card.get_by_role("button", name="Use as an example").click()
    expect(panel.get_by_role("img", name="Example 1")).to_be_visible()
    mapped = f"/films/{screen.film}/maps/{name}.png"
    with screen.page.expect_response(lambda answer: mapped in answer.url) as map_told:
        learn.click()
    assert map_told.value.ok
    expect(panel.get_by_role("heading")).to_have_text(f"{title}: learnt")
    expect(panel).to_contain_text("On this film:")
    return map_told.value.url.partition("model=")[2].partition("&")[0]


def test_a_taught_finding_that_is_kept_is_on_the_film_with_the_corrections(open_film, server, first_model):
    screen = open_film("cora")
    right = screen.right_claim()
    screen.apply(right)

    made = teach(screen, "Thick-walled cavity", "thick_walled_cavity")
    assert server.model_in_use() == first_model  # nothing changed for anybody yet
    screen.page.get_by_label("Carry my correction over").check()
    screen.page.get_by_role("button", name="Keep it").click()

    expect(screen.finding("thick_walled_cavity")).to_be_visible()
    expect(screen.corrections).to_have_text([f"1. {right.title} is here✕"])
    expect(screen.page.locator(".teach")).to_have_count(0)
    assert screen.page.url.endswith(f"/#/films/{screen.film}/{made}")
    assert server.model_in_use() == made
    study = server.callers["cora"].post("/studies", {"film": screen.film})
    assert (study["model"], [one["concept"] for one in study["corrections"]]) == (made, [right.concept])


def test_a_taught_finding_that_is_discarded_leaves_no_model_behind(open_film, server, first_model):
    screen = open_film("cora")
    before = server.models()
    made = teach(screen, "Air bubble", "air_bubble")
    assert server.models() == before | {made}

    screen.page.get_by_role("button", name="Discard it").click()

    expect(screen.page.locator(".teach")).to_have_count(0)
    expect(screen.finding("air_bubble")).to_have_count(0)
    assert server.models() == before
    assert server.model_in_use() == first_model


def test_a_reader_cannot_teach(open_film):
    screen = open_film("rita")
    expect(screen.page.get_by_role("button", name="Teach a finding")).to_have_count(0)
    screen.page.keyboard.press("t")
    expect(screen.page.locator(".teach")).to_have_count(0)


@pytest.mark.parametrize(("prototype", "decision"), [(1, "put to use"), (2, "removed")])
def test_a_model_without_a_prototype_is_measured_and_then_put_to_use_or_removed(
    server, window, watch, first_model, prototype, decision
):
    watch.expects(r"404 .*/worth\b")  # until it is measured
    before = server.models()
    page = window("cora")
    page.goto(f"/#/atlas/{first_model}/active_tb")
    expect(page.locator(".prototype")).to_have_count(4)
    page.get_by_label(f"Select prototype {prototype}").check()
    page.get_by_role("button", name="Discard 1").click()

    expect(page.get_by_text("A new model was made.")).to_be_visible()
    expect(page.locator(".prototype.discarded")).to_have_count(1)
    measurement = page.locator(".measurement")
    expect(measurement).to_contain_text("validation film")
    expect(measurement.get_by_role("row").filter(has_text="Macro-F1").get_by_role("cell")).to_have_count(4)
    (made,) = server.models() - before
    assert page.url.endswith(f"/#/atlas/{made}/active_tb")
    assert server.model_in_use() == first_model

    if decision == "put to use":
        page.get_by_role("button", name="Use this model").click()
        expect(page.get_by_text("the model that films are read with")).to_be_visible()
        assert server.model_in_use() == made
    else:
        page.get_by_role("button", name="Remove …").click()
        page.get_by_role("dialog", name="Remove this model?").get_by_role("button", name="Remove").click()
        expect(page.locator(".prototype.discarded")).to_have_count(0)
        assert page.url.endswith(f"/#/atlas/{first_model}/active_tb")
        assert server.models() == before
