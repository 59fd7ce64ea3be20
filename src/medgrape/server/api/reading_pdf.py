"""A reading as PDF: what was read by whom, the classes and findings, the evidence, and every correction."""

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from reportlab.lib.colors import HexColor
from reportlab.lib.units import mm
from reportlab.platypus import Flowable, LongTable, PageBreak, Spacer, Table

from medgrape.explain.explanation import ConceptEvidence, Explanation
from medgrape.explain.film_panel import ConceptMark, film_panel, mark_concepts
from medgrape.explain.layout import is_bright, title_of
from medgrape.explain.panels import per_cent, titles
from medgrape.explain.render import draw
from medgrape.geometry import peak
from medgrape.server.api.pdf_layout import (
    AMBER,
    HEIGHT,
    PRINT_LOCK,
    RULE,
    WIDTH,
    build_pdf,
    escaped,
    image,
    markup,
    paragraph,
)
from medgrape.server.api.studies import CheckResponse, CorrectionResponse, ReadingResponse, StepResponse

CLASSES_BESIDE_FILM = 15
"""Classes that are listed beside the film; it is no higher."""
CLASSES_PER_STEP = 3
"""Classes listed with a step: those that it moved furthest."""
_LONGEST_TITLE = 60
_TIGHT = [
    ("LEFTPADDING", (0, 0), (-1, -1), 0),
    ("RIGHTPADDING", (0, 0), (-1, -1), 4),
    ("TOPPADDING", (0, 0), (-1, -1), 1),
    ("BOTTOMPADDING", (0, 0), (-1, -1), 1.5),
    ("VALIGN", (0, 0), (-1, -1), "TOP"),
]
_LINED = [*_TIGHT, ("LINEBELOW", (0, 0), (-1, -1), 0.4, RULE)]
_NO_MARGINS = [(side, (0, 0), (-1, -1), 0) for side in ("LEFTPADDING", "RIGHTPADDING", "TOPPADDING", "BOTTOMPADDING")]
_FILM_WIDTH, _FILM_HEIGHT = 106 * mm, 114 * mm
_KEY = (
    "Strength: 0 as typically on films without the finding, 1 as on films with it. Letters and outlines on the film: "
    "the findings that stand out most. Moves: how many percentage points of that class are owed to the finding; "
    "without it, the class would stand so much lower (or, with a minus, higher)."
)


def reading_pdf(reading: ReadingResponse, explained: Explanation, warnings: tuple[str, ...]) -> bytes:
    """Print a reading on A4; ``warnings`` are those of film and model, without corrections."""
    shown = mark_concepts(explained)
    film = image(film_panel(explained, shown), _FILM_WIDTH, _FILM_HEIGHT)
    evidence = image(draw(explained), WIDTH, HEIGHT - 12 * mm)
    left = _FILM_WIDTH + 6 * mm
    with PRINT_LOCK:
        beside = _classes(reading, explained, WIDTH - left)
        columns = [*_NO_MARGINS, ("VALIGN", (0, 0), (-1, -1), "TOP")]
        parts = [
            paragraph("Reading of a chest X-ray", 16, bold=True), Spacer(1, 3 * mm), _facts(reading), Spacer(1, 2 * mm),
            *_notes([*warnings, *_warnings(reading)]), Spacer(1, 3 * mm),
            Table([[film, beside]], [left, WIDTH - left], style=columns), Spacer(1, 3 * mm),
            *_findings(explained, shown), *_new_page("The evidence"), evidence,
        ]  # fmt: skip
        if reading.history:
            parts += [*_new_page("What was corrected"), _steps(reading, titles(explained))]
        about = f"film {reading.film.id}"
        return build_pdf(parts, title=f"Reading of {about}", about=about, author=reading.study.reader)


def _warnings(reading: ReadingResponse) -> list[str]:
    study = reading.study
    warnings = []
    if study.at < study.revision:
        warnings.append(f"This is how the reading stood after {study.at} of {study.revision} steps, not how it stands.")
    if study.corrections:
        warnings.append("A person corrected this reading; every step is told at the end.")
    return warnings


def _new_page(heading: str) -> list[Flowable]:
    return [PageBreak(), paragraph(heading, 12, bold=True), Spacer(1, 3 * mm)]


def _facts(reading: ReadingResponse) -> Flowable:
    """Film and patient on the left; person, model and times on the right."""
    columns = [18 * mm, WIDTH / 2 - 18 * mm] * 2
    rows = [
        [paragraph(left[0], faint=True), paragraph(left[1]), paragraph(right[0], faint=True), paragraph(right[1])]
        for left, right in zip_longest(_film(reading), _study(reading), fillvalue=("", ""))
    ]
    return Table(rows, columns, style=_TIGHT)


