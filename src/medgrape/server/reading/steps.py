"""A study is what its events add up to: corrections in force, the steps that led there, and those that were undone."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from medgrape.feedback.change import Change
from medgrape.feedback.correction import Correction, correction_from_json
from medgrape.server.storage.events import Event

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
        told = event.told
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
