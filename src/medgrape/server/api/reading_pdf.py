"""A reading as PDF: film, reader, classes, findings, evidence and corrections on A4 pages with footers."""

import io
import math
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import zip_longest
from typing import Any
from xml.sax.saxutils import escape

from PIL.Image import Image
from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    LongTable,
    PageBreak,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
)
from reportlab.platypus import Image as ImageFlowable

from medgrape import __version__
from medgrape.explain.explanation import Explanation
from medgrape.explain.film_evidence import ConceptEvidence
from medgrape.explain.film_panel import ConceptMark, film_panel, mark_concepts
from medgrape.explain.layout import is_bright, legible, title_of, typeface
from medgrape.explain.panels import per_cent, titles
from medgrape.explain.render import draw
from medgrape.explain.words import NOTICE
from medgrape.geometry import peak
from medgrape.server.api.reading import ReadingResponse
from medgrape.server.api.studies import CorrectionResponse, StepResponse

PLAIN, BOLD = "medgrape", "medgrape-bold"
INK, FAINT, RULE, AMBER = HexColor("#1A1A1F"), HexColor("#5C5C68"), HexColor("#C9C9D2"), HexColor("#FFF1CC")
UNPRINTABLE = "Letters that cannot be printed appear as ?; see reading.json."
MARGIN, FOOT = 16 * mm, 20 * mm
WIDTH, HEIGHT = A4[0] - 2 * MARGIN, A4[1] - MARGIN - FOOT
PRINT_LOCK = threading.Lock()  # for making and printing paragraphs: all threads share the fonts, which have a state
CLASSES_BESIDE_FILM = 15  # more do not fit beside the film
CLASSES_PER_STEP = 3  # the classes that a step changed most
_LONGEST_TITLE = 60


def _padding(left: float, right: float, top: float, bottom: float) -> list[tuple[Any, ...]]:
    values = {"LEFT": left, "RIGHT": right, "TOP": top, "BOTTOM": bottom}
    sides = [(f"{side}PADDING", (0, 0), (-1, -1), value) for side, value in values.items()]
    return [*sides, ("VALIGN", (0, 0), (-1, -1), "TOP")]


_TIGHT = _padding(0, 4, 1, 1.5)
_LINED = [*_TIGHT, ("LINEBELOW", (0, 0), (-1, -1), 0.4, RULE)]
_FILM_WIDTH, _FILM_HEIGHT = 106 * mm, 114 * mm
_KEY = (
    "Strength: 0 as typically on films without the finding, 1 as on films with it. Letters and outlines on the film: "
    "the findings that stand out most. Moves: percentage points by which that class would be lower (with a minus: "
    "higher) without the finding."
)


def reading_pdf(reading: ReadingResponse, explained: Explanation, warnings: tuple[str, ...]) -> bytes:
    """Return a reading as PDF; ``warnings`` are those of film and model, without corrections."""
    shown, study = mark_concepts(explained), reading.study
    notes = list(warnings)
    if study.at < study.revision:
        notes.append(f"This is the reading after {study.at} of {study.revision} steps, not its present state.")
    if study.corrections:
        notes.append("A person corrected this reading; every step is listed at the end.")
    amber = [("BACKGROUND", (0, 0), (-1, -1), AMBER), ("TOPPADDING", (0, 0), (-1, -1), 2)]
    film = _image(film_panel(explained, shown), _FILM_WIDTH, _FILM_HEIGHT)
    evidence = _image(draw(explained), WIDTH, HEIGHT - 12 * mm)
    left = _FILM_WIDTH + 6 * mm
    with PRINT_LOCK:
        beside = _classes(reading, explained, WIDTH - left)
        warned = [Table([[_paragraph(note)] for note in notes], [WIDTH], style=amber)] if notes else []
        parts = [
            _paragraph("Reading of a chest X-ray", 16, bold=True), Spacer(1, 3 * mm), _facts(reading),
            Spacer(1, 2 * mm), *warned, Spacer(1, 3 * mm),
            Table([[film, beside]], [left, WIDTH - left], style=_padding(0, 0, 0, 0)), Spacer(1, 3 * mm),
            *_findings(explained, shown), *_new_page("The evidence"), evidence,
        ]  # fmt: skip
        if reading.history:
            parts += [*_new_page("Corrections"), _steps(reading, titles(explained))]
        about = f"film {reading.film.id}"
        return _build_pdf(parts, title=f"Reading of {about}", about=about, author=study.reader)


def _new_page(heading: str) -> list[Flowable]:
    return [PageBreak(), _paragraph(heading, 12, bold=True), Spacer(1, 3 * mm)]