def _film(reading: ReadingResponse) -> list[tuple[str, str]]:
    film, facts = reading.film, reading.film.facts
    size = f"{facts.size.width} x {facts.size.height} pixels, {facts.bits} bit"
    spacing = "" if facts.spacing is None else f", {facts.spacing[0]:.3g} x {facts.spacing[1]:.3g} mm apart"
    view = ", ".join(part for part in (facts.modality, facts.view, facts.laterality) if part)
    sex = {"M": "male", "F": "female", "O": "other"}.get(film.sex, "sex not known")
    age = "age not known" if film.age is None else f"{film.age} years" + (" or older" if film.age >= 90 else "")
    return [
        ("Film", film.id),
        ("Patient", f"{sex}, {age}"),
        ("View", view or "not known"),
        ("Stored as", f"{facts.format}, {size}{spacing}"),
        ("Arrived", _time(film.arrived_at)),
    ]


def _study(reading: ReadingResponse) -> list[tuple[str, str]]:
    study, model, count = reading.study, reading.model, len(reading.study.corrections)
    changed = _time(reading.history[-1].at if reading.history else study.opened_at)
    steps = f"step {study.at} of {study.revision}" if study.at < study.revision else f"step {study.at}, the last"
    return [
        ("Read by", f"{study.reader}, opened {_time(study.opened_at)}"),
        ("As it stood", f"{changed}, after {steps}" if study.revision else "nobody corrected it"),
        ("In force", f"{count or 'no'} correction{'' if count == 1 else 's'}"),
        ("Model", f"{model.name}, version {model.version}"),
        ("Fingerprint", model.fingerprint),
        ("Printed", f"{_time(reading.made_at)}, {reading.software}"),
    ]


def _time(when: str) -> str:
    return f"{when[:10]} {when[11:16]} UTC"


def _notes(texts: Sequence[str]) -> list[Flowable]:
    if not texts:
        return []
    style = [("BACKGROUND", (0, 0), (-1, -1), AMBER), ("TOPPADDING", (0, 0), (-1, -1), 2)]
    return [Table([[paragraph(text)] for text in texts], [WIDTH], style=style)]


def _classes(reading: ReadingResponse, explained: Explanation, width: float) -> Flowable:
    """The classes as the model saw them, and after corrections if there are any."""
    first, now, title = reading.study.first_prediction, reading.study.prediction, titles(explained)
    predictions = {"Model alone": first, "Corrected": now} if reading.study.corrections else {"Model alone": now}
    heads = ["Class", *predictions]
    rows = [[paragraph(head, 7.5, faint=True, right=bool(place)) for place, head in enumerate(heads)]]
    for rank, name in enumerate(list(now)[:CLASSES_BESIDE_FILM]):
        shares = [
            paragraph(per_cent(prediction[name]), bold=place == len(predictions), right=True)
            for place, prediction in enumerate(predictions.values(), 1)
        ]
        rows.append([paragraph(title[name], bold=rank == 0), *shares])
    column = 19 * mm
    table = Table(rows, [width - column * len(predictions), *[column] * len(predictions)], style=_LINED)
    rest = len(now) - CLASSES_BESIDE_FILM
    if rest <= 0:
        return table
    return Table([[table], [paragraph(f"Less likely, and told in reading.json: {rest} more.", faint=True)]])


def _findings(explained: Explanation, shown: Sequence[ConceptMark]) -> list[Flowable]:
    """Every finding in words and figures, on as many pages as it takes."""
    likeliest = next(iter(explained.probabilities))
    heads = ["", "Finding", "In words", "Strength", f"Moves {titles(explained)[likeliest]}", "Strongest at x, y"]
    rows: list[list[object]] = [[paragraph(head, 7.5, faint=True, right=place > 2) for place, head in enumerate(heads)]]
    for evidence in explained.concepts:
        mark = next((mark for mark in shown if mark.evidence is evidence and mark.seen), None)
        rows.append(_finding(evidence, explained, likeliest, mark))
    inks = [("BACKGROUND", (0, row), (0, row), HexColor(mark.ink)) for row, mark in enumerate(shown, 1) if mark.seen]
    widths = [6 * mm, 56 * mm, 32 * mm, 18 * mm, 36 * mm, WIDTH - 148 * mm]
    style = [*_LINED, ("LEFTPADDING", (1, 0), (1, -1), 5), ("LEFTPADDING", (0, 0), (0, -1), 4), *inks]
    return [LongTable(rows, widths, style=style, repeatRows=1), Spacer(1, 1 * mm), paragraph(_KEY, 7, faint=True)]


