"""The page for everybody: for screen readers, in both themes, in German, and under its content policy."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from page.light_box import LightBox

pytestmark = pytest.mark.xdist_group("page")
AXE = Path(__file__).parents[2] / "ui/node_modules/axe-core/axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN = """async (tags) => {
  const { violations } = await axe.run(document, { runOnly: { type: "tag", values: tags } });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) =>
    [id, html.slice(0, 120), failureSummary].join(" | ")));
}"""


def violations(page: Page) -> list[str]:
    """What axe finds, in both themes."""
    assert AXE.is_file(), f"{AXE} is not there: run `npm ci` in ui/."
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    found = []
    for theme in ("dark", "light"):
        page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        found += [f"{theme}: {one}" for one in page.evaluate(RUN, TAGS)]
    return found


def box_in_hand(desk: LightBox) -> Locator:
    right = desk.right_claim()
    desk.draw_for(right)
    desk.tells_of(right.box)
    return desk.card


def doubt(desk: LightBox) -> Locator:
    desk.draw_for(desk.wrong_claim())
    return desk.doubt


def keys(desk: LightBox) -> Locator:
    desk.page.keyboard.press("?")
    return desk.page.get_by_role("dialog", name="Keyboard shortcuts")


def settings(desk: LightBox) -> Locator:
    desk.button("Settings").click()
    return desk.page.get_by_role("dialog", name="Settings")


def training_film(desk: LightBox) -> Locator:
    desk.page.locator(".exemplars button").first.click()
    return desk.page.get_by_role("dialog", name="Training film")


def looking_back(desk: LightBox) -> Locator:
    desk.apply(desk.right_claim())
    desk.page.keyboard.press("[")
    return desk.page.locator(".history-notice")


def test_a_film_can_be_read_by_everybody(at_the_light_box):
    desk = at_the_light_box("alma")
    assert violations(desk.page) == []
    for scene in (box_in_hand, doubt, keys, settings, training_film, looking_back):
        shown = scene(desk)
        expect(shown).to_be_visible()
        assert violations(desk.page) == [], scene.__name__
        desk.page.keyboard.press("Escape")
        expect(shown).to_have_count(0)


def test_a_finding_can_be_taught_by_everybody(at_the_light_box):
    desk = at_the_light_box("alma")
    desk.page.keyboard.press("t")
    desk.draw((60.0, 60.0, 110.0, 110.0))
    desk.card.get_by_role("button", name="Use as an example").click()
    expect(desk.page.get_by_role("img", name="Example 1")).to_be_visible()
    desk.draw((130.0, 60.0, 180.0, 110.0))
    assert violations(desk.page) == []


@pytest.mark.usefixtures("film")
@pytest.mark.parametrize(
    ("screen", "shown", "asks"),
    [
        ("films", ".films .likeliest", "Remove film"),
        ("atlas", ".prototype", "Show the training film of prototype 1"),
        ("model", ".measurement", None),
        ("audit", "text=The log is intact", None),
    ],
)
def test_every_screen_can_be_read_by_everybody(window, watch, screen, shown, asks):
    watch.expects(r"404 .*/worth\b")  # nobody has measured the model
    page = window("alma")
    page.goto(f"/#/{screen}")
    expect(page.locator(shown).first).to_be_visible()
    assert violations(page) == []
    if asks:
        page.get_by_role("button", name=asks).first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert violations(page) == []


def test_the_door_can_be_found_by_everybody(window, watch):
    watch.expects("401")
    page = window(None)
    page.goto("/")
    page.get_by_label("Name").fill("nobody")
    page.get_by_label("Password").fill("nothing")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("wrong")
    assert violations(page) == []


def test_the_page_speaks_german_once_it_was_asked_to(at_the_light_box):
    desk = at_the_light_box()
    html = desk.page.locator("html")
    expect(html).to_have_attribute("lang", "en")
    desk.button("Settings").click()
    desk.page.get_by_label("Deutsch").check()
    desk.page.get_by_label("Hell").check()
    desk.button("Fertig").click()
    for _ in ("at once", "after a reload"):
        expect(html).to_have_attribute("lang", "de")
        expect(html).to_have_attribute("data-theme", "light")
        expect(desk.page.get_by_role("heading", name="Befunde", exact=True)).to_be_visible()
        expect(desk.page.get_by_role("link", name="Aufnahmen")).to_be_visible()
        expect(desk.button("Zurücknehmen")).to_be_visible()
        desk.page.reload()


def test_a_browser_that_speaks_german_is_greeted_in_german(window, watch):
    watch.expects("401")
    page = window(None, locale="de-DE")
    page.goto("/")
    expect(page.get_by_role("heading", name="Anmelden")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "de")


def test_nothing_but_the_servers_own_scripts_and_styles_is_let_in(window, watch):
    watch.expects("Content Security Policy")
    page = window("rita")
    answer = page.goto("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    expect(page.get_by_role("heading", name="Films", exact=True)).to_be_visible()
    assert watch.complaints == []  # the page itself breaks none of it

    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "document.title = 'broken in'";
      document.body.append(script);
    }""")
    assert page.title() != "broken in"
    assert any("Content Security Policy" in one for one in watch.complaints)
