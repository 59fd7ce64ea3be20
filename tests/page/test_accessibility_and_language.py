"""Accessibility in both themes, the German page, and the content security policy."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from page.reading_screen import ReadingScreen

pytestmark = pytest.mark.xdist_group("page")
AXE = Path(__file__).parents[2] / "ui/node_modules/axe-core/axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN = """async (tags) => {
  const { violations } = await axe.run(document, { runOnly: { type: "tag", values: tags } });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) =>
    [id, html.slice(0, 120), failureSummary].join(" | ")));
}"""


def violations(page: Page) -> list[str]:
    """Violations found by axe in both themes."""
    assert AXE.is_file(), f"{AXE} is not there: run `npm ci` in ui/."
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    found = []
    for theme in ("dark", "light"):
        page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        found += [f"{theme}: {one}" for one in page.evaluate(RUN, TAGS)]
    return found


def open_box(screen: ReadingScreen) -> Locator:
    right = screen.right_claim()
    screen.draw_for(right)
    screen.tells_of(right.box)
    return screen.card


def warning(screen: ReadingScreen) -> Locator:
    screen.draw_for(screen.wrong_claim())
    return screen.warning


def keys(screen: ReadingScreen) -> Locator:
    screen.page.keyboard.press("?")
    return screen.page.get_by_role("dialog", name="Keyboard shortcuts")


def settings(screen: ReadingScreen) -> Locator:
    screen.button("Settings").click()
    return screen.page.get_by_role("dialog", name="Settings")


def training_film(screen: ReadingScreen) -> Locator:
    screen.page.locator(".exemplars button").first.click()
    return screen.page.get_by_role("dialog", name="Training film")


def looking_back(screen: ReadingScreen) -> Locator:
    screen.apply(screen.right_claim())
    screen.page.keyboard.press("[")
    return screen.page.locator(".history-notice")


def test_the_film_screen_has_no_accessibility_violations(open_film):
    screen = open_film("alma")
    assert violations(screen.page) == []
    for scene in (open_box, warning, keys, settings, training_film, looking_back):
        shown = scene(screen)
        expect(shown).to_be_visible()
        assert violations(screen.page) == [], scene.__name__
        screen.page.keyboard.press("Escape")
        expect(shown).to_have_count(0)


def test_the_teaching_panel_has_no_accessibility_violations(open_film):
    screen = open_film("alma")
    screen.page.keyboard.press("t")
    screen.draw((60.0, 60.0, 110.0, 110.0))
    screen.card.get_by_role("button", name="Use as an example").click()
    expect(screen.page.get_by_role("img", name="Example 1")).to_be_visible()
    screen.draw((130.0, 60.0, 180.0, 110.0))
    assert violations(screen.page) == []


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
def test_every_screen_has_no_accessibility_violations(window, watch, screen, shown, asks):
    watch.expects(r"404 .*/worth\b")  # nobody has measured the model
    page = window("alma")
    page.goto(f"/#/{screen}")
    expect(page.locator(shown).first).to_be_visible()
    assert violations(page) == []
    if asks:
        page.get_by_role("button", name=asks).first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert violations(page) == []


def test_the_login_has_no_accessibility_violations(window, watch):
    watch.expects("401")
    page = window(None)
    page.goto("/")
    page.get_by_label("Name").fill("nobody")
    page.get_by_label("Password").fill("nothing")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("wrong")
    assert violations(page) == []


def test_the_page_is_german_after_german_was_chosen(open_film):
    screen = open_film()
    html = screen.page.locator("html")
    expect(html).to_have_attribute("lang", "en")
    screen.button("Settings").click()
    screen.page.get_by_label("Deutsch").check()
    screen.page.get_by_label("Hell").check()
    screen.button("Fertig").click()
    for _ in ("at once", "after a reload"):
        expect(html).to_have_attribute("lang", "de")
        expect(html).to_have_attribute("data-theme", "light")
        expect(screen.page.get_by_role("heading", name="Befunde", exact=True)).to_be_visible()
        expect(screen.page.get_by_role("link", name="Aufnahmen")).to_be_visible()
        expect(screen.button("Zurücknehmen")).to_be_visible()
        screen.page.reload()


def test_a_german_browser_gets_a_german_login(window, watch):
    watch.expects("401")
    page = window(None, locale="de-DE")
    page.goto("/")
    expect(page.get_by_role("heading", name="Anmelden")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "de")


def test_only_scripts_and_styles_of_the_server_are_allowed(window, watch):
    watch.expects("Content Security Policy")
    page = window("rita")
    answer = page.goto("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    expect(page.get_by_role("heading", name="Films", exact=True)).to_be_visible()
    assert watch.errors == []  # the page itself breaks none of it

    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "document.title = 'broken in'";
      document.body.append(script);
    }""")
    assert page.title() != "broken in"
    assert any("Content Security Policy" in one for one in watch.errors)
