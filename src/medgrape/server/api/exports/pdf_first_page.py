"""The first sheet: what was read, by whom, with what, and what came of it."""

import math
from collections.abc import Sequence
from itertools import zip_longest

from reportlab.lib.colors import HexColor
from reportlab.lib.units import mm
from reportlab.platypus import Flowable, LongTable, Spacer, Table

from medgrape.explain.explanation import ConceptEvidence, Explanation, in_words, tells
from medgrape.explain.film_panel import Marked
from medgrape.explain.layout import is_bright, title_of
from medgrape.explain.panels import per_cent, titles
from medgrape.geometry import peak
from medgrape.server.api.exports.pdf_layout import AMBER, RULE, WIDTH, marked_up, said, words
from medgrape.server.api.exports.reading import ReadingExported

MOST_CLASSES = 15
"""Classes that are listed beside the film; it is no higher."""
_TIGHT = [
    ("LEFTPADDING", (0, 0), (-1, -1), 0),
    ("RIGHTPADDING", (0, 0), (-1, -1), 4),
    ("TOPPADDING", (0, 0), (-1, -1), 1),
    ("BOTTOMPADDING", (0, 0), (-1, -1), 1.5),
    ("VALIGN", (0, 0), (-1, -1), "TOP"),
]
LINED = [*_TIGHT, ("LINEBELOW", (0, 0), (-1, -1), 0.4, RULE)]
_KEY = (
    "Strength: 0 as typically on films without the finding, 1 as on films with it. Letters and outlines on the film: "
    "the findings that stand out most. Moves: how many percentage points of that class are owed to the finding; "
    "without it, the class would stand so much lower (or, with a minus, higher)."
)


def facts(reading: ReadingExported) -> Flowable:
    """Film and patient on the left; person, model and times on the right."""
    columns = [18 * mm, WIDTH / 2 - 18 * mm] * 2
    pairs = zip_longest(_film(reading), _reading(reading), fillvalue=("", ""))
    rows = [[_label(one[0]), words(one[1]), _label(other[0]), words(other[1])] for one, other in pairs]
    return Table(rows, columns, style=_TIGHT)


def _label(text: str) -> Flowable:
    return words(text, faint=True)


def _film(reading: ReadingExported) -> list[tuple[str, str]]:
    film, known = reading.film, reading.film.facts
    size = f"{known.size.width} x {known.size.height} pixels, {known.bits} bit"
    spacing = "" if known.spacing is None else f", {known.spacing[0]:.3g} x {known.spacing[1]:.3g} mm apart"
    view = ", ".join(part for part in (known.modality, known.view, known.laterality) if part)
    sex = {"M": "male", "F": "female", "O": "other"}.get(film.sex, "sex not known")
    age = "age not known" if film.age is None else f"{film.age} years" + (" or older" if film.age >= 90 else "")
    return [
        ("Film", film.id),
        ("Patient", f"{sex}, {age}"),
        ("View", view or "not known"),
        ("Stored as", f"{known.format}, {size}{spacing}"),
        ("Arrived", moment(film.arrived_at)),
    ]


def _reading(reading: ReadingExported) -> list[tuple[str, str]]:
    study, model = reading.study, reading.model
    stands = moment(reading.history[-1].at if reading.history else study.opened_at)
    steps = f"step {study.at} of {study.revision}" if study.at < study.revision else f"step {study.at}, the last"
    return [
        ("Read by", f"{study.reader}, opened {moment(study.opened_at)}"),
        ("As it stood", f"{stands}, after {steps}" if study.revision else "nobody corrected it"),
        ("In force", _counted(len(study.corrections), "correction")),
        ("Model", f"{model.name}, version {model.version}"),
        ("Fingerprint", model.fingerprint),
        ("Printed", f"{moment(reading.made_at)}, {reading.software}"),
    ]