def _facts(reading: ReadingResponse) -> Flowable:
    """List film and patient on the left; reader, model and times on the right."""
    columns = [18 * mm, WIDTH / 2 - 18 * mm] * 2
    rows = [
        [_paragraph(left[0], faint=True), _paragraph(left[1]), _paragraph(right[0], faint=True), _paragraph(right[1])]
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
        ("As it stood", f"{changed}, after {steps}" if study.revision else "not corrected"),
        ("In force", f"{count or 'no'} correction{'' if count == 1 else 's'}"),
        ("Model", f"{model.name}, version {model.version}"),
        ("Fingerprint", model.fingerprint),
        ("Printed", f"{_time(reading.made_at)}, {reading.software}"),
    ]


def _time(when: str) -> str:
    return f"{when[:10]} {when[11:16]} UTC"


def _classes(reading: ReadingResponse, explained: Explanation, width: float) -> Flowable:
    """List the probabilities of the model alone, and after corrections if there are any."""
    first, now, title = reading.study.first_prediction, reading.study.prediction, titles(explained)
    predictions = {"Model alone": first, "Corrected": now} if reading.study.corrections else {"Model alone": now}
    heads = ["Class", *predictions]
    rows = [[_paragraph(head, 7.5, faint=True, right=bool(place)) for place, head in enumerate(heads)]]
    for rank, name in enumerate(list(now)[:CLASSES_BESIDE_FILM]):
        shares = [
            _paragraph(per_cent(prediction[name]), bold=place == len(predictions), right=True)
            for place, prediction in enumerate(predictions.values(), 1)
        ]
        rows.append([_paragraph(title[name], bold=rank == 0), *shares])
    column = 19 * mm
    table = Table(rows, [width - column * len(predictions), *[column] * len(predictions)], style=_LINED)
    rest = len(now) - CLASSES_BESIDE_FILM
    if rest <= 0:
        return table
    return Table([[table], [_paragraph(f"{rest} less likely classes are in reading.json.", faint=True)]])


def _findings(explained: Explanation, shown: Sequence[ConceptMark]) -> list[Flowable]:
    """List every finding in words and figures."""
    likeliest = next(iter(explained.probabilities))
    heads = ["", "Finding", "In words", "Strength", f"Moves {titles(explained)[likeliest]}", "Strongest at x, y"]
    rows: list[list[object]] = [
        [_paragraph(head, 7.5, faint=True, right=place > 2) for place, head in enumerate(heads)]
    ]
    marks = {id(mark.evidence): mark for mark in shown if mark.seen}
    rows += [_finding(evidence, explained, likeliest, marks.get(id(evidence))) for evidence in explained.concepts]
    inks = [("BACKGROUND", (0, row), (0, row), HexColor(mark.ink)) for row, mark in enumerate(shown, 1) if mark.seen]
    widths = [6 * mm, 56 * mm, 32 * mm, 18 * mm, 36 * mm, WIDTH - 148 * mm]
    style = [*_LINED, ("LEFTPADDING", (1, 0), (1, -1), 5), ("LEFTPADDING", (0, 0), (0, -1), 4), *inks]
    return [LongTable(rows, widths, style=style, repeatRows=1), Spacer(1, 1 * mm), _paragraph(_KEY, 7, faint=True)]


def _finding(
    evidence: ConceptEvidence, explained: Explanation, likeliest: str, mark: ConceptMark | None
) -> list[object]:
    x, y = peak(evidence.mean, explained.grid)
    known = evidence.is_informative
    letter = _paragraph("")
    if mark is not None:
        ink = "black" if is_bright(mark.ink) else "white"
        letter = _markup(f'<font color="{ink}"><b>{escaped(mark.letter)}</b></font>')
    return [
        letter,
        _paragraph(title_of(evidence.concept), bold=mark is not None),
        _paragraph(evidence.words),
        _paragraph(f"{evidence.strength:.2f}".replace("-", "−") if known else "–", right=True),
        _paragraph("not heard" if evidence.moves is None else _points(evidence.moves[likeliest]), right=True),
        _paragraph(f"{x:.0f}, {y:.0f}" if known and not evidence.rejected else "–", right=True),
    ]


def _points(share: float) -> str:
    """Format a difference of probabilities in percentage points, without a sign if it is zero."""
    if not math.isfinite(share):
        return "not known"
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def _steps(reading: ReadingResponse, title: Mapping[str, str]) -> LongTable:
    """List every step; ``title`` maps names of findings and classes to titles."""
    heads = ["Step", "When and who", "Correction and check", "Largest changes (points)"]
    rows: list[list[object]] = [[_paragraph(head, 7.5, faint=True) for head in heads]]
    for step in reading.history:
        by = [_paragraph(_time(step.at)), _paragraph(step.by, faint=True)]
        rows.append([_paragraph(str(step.step), bold=True), by, _change(step, title), _moved(step, title)])
    return LongTable(rows, [9 * mm, 37 * mm, WIDTH - 104 * mm, 58 * mm], style=_LINED, repeatRows=1)


