"""What a curator does to models: teach a finding, discard prototypes, and decide whether the result is used."""

import pytest
from playwright.sync_api import expect

from page.light_box import LightBox

pytestmark = pytest.mark.xdist_group("page")


@pytest.fixture
def first_model(house):
    """The model in use; whatever a test puts to use, it is in use again afterwards."""
    first = house.model_in_use()
    yield first
    house.callers["cora"].post(f"/models/{first}/use")


def teach(desk: LightBox, title: str, name: str) -> str:
    """Teach a finding with one box; the model that knows it."""
    desk.page.get_by_role("button", name="Teach a finding").click()
    panel = desk.page.locator(".teach")
    learn = panel.get_by_role("button", name="Learn it")
    expect(learn).to_be_disabled()
    panel.get_by_label("Name").fill(title)
    panel.get_by_label("How it looks").fill("A thick ring around a dark hole in the upper lobe.")
    expect(panel).to_contain_text(f"Its identifier in files and programs: {name}")
    desk.draw((60.0, 60.0, 110.0, 110.0))
    desk.card.get_by_role("button", name="Use as an example").click()
    expect(panel.get_by_role("img", name="Example 1")).to_be_visible()
    mapped = f"/films/{desk.film}/maps/{name}.png"
    with desk.page.expect_response(lambda answer: mapped in answer.url) as map_told:
        learn.click()
    assert map_told.value.ok
    expect(panel.get_by_role("heading")).to_have_text(f"{title}: learnt")
    expect(panel).to_contain_text("On this film:")
    return map_told.value.url.partition("model=")[2].partition("&")[0]


def test_a_taught_finding_that_is_kept_is_on_the_film_and_takes_corrections_along(at_the_light_box, house, first_model):
    desk = at_the_light_box("cora")
    right = desk.right_claim()
    desk.apply(right)

    made = teach(desk, "Thick-walled cavity", "thick_walled_cavity")
    assert house.model_in_use() == first_model  # nothing changed for anybody yet
    desk.page.get_by_label("Carry my correction over").check()
    desk.page.get_by_role("button", name="Keep it").click()

    expect(desk.finding("thick_walled_cavity")).to_be_visible()
    expect(desk.corrections).to_have_text([f"1. {right.title} is here✕"])
    expect(desk.page.locator(".teach")).to_have_count(0)
    assert desk.page.url.endswith(f"/#/films/{desk.film}/{made}")
    assert house.model_in_use() == made
    study = house.callers["cora"].post("/studies", {"film": desk.film})
    assert (study["model"], [one["concept"] for one in study["corrections"]]) == (made, [right.concept])


def test_a_taught_finding_that_is_discarded_leaves_no_model_behind(at_the_light_box, house, first_model):
    desk = at_the_light_box("cora")
    before = house.models()
    made = teach(desk, "Air bubble", "air_bubble")
    assert house.models() == before | {made}

    desk.page.get_by_role("button", name="Discard it").click()

    expect(desk.page.locator(".teach")).to_have_count(0)
    expect(desk.finding("air_bubble")).to_have_count(0)
    assert house.models() == before
    assert house.model_in_use() == first_model


def test_a_reader_teaches_nothing(at_the_light_box):
    desk = at_the_light_box("rita")
    expect(desk.page.get_by_role("button", name="Teach a finding")).to_have_count(0)
    desk.page.keyboard.press("t")
    expect(desk.page.locator(".teach")).to_have_count(0)


@pytest.mark.parametrize(("prototype", "decision"), [(1, "put to use"), (2, "removed")])
def test_a_model_without_a_prototype_is_measured_and_then_put_to_use_or_removed(
    house, window, watch, first_model, prototype, decision
):
    watch.expects(r"404 .*/worth\b")  # until it is measured
    before = house.models()
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
    (made,) = house.models() - before
    assert page.url.endswith(f"/#/atlas/{made}/active_tb")
    assert house.model_in_use() == first_model

    if decision == "put to use":
        page.get_by_role("button", name="Use this model").click()
        expect(page.get_by_text("the model that films are read with")).to_be_visible()
        assert house.model_in_use() == made
    else:
        page.get_by_role("button", name="Remove …").click()
        page.get_by_role("dialog", name="Remove this model?").get_by_role("button", name="Remove").click()
        expect(page.locator(".prototype.discarded")).to_have_count(0)
        assert page.url.endswith(f"/#/atlas/{first_model}/active_tb")
        assert house.models() == before
