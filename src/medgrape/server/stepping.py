"""What can be done to a study: correct it, withdraw or redraw a correction, undo, redo."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from medgrape.feedback.change import Change
from medgrape.feedback.correction import BoxCorrection, Correction
from medgrape.feedback.study import NoSuchCorrectionError, Study
from medgrape.server.problems import Problem
from medgrape.server.reading.steps import CORRECTED, REDONE, REDRAWN, UNDONE, WITHDRAWN, Standing


@dataclass(frozen=True)
class Step:
    """What is about to be done to a study."""

    kind: str
    taken: Callable[[Study, Standing], Study]
    reason: str | None = None

    def told(self, after: Study) -> dict[str, Any]:
        """What the log keeps of it; of undo and redo nothing, for the log has told already what they bring back."""
        if self.kind in (UNDONE, REDONE):
            return {}
        change = cast(Change, after.change)
        told: dict[str, Any] = {"correction": change.correction.to_json(), "reason": self.reason}
        if self.kind != CORRECTED:
            told["number"] = change.number
        if change.replaced is not None:
            told["replaced"] = change.replaced.to_json()
        return told


def correcting(correction: Correction, *, confirmed: bool, reason: str | None) -> Step:
    """One correction more."""
    return Step(CORRECTED, lambda study, _: study.correct(correction, confirmed=confirmed), reason)


def withdrawing(number: int, reason: str | None) -> Step:
    """One correction less, whichever it is."""
    return Step(WITHDRAWN, _there(lambda study: study.withdraw(number)), reason)


def redrawing(number: int, drawn: BoxCorrection, *, confirmed: bool, reason: str | None) -> Step:
    """Another box in the place of one."""

    def redrawn(study: Study) -> Study:
        return study.redraw(number, drawn.box, drawn.concept, positive=drawn.positive, confirmed=confirmed)

    return Step(REDRAWN, _there(redrawn), reason)


def first_of(study: Study) -> Study:
    """The study before any correction. Those in between hold evidence that nobody asks for again."""
    while study.before is not None:
        study = study.before
    return study


def _there(taken: Callable[[Study], Study]) -> Callable[[Study, Standing], Study]:
    """The step, where the correction that it is about is there."""

    def found(study: Study, _: Standing) -> Study:
        try:
            return taken(study)
        except NoSuchCorrectionError as error:
            raise Problem(404, "not_found", str(error)) from error

    return found


def _undone(study: Study, now: Standing) -> Study:
    """From where the study stands, not from ``study.before``: after a restart nobody holds that one any more."""
    if not now.done:
        raise Problem(409, "nothing_to_undo", "There is no correction to undo: this is the film as the model reads it.")
    return first_of(study).resumed(now.undo().corrections)


def _redone(study: Study, now: Standing) -> Study:
    if not now.undone:
        raise Problem(409, "nothing_to_redo", "There is nothing to redo: nothing was undone last.")
    return first_of(study).resumed(now.redo().corrections)


UNDO, REDO = Step(UNDONE, _undone), Step(REDONE, _redone)