def _change(step: StepResponse, title: Mapping[str, str]) -> list[Flowable]:
    """Describe a step, with the check if it was made in this step."""
    undone = {"undone": "Undone: ", "redone": "Redone: "}.get(step.kind, "")
    about = {"corrected": "", "withdrawn": "Removed: ", "redrawn": "Changed to: "}[step.about]
    lines = [_markup(f"{undone}{about}<b>{escaped(_correction(step.correction, title))}</b>")]
    if step.replaced is not None:
        lines.append(_paragraph(f"It was: {_correction(step.replaced, title)}", faint=True))
    check = step.correction.check
    if step.kind in ("corrected", "redrawn") and check is not None:
        verdict = "mismatch" if check.mismatch else "no mismatch"
        rule = "" if check.calibrated else " The thresholds are not calibrated."
        anyway = " <b>Confirmed all the same.</b>" if check.mismatch and step.correction.confirmed else ""
        lines.append(_markup(f"Check: <b>{verdict}.</b> {escaped(check.reason)}{rule}{anyway}", faint=True))
    if step.reason:
        lines.append(_markup(f"Reason given: “{escaped(step.reason)}”"))
    return lines


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
    return [_paragraph(line) for line in lines or ["none"]]


@cache
def _register() -> None:
    pdfmetrics.registerFont(TTFont(PLAIN, str(typeface(bold=False))))
    pdfmetrics.registerFont(TTFont(BOLD, str(typeface(bold=True))))
    pdfmetrics.registerFontFamily(PLAIN, normal=PLAIN, bold=BOLD, italic=PLAIN, boldItalic=BOLD)


@cache
def _style(size: float, *, bold: bool = False, faint: bool = False, right: bool = False) -> ParagraphStyle:
    _register()
    return ParagraphStyle(
        f"{size}{bold}{faint}{right}", fontName=BOLD if bold else PLAIN, fontSize=size, leading=1.32 * size,
        textColor=FAINT if faint else INK, alignment=2 if right else 0, splitLongWords=True,
    )  # fmt: skip


def escaped(text: str) -> str:
    """Escape markup in typed text, and replace letters that cannot be printed by ?.

    Right-to-left letters are replaced too, because they would be printed in the wrong order.
    """
    left_to_right = "".join("?" if unicodedata.bidirectional(letter) in ("R", "AL") else letter for letter in text)
    printed = legible(left_to_right)
    return escape(printed) + (f" [{UNPRINTABLE}]" if printed.count("?") > text.count("?") else "")


def _paragraph(text: str, size: float = 8, **style: bool) -> Paragraph:
    return _markup(escaped(text), size, **style)


def _markup(text: str, size: float = 8, **style: bool) -> Paragraph:
    """Return a paragraph of markup, in which typed text went through ``escaped``."""
    return Paragraph(text, _style(size, **style))


class _NumberedCanvas(Canvas):  # type: ignore[misc]
    """Canvas that draws the footers at the end, when the number of pages is known."""

    def __init__(self, *arguments: Any, about: str, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        self.about, self._pages = about, list[dict[str, Any]]()

    def showPage(self) -> None:  # noqa: N802 (reportlab's name)
        self._pages.append(dict(self.__dict__))
        self._startPage()

    def save(self) -> None:
        for number, page in enumerate(self._pages, 1):
            self.__dict__.update(page)
            self.setStrokeColor(RULE)
            self.line(MARGIN, FOOT - 4 * mm, A4[0] - MARGIN, FOOT - 4 * mm)
            self.setFillColor(INK)
            self.setFont(BOLD, 8)
            self.drawString(MARGIN, FOOT - 8 * mm, NOTICE)
            self.setFillColor(FAINT)
            self.setFont(PLAIN, 7)
            self.drawCentredString(A4[0] / 2 + 10 * mm, FOOT - 8 * mm, self.about)
            self.drawRightString(A4[0] - MARGIN, FOOT - 8 * mm, f"page {number} of {len(self._pages)}")
            super().showPage()
        super().save()


def _build_pdf(parts: Sequence[Flowable], *, title: str, about: str, author: str) -> bytes:
    """Return a PDF of the parts, on as many pages as needed."""
    out = io.BytesIO()
    document = BaseDocTemplate(
        out, pagesize=A4, title=title, author=author, creator=f"medgrape {__version__}", subject=NOTICE, lang="en",
    )  # fmt: skip
    frame = Frame(MARGIN, FOOT, WIDTH, HEIGHT, leftPadding=0, rightPadding=0, topPadding=0, bottomPadding=0)
    document.addPageTemplates(PageTemplate(frames=[frame]))
    document.build(list(parts), canvasmaker=partial(_NumberedCanvas, about=about))
    return out.getvalue()


def _image(picture: Image, width: float, height: float) -> ImageFlowable:
    """Return a picture as large as fits."""
    scale = min(width / picture.width, height / picture.height)
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=1)
    return ImageFlowable(out, picture.width * scale, picture.height * scale)