def _finding(
    evidence: ConceptEvidence, explained: Explanation, likeliest: str, mark: ConceptMark | None
) -> list[object]:
    x, y = peak(evidence.mean, explained.grid)
    known = evidence.is_informative
    letter = paragraph("")
    if mark is not None:
        ink = "black" if is_bright(mark.ink) else "white"
        letter = markup(f'<font color="{ink}"><b>{escaped(mark.letter)}</b></font>')
    return [
        letter,
        paragraph(title_of(evidence.concept), bold=mark is not None),
        paragraph(evidence.words),
        paragraph(f"{evidence.strength:.2f}".replace("-", "−") if known else "–", right=True),
        paragraph("not heard" if evidence.moves is None else _points(evidence.moves[likeliest]), right=True),
        paragraph(f"{x:.0f}, {y:.0f}" if known and not evidence.rejected else "–", right=True),
    ]


def _points(share: float) -> str:
    """Format a difference of probabilities in percentage points, without a sign if it is zero."""
    if not math.isfinite(share):
        return "not known"
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def _steps(reading: ReadingResponse, title: Mapping[str, str]) -> LongTable:
    """Every step, on as many pages as it takes; ``title`` maps names of findings and classes to titles."""
    heads = ["Step", "When and who", "What was said, and what the model said to it", "Classes that moved most (points)"]
    rows: list[list[object]] = [[paragraph(head, 7.5, faint=True) for head in heads]]
    for step in reading.history:
        by = [paragraph(_time(step.at)), paragraph(step.by, faint=True)]
        rows.append([paragraph(str(step.step), bold=True), by, _change(step, title), _moved(step, title)])
    return LongTable(rows, [9 * mm, 37 * mm, WIDTH - 104 * mm, 58 * mm], style=_LINED, repeatRows=1)


def _change(step: StepResponse, title: Mapping[str, str]) -> list[Flowable]:
    """What was done; the check only where it was made, not again where it was undone or redone."""
    undone = {"undone": "Undone: ", "redone": "Redone: "}.get(step.kind, "")
    about = {"corrected": "", "withdrawn": "Removed: ", "redrawn": "Changed to: "}[step.about]
    lines = [markup(f"{undone}{about}<b>{escaped(_correction(step.correction, title))}</b>")]
    if step.replaced is not None:
        lines.append(paragraph(f"It was: {_correction(step.replaced, title)}", faint=True))
    if step.kind in ("corrected", "redrawn") and step.correction.check is not None:
        lines.append(_check(step.correction.check, confirmed=step.correction.confirmed))
    if step.reason:
        lines.append(markup(f"Reason given: “{escaped(step.reason)}”"))
    return lines


def _check(check: CheckResponse, *, confirmed: bool) -> Flowable:
    verdict = "mismatch" if check.mismatch else "no mismatch"
    rule = "" if check.calibrated else " The thresholds are not calibrated."
    anyway = " <b>Confirmed all the same.</b>" if check.mismatch and confirmed else ""
    return markup(f"Check: <b>{verdict}.</b> {escaped(check.reason)}{rule}{anyway}", faint=True)


def _correction(correction: CorrectionResponse, title: Mapping[str, str]) -> str:
    finding = "every finding" if correction.concept is None else title.get(correction.concept, correction.concept)
    if len(finding) > _LONGEST_TITLE:
        finding = f"{finding[:_LONGEST_TITLE]}…"
    if correction.box is None:
        return f"Rejected: {finding}"
    box = correction.box
    where = f"x {box.x1:.0f} to {box.x2:.0f}, y {box.y1:.0f} to {box.y2:.0f}"
    return f"A box {'for' if correction.kind == 'box' else 'against'} {finding} at {where}"


def _moved(step: StepResponse, title: Mapping[str, str]) -> list[Flowable]:
    by = {name: after - step.before[name] for name, after in step.after.items()}
    furthest = [name for name in sorted(by, key=lambda name: -abs(by[name])) if _points(by[name]) != "0.0"]
    lines = [
        f"{title.get(name, name)}: {per_cent(step.before[name])} → {per_cent(step.after[name])} ({_points(by[name])})"
        for name in furthest[:CLASSES_PER_STEP]
    ]
    return [paragraph(line) for line in lines or ["none"]]
