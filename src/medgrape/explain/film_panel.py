"""The film itself, large, with an outline and a letter for each concept that is seen."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool
from PIL import Image, ImageDraw

from medgrape.concepts import OKABE_ITO, colour
from medgrape.explain.explanation import ConceptEvidence, Explanation
from medgrape.explain.layout import badge, framed, stamped, title_of
from medgrape.explain.maps import fitted, inside, outline, resized
from medgrape.explain.words import PERHAPS
from medgrape.geometry import Box, FilmSize, peak

MOST_ROWS = 4
"""Concepts that get an outline and a row of their own; the others are listed."""
FILM = FilmSize(800, 860)
_BADGE = 30
Spot = tuple[float, float]


@dataclass(frozen=True)
class Marked:
    """A concept with the letter and the colour it has throughout a picture."""

    letter: str
    ink: str
    evidence: ConceptEvidence

    @property
    def title(self) -> str:
        """As people read it."""
        return title_of(self.evidence.concept)

    @property
    def seen(self) -> bool:
        """Whether there is a place to point at."""
        return self.evidence.is_informative and self.evidence.strength >= PERHAPS


def marked(explanation: Explanation) -> list[Marked]:
    """The concepts that are shown, strongest first; a concept keeps its colour from film to film if colours suffice."""
    names = sorted({evidence.concept.name for evidence in explanation.concepts} - {*explanation.concept_names})
    names = [*explanation.concept_names, *names]  # those that were added to the model come last
    enough = len(names) <= len(OKABE_ITO)
    return [
        Marked(chr(ord("A") + rank), colour(names.index(evidence.concept.name) if enough else rank), evidence)
        for rank, evidence in enumerate(explanation.concepts[:MOST_ROWS])
    ]


def film_panel(explanation: Explanation, shown: list[Marked]) -> Image.Image:
    """The film in a black frame of fixed width."""
    size = fitted(explanation.film, FILM)
    film = Image.fromarray(resized(explanation.pixels, size)).convert("RGB")
    pointed = [concept for concept in shown if concept.seen]
    for concept in reversed(pointed):  # the strongest lies on top
        outline(film, concept.evidence, concept.ink)
    inks = {concept.evidence.concept.name: concept.ink for concept in shown}
    for drawn in explanation.drawn:
        on_film = drawn.box.clipped(explanation.film)
        if on_film is not None:
            ink = inks.get(drawn.concept or "", "white")
            _frame(film, on_film.moved(explanation.film, size), ink, positive=drawn.positive)
    panel = framed(film, FILM.width, 4 * _BADGE, "black")
    left, top = (panel.width - size.width) // 2, (panel.height - size.height) // 2
    findings = np.zeros((panel.height, panel.width), np.bool_)
    for concept in pointed:
        findings[top : top + size.height, left : left + size.width] |= inside(concept.evidence, size)
    shown_grid, taken = replace(explanation.grid, film=size), list[Spot]()
    for concept in pointed:
        x, y = peak(concept.evidence.mean, shown_grid)
        taken.append(_point_at(panel, concept, (left + x, top + y), _free_place((left + x, top + y), findings, taken)))
    return panel


def _frame(film: Image.Image, box: Box, ink: str, *, positive: bool) -> None:
    """A person's box; one that says what is not there is crossed out."""
    pen = ImageDraw.Draw(film)
    x1, y1, x2, y2 = box.corners
    crosses = [] if positive else [(x1, y1, x2, y2), (x1, y2, x2, y1)]
    for colour_of_line, width in (("black", 6), (ink, 3)):
        pen.rectangle(box.corners, outline=colour_of_line, width=width)
        for line in crosses:
            pen.line(line, fill=colour_of_line, width=width)


def _point_at(panel: Image.Image, concept: Marked, spot: Spot, place: Spot) -> Spot:
    """A dot at the peak and a line from there to the letter."""
    pen = ImageDraw.Draw(panel)
    pen.line((*spot, *place), fill="black", width=4)
    pen.line((*spot, *place), fill=concept.ink, width=2)
    stamped(panel, badge("", concept.ink, 10), spot)
    stamped(panel, badge(concept.letter, concept.ink, _BADGE), place)
    return place


def _free_place(spot: Spot, findings: Bool[np.ndarray, "height width"], taken: list[Spot]) -> Spot:
    """Near the peak, on no other letter, and if that can be had on no finding."""
    height, width = findings.shape
    half = _BADGE // 2 + 1
    on_panel = [(x, y) for x, y in _around(spot) if half <= x <= width - half and half <= y <= height - half]
    apart = [place for place in on_panel if all(math.dist(place, other) > 1.1 * _BADGE for other in taken)]
    clear = (
        (x, y) for x, y in apart if not findings[int(y) - half : int(y) + half, int(x) - half : int(x) + half].any()
    )
    return next(clear, (apart or on_panel or [spot])[0])


def _around(spot: Spot) -> Iterator[Spot]:
    """Places in rings, up and to the right first."""
    for ring in range(2, 21):
        for eighth in (7, 5, 1, 3, 6, 0, 4, 2):
            turn, away = eighth * math.pi / 4, ring * 0.7 * _BADGE
            yield spot[0] + away * math.cos(turn), spot[1] + away * math.sin(turn)
