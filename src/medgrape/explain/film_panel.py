"""The film with an outline and a letter for each visible concept, and the boxes of a person."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool
from PIL import Image, ImageDraw

from medgrape.concepts import OKABE_ITO, colour
from medgrape.explain.film_evidence import ConceptEvidence, FilmEvidence
from medgrape.explain.layout import badge, framed, stamped, title_of
from medgrape.explain.maps import fitted, outline, resized, strong_pixels
from medgrape.explain.words import PERHAPS
from medgrape.geometry import Box, FilmSize, peak

MOST_ROWS = 4  # concepts with an outline and a row of their own; the others are listed
FILM = FilmSize(800, 860)
_BADGE = 30
Point = tuple[float, float]


@dataclass(frozen=True)
class ConceptMark:
    """A concept with its letter and colour in a picture."""

    letter: str
    ink: str
    evidence: ConceptEvidence

    @property
    def title(self) -> str:
        """The title as it can be drawn."""
        return title_of(self.evidence.concept)

    @property
    def seen(self) -> bool:
        """Whether the concept is strong enough to be outlined."""
        return self.evidence.is_informative and self.evidence.strength >= PERHAPS


def mark_concepts(explanation: FilmEvidence) -> list[ConceptMark]:
    """Return the strongest concepts; each keeps its colour from film to film, unless there are more than colours."""
    names = [*explanation.concept_names]
    names += sorted({evidence.concept.name for evidence in explanation.concepts}.difference(names))  # added later
    enough = len(names) <= len(OKABE_ITO)
    return [
        ConceptMark(chr(ord("A") + rank), colour(names.index(evidence.concept.name) if enough else rank), evidence)
        for rank, evidence in enumerate(explanation.concepts[:MOST_ROWS])
    ]


def film_panel(explanation: FilmEvidence, marks: list[ConceptMark]) -> Image.Image:
    """Return the film in a black frame of fixed width, with outlines, boxes and letters."""
    size = fitted(explanation.film, FILM)
    film = Image.fromarray(resized(explanation.pixels, size)).convert("RGB")
    visible = [mark for mark in marks if mark.seen]
    for mark in reversed(visible):  # the strongest is drawn last, on top
        outline(film, mark.evidence, mark.ink)
    inks = {mark.evidence.concept.name: mark.ink for mark in marks}
    for drawn in explanation.drawn:
        box = drawn.box.clipped(explanation.film)
        if box is not None:
            ink = inks.get(drawn.concept or "", "white")
            _draw_box(film, box.moved(explanation.film, size), ink, positive=drawn.positive)
    panel = framed(film, FILM.width, 4 * _BADGE, "black")
    left, top = (panel.width - size.width) // 2, (panel.height - size.height) // 2
    covered = np.zeros((panel.height, panel.width), np.bool_)
    for mark in visible:
        covered[top : top + size.height, left : left + size.width] |= strong_pixels(mark.evidence, size)
    pen, grid, letters = ImageDraw.Draw(panel), replace(explanation.grid, film=size), list[Point]()
    for mark in visible:
        x, y = peak(mark.evidence.mean, grid)
        dot = left + x, top + y
        letters.append(_place_letter(dot, covered, letters))
        pen.line((*dot, *letters[-1]), fill="black", width=4)
        pen.line((*dot, *letters[-1]), fill=mark.ink, width=2)
        stamped(panel, badge("", mark.ink, 10), dot)
        stamped(panel, badge(mark.letter, mark.ink, _BADGE), letters[-1])
    return panel


def _draw_box(film: Image.Image, box: Box, ink: str, *, positive: bool) -> None:
    """Draw a person's box; a negative one is crossed out."""
    pen = ImageDraw.Draw(film)
    x1, y1, x2, y2 = box.corners
    for line_ink, width in (("black", 6), (ink, 3)):
        pen.rectangle(box.corners, outline=line_ink, width=width)
        if not positive:
            pen.line((x1, y1, x2, y2), fill=line_ink, width=width)
            pen.line((x1, y2, x2, y1), fill=line_ink, width=width)


def _place_letter(dot: Point, covered: Bool[np.ndarray, "height width"], letters: list[Point]) -> Point:
    """Return a place near the dot on the panel, if possible away from other letters and from findings."""
    height, width = covered.shape
    half = _BADGE // 2 + 1
    on_panel = [(x, y) for x, y in _around(dot) if half <= x <= width - half and half <= y <= height - half]
    apart = [place for place in on_panel if all(math.dist(place, other) > 1.1 * _BADGE for other in letters)]
    clear = (
        (x, y) for x, y in apart if not covered[int(y) - half : int(y) + half, int(x) - half : int(x) + half].any()
    )
    return next(clear, (apart or on_panel or [dot])[0])


def _around(dot: Point) -> Iterator[Point]:
    """Yield places in rings, up and to the right first."""
    for ring in range(2, 21):
        for eighth in (7, 5, 1, 3, 6, 0, 4, 2):
            angle, distance = eighth * math.pi / 4, ring * 0.7 * _BADGE
            yield dot[0] + distance * math.cos(angle), dot[1] + distance * math.sin(angle)
