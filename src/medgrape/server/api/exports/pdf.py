"""A reading as PDF: what came of it, the evidence, and what was corrected."""

from collections.abc import Mapping

from reportlab.lib.units import mm
from reportlab.platypus import Flowable, LongTable, PageBreak, Spacer, Table

from medgrape.explain.explanation import Explanation
from medgrape.explain.film_panel import film_panel, marked
from medgrape.explain.panels import per_cent, titles
from medgrape.explain.render import draw
from medgrape.server.api.exports.pdf_first_page import LINED, classes, facts, findings, moment, notes, points
from medgrape.server.api.exports.pdf_layout import HEIGHT, PRESS, WIDTH, marked_up, plate, printed, said, words
from medgrape.server.api.exports.reading import ReadingExported
from medgrape.server.api.studies import CheckTold, CorrectionTold, StepTold

MOST_CLASSES = 3
"""Classes told of a step: those that it moved furthest."""
_LONGEST_TITLE = 60
_WIDTHS = [9 * mm, 37 * mm, WIDTH - 104 * mm, 58 * mm]
_KINDS = {"corrected": "", "withdrawn": "Removed: ", "redrawn": "Changed to: "}
_AGAIN = {"undone": "Undone: ", "redone": "Redone: "}


def steps(reading: ReadingExported, called: Mapping[str, str]) -> LongTable:
    """Every step, on as many sheets as it takes; ``called`` are findings and classes as people read them."""
    heads = ["Step", "When and who", "What was said, and what the model said to it", "Classes that moved most (points)"]
    rows = [[words(head, 7.5, faint=True) for head in heads], *(_step(step, called) for step in reading.history)]
    return LongTable(rows, _WIDTHS, style=LINED, repeatRows=1)


def _step(step: StepTold, called: Mapping[str, str]) -> list[object]:
    return [
        words(str(step.step), bold=True),
        [words(moment(step.at)), words(step.by, faint=True)],
        _told(step, called),
        _moved(step, called),
    ]


def _told(step: StepTold, called: Mapping[str, str]) -> list[Flowable]:
    """What was done; the check and the reason where it was said, not again where it was taken back or forth."""
    did = f"{_AGAIN.get(step.kind, '')}{_KINDS[step.about]}"
    told: list[Flowable] = [marked_up(f"{did}<b>{said(in_words(step.correction, called))}</b>")]
    if step.replaced is not None:
        told.append(words(f"It was: {in_words(step.replaced, called)}", faint=True))
    if step.kind in ("corrected", "redrawn") and step.correction.check is not None:
        told.append(_checked(step.correction.check, step.correction))
    return told if not step.reason else [*told, marked_up(f"Reason given: “{said(step.reason)}”")]


def _checked(check: CheckTold, correction: CorrectionTold) -> Flowable:
    verdict = "mismatch" if check.mismatch else "no mismatch"
    rule = "" if check.calibrated else " The thresholds are not calibrated."
    confirmed = " <b>Confirmed all the same.</b>" if check.mismatch and correction.confirmed else ""
    return marked_up(f"Check: <b>{verdict}.</b> {said(check.reason)}{rule}{confirmed}", faint=True)


def in_words(correction: CorrectionTold, called: Mapping[str, str]) -> str:
    """A correction as one would say it."""
    finding = (
        "every finding" if correction.concept is None else _short(called.get(correction.concept, correction.concept))
    )
    if correction.box is None:
        return f"Rejected: {finding}"
    box = correction.box
    where = f"x {box.x1:.0f} to {box.x2:.0f}, y {box.y1:.0f} to {box.y2:.0f}"
    return f"A box {'for' if correction.kind == 'box' else 'against'} {finding} at {where}"


def _short(title: str) -> str:
    return title if len(title) <= _LONGEST_TITLE else f"{title[:_LONGEST_TITLE]}…"


def _moved(step: StepTold, called: Mapping[str, str]) -> list[Flowable]:
    by = {name: after - step.before[name] for name, after in step.after.items()}
    furthest = [name for name in sorted(by, key=lambda name: -abs(by[name])) if points(by[name]) != "0.0"]
    told = [
        f"{called.get(name, name)}: {per_cent(step.before[name])} → {per_cent(step.after[name])} ({points(by[name])})"
        for name in furthest[:MOST_CLASSES]
    ]
    return [words(one) for one in told or ["none"]]


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
