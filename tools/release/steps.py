"""Steps of a release check; each passes, fails or is not done, with one sentence as message."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from release.workspace import Workspace


class State(StrEnum):
    """Result of a step."""

    PASSED = "passed"
    FAILED = "FAILED"
    NOT_DONE = "NOT DONE"


class RefusedError(Exception):
    """The release must not be published; the message says why."""


class OutOfReachError(Exception):
    """The step needs a service that cannot be reached."""


@dataclass(frozen=True)
class Step:
    """A check."""

    name: str
    work: Callable[[Workspace], str]
    """Runs the check and returns a message."""
    needs: tuple[str, ...] = ()
    """Steps that must pass before."""


@dataclass(frozen=True)
class Outcome:
    """Result of one step."""

    step: str
    state: State
    told: str
    seconds: float


def run_steps(steps: Iterable[Step], workspace: Workspace) -> Iterator[Outcome]:
    """Run the steps in order; one whose needs did not pass is not done."""
    passed: set[str] = set()
    for step in steps:
        missing = [need for need in step.needs if need not in passed]
        outcome = _skipped(step, missing) if missing else _done(step, workspace)
        if outcome.state is State.PASSED:
            passed.add(step.name)
        yield outcome


def all_passed(outcomes: Iterable[Outcome], *, allowed: frozenset[str] = frozenset()) -> bool:
    """Return whether all steps passed; those in ``allowed`` may also be not done."""
    return all(one.state is State.PASSED or (one.state is State.NOT_DONE and one.step in allowed) for one in outcomes)


def _skipped(step: Step, missing: list[str]) -> Outcome:
    return Outcome(step.name, State.NOT_DONE, f"It needs: {', '.join(missing)}.", 0.0)


def _done(step: Step, workspace: Workspace) -> Outcome:
    begun = time.monotonic()
    try:
        state, told = State.PASSED, step.work(workspace)
    except RefusedError as refusal:
        state, told = State.FAILED, str(refusal)
    except OutOfReachError as silence:
        state, told = State.NOT_DONE, str(silence)
    return Outcome(step.name, state, told, time.monotonic() - begun)
