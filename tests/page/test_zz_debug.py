import pytest
from page.test_everybody import violations, AXE, RUN, TAGS
from page.test_keyboard import FOCUSED
pytestmark = pytest.mark.xdist_group("page")
def test_dbg(at_the_light_box, house):
    desk = at_the_light_box("cora")
    for _ in range(4):
        desk.page.keyboard.press("Tab")
        print(desk.page.evaluate(FOCUSED), desk.page.evaluate("[document.activeElement.matches(':focus-visible'), getComputedStyle(document.activeElement).outline, document.hasFocus()]"))
    print("\n".join(one for one in violations(desk.page) if one.startswith("dark")))
