"""Boxes: drawn, doubted, applied, moved, taken back."""

import pytest
from playwright.sync_api import expect

from page.light_box import NEAR, corners

pytestmark = pytest.mark.xdist_group("page")  # one server and one browser for all of them


def test_a_wrong_box_is_warned_of_and_nothing_is_applied_when_one_cancels(at_the_light_box):
    desk = at_the_light_box()
    wrong = desk.wrong_claim()
    seen = desk.titles()[wrong.check["rival"]]

    desk.draw_for(wrong)

    means = {one["name"]: f"{one['mean']:.2f}".replace("-", "−") for one in wrong.check["concepts"]}
    expect(desk.doubt).to_contain_text(f"You said {wrong.title}.")
    expect(desk.doubt).to_contain_text(f"Inside this box the model sees {seen}")
    print(means, desk.doubt.inner_text())
