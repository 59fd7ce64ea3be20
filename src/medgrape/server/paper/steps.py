"""What was corrected: every step with the check's answer, the reason given and what it did."""

from collections.abc import Mapping

from reportlab.lib.units import mm
from reportlab.platypus import Flowable, LongTable

from medgrape.explain.render_says import per_cent
from medgrape.server.paper.front import LINED, moment, points
from medgrape.server.paper.letters import marked_up, said, words
from medgrape.server.paper.sheet import WIDTH
from medgrape.server.schemas.exports import ReadingExported
from medgrape.server.schemas.studies import CheckTold, CorrectionTold, StepTold

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