def _counted(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"


def moment(when: str) -> str:
    """A time as people read it."""
    return f"{when[:10]} {when[11:16]} UTC"


def notes(texts: Sequence[str]) -> list[Flowable]:
    """What to know before anything else."""
    if not texts:
        return []
    rows = [[words(text)] for text in texts]
    return [Table(rows, [WIDTH], style=[("BACKGROUND", (0, 0), (-1, -1), AMBER), ("TOPPADDING", (0, 0), (-1, -1), 2)])]


def classes(reading: ReadingExported, explained: Explanation, width: float) -> Flowable:
    """The classes as the model saw them, and after corrections where there are any."""
    corrected, called = bool(reading.study.corrections), titles(explained)
    first, now = reading.study.first_prediction, reading.study.prediction
    heads = ["Class", "Model alone", "Corrected"] if corrected else ["Class", "Model alone"]
    rows = [[words(head, 7.5, faint=True, right=bool(place)) for place, head in enumerate(heads)]]
    for rank, name in enumerate(list(now)[:MOST_CLASSES]):
        shares = [first[name], now[name]] if corrected else [now[name]]
        told = [words(per_cent(share), bold=place == len(shares) - 1, right=True) for place, share in enumerate(shares)]
        rows.append([words(called[name], bold=rank == 0), *told])
    shares_wide = 19 * mm
    widths = [width - shares_wide * (len(heads) - 1), *[shares_wide] * (len(heads) - 1)]
    table = Table(rows, widths, style=LINED)
    rest = len(now) - MOST_CLASSES
    return (
        table
        if rest <= 0
        else Table([[table], [words(f"Less likely, and told in reading.json: {rest} more.", faint=True)]])
    )


def findings(explained: Explanation, shown: Sequence[Marked]) -> list[Flowable]:
    """Every finding in words and figures, on as many sheets as it takes."""
    likeliest = next(iter(explained.probabilities))
    heads = ["", "Finding", "In words", "Strength", f"Moves {titles(explained)[likeliest]}", "Strongest at x, y"]
    rows: list[list[object]] = [
        [words(head, 7.5, faint=True, right=place > 2) for place, head in enumerate(heads)],
        *(_finding(one, explained, likeliest, _mark(shown, one)) for one in explained.concepts),
    ]
    inks = [("BACKGROUND", (0, row), (0, row), HexColor(one.ink)) for row, one in enumerate(shown, 1) if one.seen]
    widths = [6 * mm, 56 * mm, 32 * mm, 18 * mm, 36 * mm, WIDTH - 148 * mm]
    style = [*LINED, ("LEFTPADDING", (1, 0), (1, -1), 5), ("LEFTPADDING", (0, 0), (0, -1), 4), *inks]
    return [LongTable(rows, widths, style=style, repeatRows=1), Spacer(1, 1 * mm), words(_KEY, 7, faint=True)]


def _finding(one: ConceptEvidence, explained: Explanation, likeliest: str, mark: Marked | None) -> list[object]:
    x, y = peak(one.mean, explained.grid)
    pointed = tells(one) and not one.rejected
    return [
        words("") if mark is None else _letter(mark),
        words(title_of(one.concept), bold=mark is not None),
        words(in_words(one)),
        words(f"{one.strength:.2f}".replace("-", "−") if tells(one) else "–", right=True),
        words("not heard" if one.moves is None else points(one.moves[likeliest]), right=True),
        words(f"{x:.0f}, {y:.0f}" if pointed else "–", right=True),
    ]


def _mark(shown: Sequence[Marked], one: ConceptEvidence) -> Marked | None:
    return next((mark for mark in shown if mark.evidence is one and mark.seen), None)


def _letter(mark: Marked) -> Flowable:
    ink = "black" if is_bright(mark.ink) else "white"
    return marked_up(f'<font color="{ink}"><b>{said(mark.letter)}</b></font>')


def points(share: float) -> str:
    """A difference of probabilities in percentage points; no sign where there is nothing to tell."""
    if not math.isfinite(share):
        return "not known"
    told = f"{100 * share:+.1f}"
    return "0.0" if told in ("+0.0", "-0.0") else told.replace("-", "−")
