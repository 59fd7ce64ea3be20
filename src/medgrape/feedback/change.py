"""One step of a person at the light box: a correction made, withdrawn, or redrawn in its place; and the way back."""

from dataclasses import dataclass
from typing import Any, Literal

from medgrape.feedback.correction import Correction

ChangeKind = Literal["corrected", "withdrawn", "redrawn"]


@dataclass(frozen=True)
class Change:
    """What a step does to the corrections of a study."""

    kind: ChangeKind
    number: int
    """Where, among the corrections, from 0."""
    correction: Correction
    """The one that was made, or withdrawn, or drawn in place of another."""
    replaced: Correction | None = None
    """Which other, if it was redrawn."""

    def done(self, corrections: tuple[Correction, ...]) -> tuple[Correction, ...]:
        """The corrections once it is done."""
        return _exchanged(corrections, self.number, self._out, self._in)

    def undone(self, corrections: tuple[Correction, ...]) -> tuple[Correction, ...]:
        """The corrections from before it was done: the very ones, each in its old place."""
        return _exchanged(corrections, self.number, self._in, self._out)

    def to_json(self) -> dict[str, Any]:
        """Plain data: the correction's own, and what became of it."""
        replaced = None if self.replaced is None else self.replaced.to_json()
        return self.correction.to_json() | {"step": self.kind, "number": self.number, "replaced": replaced}

    @property
    def _out(self) -> tuple[Correction, ...]:
        if self.kind == "withdrawn":
            return (self.correction,)
        return () if self.replaced is None else (self.replaced,)

    @property
    def _in(self) -> tuple[Correction, ...]:
        return () if self.kind == "withdrawn" else (self.correction,)


def _exchanged(
    corrections: tuple[Correction, ...], number: int, out: tuple[Correction, ...], into: tuple[Correction, ...]
) -> tuple[Correction, ...]:
    return (*corrections[:number], *into, *corrections[number + len(out) :])
