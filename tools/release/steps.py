"""Steps of a release check: each passes, fails or could not be done, and says so in one sentence."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from release.bench import Bench


class State(StrEnum):
    """What came of a step."""

    PASSED = "passed"
    FAILED = "FAILED"
    NOT_DONE = "NOT DONE"


class RefusedError(Exception):
    """What is there must not be released; the sentence says why."""


class OutOfReachError(Exception):
    """The step needs something that does not answer from here, so nobody knows."""


@dataclass(frozen=True)
class Step:
    """Something to look at."""

    name: str
    work: Callable[[Bench], str]
    """Does it, and tells what was seen."""
    needs: tuple[str, ...] = ()
    """Steps without which it has nothing to look at."""


@dataclass(frozen=True)
class Outcome:
    """What came of looking."""

    step: str
    state: State
    told: str
    seconds: float


def performed(steps: Iterable[Step], bench: Bench) -> Iterator[Outcome]:
    """One step after the other; one whose needs are not met is not done."""
    passed: set[str] = set()
    for step in steps:
        missing = [need for need in step.needs if need not in passed]
        outcome = _skipped(step, missing) if missing else _done(step, bench)
        if outcome.state is State.PASSED:
            passed.add(step.name)
        yield outcome


def ends_well(outcomes: Iterable[Outcome], *, allowed: frozenset[str] = frozenset()) -> bool:
    """Whether all passed; steps named in ``allowed`` may be left undone, but may not fail."""
    return all(one.state is State.PASSED or (one.state is State.NOT_DONE and one.step in allowed) for one in outcomes)


def _skipped(step: Step, missing: list[str]) -> Outcome:
    return Outcome(step.name, State.NOT_DONE, f"It needs: {', '.join(missing)}.", 0.0)


def _done(step: Step, bench: Bench) -> Outcome:
    begun = time.monotonic()
    try:
        state, told = State.PASSED, step.work(bench)
    except RefusedError as refusal:
        state, told = State.FAILED, str(refusal)
    except OutOfReachError as silence:
        state, told = State.NOT_DONE, str(silence)
    return Outcome(step.name, state, told, time.monotonic() - begun)
