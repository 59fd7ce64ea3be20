"""The history of a study: steps of one person, their events in the log, and the state that follows from them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from medgrape.corrections.statements import Correction, StudyChange, correction_from_json
from medgrape.server.errors import Problem
from medgrape.server.storage.events import Event
from medgrape.study import NoSuchCorrectionError, Study

CORRECTED, WITHDRAWN, REDRAWN = "study.corrected", "study.withdrawn", "study.redrawn"
UNDONE, REDONE = "study.undone", "study.redone"
STEPS = (CORRECTED, WITHDRAWN, REDRAWN, UNDONE, REDONE)
"""Kinds of the events that change a study."""


@dataclass(frozen=True)
class StudyState:
    """The corrections in force after some steps, and what can be undone and redone."""

    revision: int = 0
    """Number of steps."""
    corrections: tuple[Correction, ...] = ()
    done: tuple[StudyChange, ...] = ()
    """Changes that can be undone, the last one last."""
    undone: tuple[StudyChange, ...] = ()
    """Changes that can be redone, the one undone last at the end."""

    def do(self, change: StudyChange) -> "StudyState":
        """Return the state after a change; nothing can be redone after it."""
        return StudyState(self.revision + 1, change.apply(self.corrections), (*self.done, change))

    def undo(self) -> "StudyState":
        """Return the state after the last change is undone."""
        if not self.done:
            raise Problem(
                409, "nothing_to_undo", "There is no correction to undo: this is the film as the model reads it."
            )
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
    change: StudyChange
    """The change that was made, undone or redone."""
    state: StudyState
    """After the step."""


def replay(events: Iterable[Event]) -> Iterator[HistoryEntry]:
    """Walk through the steps of one study, the first one first."""
    state = StudyState()
    for event in events:
        if event.kind == UNDONE:
            state = state.undo()
            change = state.undone[-1]
        else:
            state = state.redo() if event.kind == REDONE else state.do(_change(event, state.corrections))
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
    """What a step makes of a study, before it is written to the log."""

    study: Study
    state: StudyState
    kind: str
    """Kind of its event."""
    payload: dict[str, Any]
    """Body of its event. Undo and redo have none: the log already has the change."""


Step = Callable[[Study, StudyState], Outcome]
"""Something that a person does to a study."""


def changing(change: Callable[[Study], Study], reason: str | None) -> Step:
    """Return the step that makes a change of the library's: correct, withdraw or redraw."""

    def step(study: Study, state: StudyState) -> Outcome:
        try:
            after = change(study)
        except NoSuchCorrectionError as error:
            raise Problem(404, "not_found", str(error)) from error
        made = after.change
        assert made is not None  # noqa: S101 (a study that was changed knows how)
        return Outcome(after, state.do(made), f"study.{made.kind}", _payload(made) | {"reason": reason})

    return step


def undo(study: Study, state: StudyState) -> Outcome:
    """Undo the last change. The study is rebuilt from the state: after a restart nobody holds ``study.before``."""
    return _outcome(study, state.undo(), UNDONE)


def redo(study: Study, state: StudyState) -> Outcome:
    """Redo the change that was undone last."""
    return _outcome(study, state.redo(), REDONE)


def _outcome(study: Study, state: StudyState, kind: str) -> Outcome:
    return Outcome(first_of(study).resumed(state.corrections), state, kind, {})


def first_of(study: Study) -> Study:
    """Return the study before any correction. Those in between hold evidence that nobody needs again."""
    while study.before is not None:
        study = study.before
    return study


def _payload(change: StudyChange) -> dict[str, Any]:
    """Describe a change in its event; ``_change`` is the inverse."""
    payload: dict[str, Any] = {"correction": change.correction.to_json()}
    if change.kind != "corrected":
        payload["number"] = change.number
    if change.replaced is not None:
        payload["replaced"] = change.replaced.to_json()
    return payload


def _change(event: Event, corrections: tuple[Correction, ...]) -> StudyChange:
    payload = event.payload
    if event.kind == WITHDRAWN:
        return StudyChange("withdrawn", payload["number"], corrections[payload["number"]])
    correction = correction_from_json(payload["correction"])
    if event.kind == REDRAWN:
        return StudyChange("redrawn", payload["number"], correction, corrections[payload["number"]])
    return StudyChange("corrected", len(corrections), correction)
