"""A study is what its events add up to: corrections in force, and those that were undone and may come back."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from medgrape.feedback.correction import Correction, correction_from_json
from medgrape.server.storage.events import Event

CORRECTED, UNDONE, REDONE = "study.corrected", "study.undone", "study.redone"
STEPS = (CORRECTED, UNDONE, REDONE)
"""Kinds of events that change a study."""


@dataclass(frozen=True)
class Standing:
    """Where a study stands."""

    revision: int = 0
    corrections: tuple[Correction, ...] = ()
    undone: tuple[Correction, ...] = ()
    """What could be redone, the last undone one last."""

    def after(self, event: Event) -> "Standing":
        """Where it stands once this was done."""
        later = replace(self, revision=self.revision + 1)
        if event.kind == UNDONE:
            return replace(later, corrections=self.corrections[:-1], undone=(*self.undone, self.corrections[-1]))
        if event.kind == REDONE:
            return replace(later, corrections=(*self.corrections, self.undone[-1]), undone=self.undone[:-1])
        correction = correction_from_json(event.told["correction"])
        return replace(later, corrections=(*self.corrections, correction), undone=())


def standing(events: Iterable[Event]) -> Standing:
    """Where a study stands after all of this."""
    found = Standing()
    for event in events:
        found = found.after(event)
    return found
