"""A reading as PDF: what came of it, the evidence, and what was corrected."""

from reportlab.lib.units import mm
from reportlab.platypus import Flowable, PageBreak, Spacer, Table

from medgrape.explain.explanation import Explanation
from medgrape.explain.render import draw
from medgrape.explain.render_film import film_panel, marked
from medgrape.explain.render_says import titles
from medgrape.server.paper.front import classes, facts, findings, notes
from medgrape.server.paper.letters import words
from medgrape.server.paper.sheet import HEIGHT, PRESS, WIDTH, plate, printed
from medgrape.server.paper.steps import steps
from medgrape.server.schemas.exports import ReadingExported

_FILM, _BESIDE = (106 * mm, 114 * mm), 6 * mm
_NO_MARGINS = [(side, (0, 0), (-1, -1), 0) for side in ("LEFTPADDING", "RIGHTPADDING", "TOPPADDING", "BOTTOMPADDING")]


def paper(reading: ReadingExported, explained: Explanation, warnings: tuple[str, ...]) -> bytes:
    """The reading on A4; ``warnings`` are those that the film and the model give, whatever was corrected."""
    shown = marked(explained)
    film = plate(film_panel(explained, shown), *_FILM)
    evidence = plate(draw(explained), WIDTH, HEIGHT - 12 * mm)
    with PRESS:
        parts = [
            words("Reading of a chest X-ray", 16, bold=True), Spacer(1, 3 * mm), facts(reading), Spacer(1, 2 * mm),
            *notes([*warnings, *_standing(reading)]), Spacer(1, 3 * mm), _answer(film, reading, explained),
            Spacer(1, 3 * mm), *findings(explained, shown),
            *_new_sheet("The evidence"), evidence, *_corrections(reading, explained),
        ]  # fmt: skip
        about = f"film {reading.film.id}"
        return printed(parts, title=f"Reading of {about}", about=about, author=reading.study.reader)


def _standing(reading: ReadingExported) -> list[str]:
    study = reading.study
    told = []
    if study.at < study.revision:
        told.append(f"This is how the reading stood after {study.at} of {study.revision} steps, not how it stands.")
    if study.corrections:
        told.append("A person corrected this reading; every step is told at the end.")
    return told


def _answer(film: Flowable, reading: ReadingExported, explained: Explanation) -> Flowable:
    """The film, large, and beside it the classes."""
    left = _FILM[0] + _BESIDE
    beside = classes(reading, explained, WIDTH - left)
    return Table([[film, beside]], [left, WIDTH - left], style=[*_NO_MARGINS, ("VALIGN", (0, 0), (-1, -1), "TOP")])


def _corrections(reading: ReadingExported, explained: Explanation) -> list[Flowable]:
    if not reading.history:
        return []
    return [*_new_sheet("What was corrected"), steps(reading, titles(explained))]


def _new_sheet(heading: str) -> list[Flowable]:
    return [PageBreak(), words(heading, 12, bold=True), Spacer(1, 3 * mm)]
