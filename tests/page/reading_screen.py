"""The screen of one film: its parts, actions with mouse and keys, and the state on the server."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from playwright.sync_api import Locator, Page, expect

from page.browser import TIMEOUT
from page.server import SIDE, PageServer

Corners = tuple[float, float, float, float]
NEAR = 1.0
"""Film pixels by which a drawn box may differ, because the screen has whole pixels."""
MIDDLE: Corners = (0.4 * SIDE, 0.4 * SIDE, 0.6 * SIDE, 0.6 * SIDE)
"""The box that the B key draws."""


@dataclass(frozen=True)
class Claim:
    """A box, the finding claimed inside, and the result of the check."""

    box: Corners
    concept: str
    title: str
    check: dict


@dataclass
class ReadingScreen:
    """A user who reads a film."""

    server: PageServer
    page: Page
    who: str
    film: str

    def opened(self) -> "ReadingScreen":
        self.page.goto(f"/#/films/{self.film}")
        return self.shown()

    def shown(self) -> "ReadingScreen":
        """Wait until film, classes and findings are all there."""
        expect(self.page.locator(".film")).to_have_attribute("data-shown", "whole")
        expect(self.page.locator(".findings .finding").first).to_be_visible()
        return self

    # The state on the server, without the page.

    @cached_property
    def study_id(self) -> str:
        return self.server.callers[self.who].post("/studies", {"film": self.film})["id"]

    def study(self) -> dict:
        return self.server.callers[self.who].get(f"/studies/{self.study_id}")

    def steps(self) -> list[dict]:
        return self.server.callers[self.who].get(f"/studies/{self.study_id}/history")

    def titles(self) -> dict[str, str]:
        concepts = self.server.callers[self.who].get(f"/studies/{self.study_id}/explanation")["concepts"]
        return {concept["name"]: concept["title"] for concept in concepts}

    def check(self, box: Corners, concept: str) -> dict:
        claim = {"box": dict(zip(("x1", "y1", "x2", "y2"), box, strict=True)), "concept": concept}
        return self.server.callers[self.who].post(f"/studies/{self.study_id}/check", claim)

    def wrong_claim(self) -> Claim:
        """A claim about which the model warns."""
        box, means = max(self._quarters(), key=lambda quarter: quarter[1][0]["mean"] - quarter[1][-1]["mean"])
        claim = self._claim(box, means[-1]["name"])
        assert claim.check["mismatch"], "The model warns about no box."
        return claim

    def right_claim(self) -> Claim:
        """A claim with which the model agrees."""
        box, means = max(self._quarters(), key=lambda quarter: quarter[1][0]["mean"] - quarter[1][1]["mean"])
        claim = self._claim(box, means[0]["name"])
        assert not claim.check["mismatch"], "The model agrees with no box."
        return claim

    def _claim(self, box: Corners, concept: str) -> Claim:
        return Claim(box, concept, self.titles()[concept], self.check(box, concept))

    def _quarters(self) -> list[tuple[Corners, list[dict]]]:
        """A box in each quarter of the film, with the findings that the model sees there, strongest first."""
        boxes = [(x, y, x + 70.0, y + 60.0) for x, y in product((30.0, 120.0), (40.0, 130.0))]
        anything = next(iter(self.titles()))
        return [(box, self.check(box, anything)["concepts"]) for box in boxes]

    # Places on the screen.

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Window coordinates of a film pixel; the film is as large as fits."""
        room = self.page.locator(".film").bounding_box()
        scale = min(room["width"], room["height"]) / SIDE
        left = room["x"] + (room["width"] - SIDE * scale) / 2
        top = room["y"] + (room["height"] - SIDE * scale) / 2
        return left + x * scale, top + y * scale

    @property
    def card(self) -> Locator:
        """The box that is being drawn."""
        return self.page.locator(".box-card")

    @property
    def warning(self) -> Locator:
        return self.page.get_by_role("alertdialog", name="The model sees something else here")

    @property
    def corrections(self) -> Locator:
        return self.page.locator(".corrections li")

    @property
    def history(self) -> Locator:
        """Steps, the last one first."""
        return self.page.locator(".steps li")

    def finding(self, concept: str) -> Locator:
        return self.page.locator(f"[data-concept={concept}]")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def box_seen(self) -> Corners | None:
        """The box that the card's figures are about."""
        edges = self.page.evaluate("document.querySelector('.box-card .box-check')?.dataset.box ?? null")
        return tuple(float(edge) for edge in edges.split(",")) if edges else None

    def tells_of(self, box: Corners) -> None:
        """Wait until the card tells what the model sees in this box."""
        eventually(self.page, lambda: (seen := self.box_seen()) is not None and near(seen, box))

    # What a hand does.

    def choose(self, concept: str) -> None:
        """Draw for this finding from now on."""
        if self.finding(concept).get_attribute("aria-pressed") != "true":
            self.finding(concept).click()
        expect(self.finding(concept)).to_have_attribute("aria-pressed", "true")

    def choose_what_is_seen(self, box: Corners) -> str:
        """Draw for the finding that leads in this box, so that nobody doubts it."""
        seen = self.check(box, next(iter(self.titles())))["dominant"]
        self.choose(seen)
        return seen

    def drag(self, start: tuple[float, float], end: tuple[float, float], button: str = "left") -> None:
        """From one pixel of the film to another, and let go."""
        self.hold(start, end, button)
        self.page.mouse.up(button=button)

    def hold(self, start: tuple[float, float], end: tuple[float, float], button: str = "left") -> None:
        """The same, and the button stays down."""
        self.page.mouse.move(*self.at(*start))
        self.page.mouse.down(button=button)
        self.page.mouse.move(*self.at(*end), steps=4)

    def draw(self, box: Corners) -> None:
        self.drag(box[:2], box[2:])

    def draw_for(self, claim: Claim) -> None:
        self.choose(claim.concept)
        self.draw(claim.box)

    def apply(self, claim: Claim) -> None:
        """Draw a box that the model has nothing against, and apply it."""
        self.draw_for(claim)
        self.press_apply()
        expect(self.card).to_have_count(0)

    def press_apply(self) -> None:
        self.card.get_by_role("button", name="Apply").click()

    def pick(self, box: Corners) -> None:
        """Click into an applied box."""
        self.page.mouse.click(*self.at((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))


def corners(box: dict) -> Corners:
    return (box["x1"], box["y1"], box["x2"], box["y2"])


def near(box: dict | Corners, expected: Corners) -> bool:
    """Whether a box is where it was meant to be."""
    edges = corners(box) if isinstance(box, dict) else box
    return all(abs(edge - meant) <= NEAR for edge, meant in zip(edges, expected, strict=True))


def eventually(page: Page, ask: Callable[[], object]) -> None:
    """Wait until the answer is yes."""
    ends = time.monotonic() + TIMEOUT / 1000
    while not ask():
        assert time.monotonic() < ends, "The condition did not become true."
        page.wait_for_timeout(50)
