"""What can be done to a study: correct it, withdraw or redraw a correction, undo, redo."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from medgrape.corrections.statements import BoxCorrection, Change, Correction, correction_from_json
from medgrape.server.problems import Problem
from medgrape.server.storage.events import Event
from medgrape.study import NoSuchCorrectionError, Study

CORRECTED, WITHDRAWN, REDRAWN = "study.corrected", "study.withdrawn", "study.redrawn"
UNDONE, REDONE = "study.undone", "study.redone"
STEPS = (CORRECTED, WITHDRAWN, REDRAWN, UNDONE, REDONE)
"""Kinds of events that change a study."""


@dataclass(frozen=True)
class Standing:
    """Where a study stands."""

    revision: int = 0
    corrections: tuple[Correction, ...] = ()
    done: tuple[Change, ...] = ()
    """What could be undone, the last done one last: all that was done and not undone."""
    undone: tuple[Change, ...] = ()
    """What could be redone, the last undone one last."""

    def after(self, event: Event) -> "Standing":
        """Where it stands once this was done."""
        if event.kind == UNDONE:
            return self.undo()
        if event.kind == REDONE:
            return self.redo()
        return replace(self._with(self._change(event)), undone=())

    def undo(self) -> "Standing":
        """Where it stands once the last step was taken back."""
        *done, last = self.done
        back = last.undone(self.corrections)
        return Standing(self.revision + 1, back, tuple(done), (*self.undone, last))

    def redo(self) -> "Standing":
        """Where it stands once the step that was undone last is taken again."""
        *undone, last = self.undone
        return replace(self._with(last), undone=tuple(undone))

    def last(self, event: Event) -> Change:
        """What the event that led here did, took back or brought back."""
        return self.undone[-1] if event.kind == UNDONE else self.done[-1]

    def _with(self, change: Change) -> "Standing":
        later = change.done(self.corrections)
        return replace(self, revision=self.revision + 1, corrections=later, done=(*self.done, change))

    def _change(self, event: Event) -> Change:
        told = event.payload
        if event.kind == WITHDRAWN:
            return Change("withdrawn", told["number"], self.corrections[told["number"]])
        correction = correction_from_json(told["correction"])
        if event.kind == REDRAWN:
            return Change("redrawn", told["number"], correction, self.corrections[told["number"]])
        return Change("corrected", len(self.corrections), correction)


def standing(events: Iterable[Event]) -> Standing:
    """Where a study stands after all of this."""
    found = Standing()
    for event in events:
        found = found.after(event)
    return found


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
