"""The steps of a study as events of the log, and the state of the study after them, with undo and redo."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from medgrape.corrections.statements import Correction, StudyChange, correction_from_json
from medgrape.server.errors import Problem
from medgrape.server.storage.events import Event
from medgrape.study import NoSuchCorrectionError, Study

CORRECTED, WITHDRAWN, REDRAWN = "study.corrected", "study.withdrawn", "study.redrawn"
UNDONE, REDONE = "study.undone", "study.redone"
STEPS = (CORRECTED, WITHDRAWN, REDRAWN, UNDONE, REDONE)  # kinds of the events that change a study


@dataclass(frozen=True)
class StudyState:
    """The corrections in force after some steps, and the changes that can be undone and redone."""

    revision: int = 0  # number of steps
    corrections: tuple[Correction, ...] = ()
    done: tuple[StudyChange, ...] = ()  # changes that can be undone, the last one last
    undone: tuple[StudyChange, ...] = ()  # changes that can be redone, the one undone last at the end

    def do(self, change: StudyChange) -> "StudyState":
        """Return the state after a change; nothing can be redone after it."""
        return StudyState(self.revision + 1, change.apply(self.corrections), (*self.done, change))

    def undo(self) -> "StudyState":
        """Return the state after the last change is undone."""
        if not self.done:
            raise Problem(409, "nothing_to_undo", "There is no correction to undo; this is the model's own reading.")
        *done, last = self.done
        return StudyState(self.revision + 1, last.revert(self.corrections), tuple(done), (*self.undone, last))

    def redo(self) -> "StudyState":
        """Return the state after the change that was undone last is done again."""
        if not self.undone:
            raise Problem(409, "nothing_to_redo", "There is nothing to redo: the last step was not an undo.")
        *undone, last = self.undone
        return replace(self.do(last), undone=tuple(undone))


@dataclass(frozen=True)
class HistoryEntry:
    """A step in the log."""

    event: Event
    change: StudyChange  # the change that was made, undone or redone
    state: StudyState  # after the step


def replay(events: Iterable[Event]) -> Iterator[HistoryEntry]:
    """Yield the steps of one study, the first one first."""
    state = StudyState()
    for event in events:
        if event.kind == UNDONE:
            state = state.undo()
            change = state.undone[-1]
        else:
            state = state.redo() if event.kind == REDONE else state.do(_change_of(event, state.corrections))
            change = state.done[-1]
        yield HistoryEntry(event, change, state)


def state_after(events: Iterable[Event]) -> StudyState:
    """Return the state of a study after these steps."""
    state = StudyState()
    for entry in replay(events):
        state = entry.state
    return state


@dataclass(frozen=True)
class Outcome:
    """The result of a step: the new state, and the event to write."""

    state: StudyState
    event_kind: str
    payload: dict[str, Any]  # body of the event; empty for undo and redo, because the log already has the change


Step = Callable[[Study, StudyState], Outcome]  # the study before the step, and its state


def make_change(change: Callable[[Study], Study], reason: str | None) -> Step:
    """Return the step for a method of the library's study: correct, withdraw or redraw."""

    def step(study: Study, state: StudyState) -> Outcome:
        try:
            done = change(study).change
        except NoSuchCorrectionError as error:
            raise Problem(404, "not_found", str(error)) from error
        assert done is not None  # noqa: S101 (a changed study has a change)
        payload: dict[str, Any] = {
            "correction": done.correction.to_json(),
            "reason": reason,
        }  # _change_of is the inverse
        if done.kind != "corrected":
            payload["number"] = done.number
        if done.replaced is not None:
            payload["replaced"] = done.replaced.to_json()
        return Outcome(state.do(done), f"study.{done.kind}", payload)

    return step


def undo(_study: Study, state: StudyState) -> Outcome:
    """Undo the last change."""
    return Outcome(state.undo(), UNDONE, {})


def redo(_study: Study, state: StudyState) -> Outcome:
    """Redo the change that was undone last."""
    return Outcome(state.redo(), REDONE, {})


def _change_of(event: Event, corrections: tuple[Correction, ...]) -> StudyChange:
    payload = event.payload
    if event.kind == WITHDRAWN:
        return StudyChange("withdrawn", payload["number"], corrections[payload["number"]])
    correction = correction_from_json(payload["correction"])
    if event.kind == REDRAWN:
        return StudyChange("redrawn", payload["number"], correction, corrections[payload["number"]])
    return StudyChange("corrected", len(corrections), correction)
