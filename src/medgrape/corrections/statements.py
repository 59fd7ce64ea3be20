"""One step of a person at the light box: a correction made, withdrawn, or redrawn in its place; and the way back."""

from dataclasses import dataclass
from typing import Any, Literal

from medgrape.concepts import ConceptSet
from medgrape.geometry import Box
from medgrape.safety.check import SafetyCheck


@dataclass(frozen=True)
class BoxCorrection:
    """A box that somebody drew."""

    box: Box
    concept: str | None
    """None: every concept. A positive box then says "look here", a negative one "there is nothing here"."""
    positive: bool = True
    """Whether the concept is inside the box, or is not."""
    confirmed: bool = False
    """Whether the person would have it applied even if the model sees something else inside."""
    check: SafetyCheck | None = None
    """What the model saw inside; None where nothing was claimed."""

    @property
    def claims(self) -> str | None:
        """The concept that is said to be inside.

        A negative box says that nothing is there, and a box for all concepts does not say which one is, so neither can
        contradict what the model sees: there is nothing to check.
        """
        return self.concept if self.positive else None

    def rows(self, concepts: ConceptSet) -> tuple[int, ...]:
        """Which concepts it speaks of."""
        return _rows(concepts, self.concept)

    def in_words(self, concepts: ConceptSet) -> str:
        """As one would say it."""
        told = f"a box {'for' if self.positive else 'against'} {_title(concepts, self.concept)}"
        against = self.check is not None and self.check.mismatch
        return f"{told}, confirmed though the model sees something else there" if against else told

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": "box" if self.positive else "not_box",
            "concept": self.concept,
            "box": list(self.box.corners),
            "confirmed": self.confirmed,
            "check": None if self.check is None else self.check.to_json(),
        }


@dataclass(frozen=True)
class Rejection:
    """A concept that somebody says is not on this film."""

    concept: str | None
    """None: none of them is."""

    def rows(self, concepts: ConceptSet) -> tuple[int, ...]:
        """Which concepts it speaks of."""
        return _rows(concepts, self.concept)

    def in_words(self, concepts: ConceptSet) -> str:
        """As one would say it."""
        return f"{_title(concepts, self.concept)} rejected"

    def to_json(self) -> dict[str, Any]:
        """Plain data, with the same keys as a box."""
        return {"kind": "reject", "concept": self.concept, "box": None, "confirmed": False, "check": None}


Correction = BoxCorrection | Rejection


def correction_from_json(told: dict[str, Any]) -> Correction:
    """The inverse of every correction's ``to_json``."""
    if told["kind"] == "reject":
        return Rejection(told["concept"])
    check = None if told["check"] is None else SafetyCheck.from_json(told["check"])
    return BoxCorrection(Box(*told["box"]), told["concept"], told["kind"] == "box", told["confirmed"], check)


def _rows(concepts: ConceptSet, concept: str | None) -> tuple[int, ...]:
    return tuple(range(len(concepts))) if concept is None else (concepts.index(concept),)


def _title(concepts: ConceptSet, concept: str | None) -> str:
    return "every finding" if concept is None else concepts[concept].title


ChangeKind = Literal["corrected", "withdrawn", "redrawn"]


@dataclass(frozen=True)
class StudyChange:
    """What a step does to the corrections of a study."""

    kind: ChangeKind
    number: int
    """Where, among the corrections, from 0."""
    correction: Correction
    """The one that was made, or withdrawn, or drawn in place of another."""
    replaced: Correction | None = None
    """Which other, if it was redrawn."""

    def apply(self, corrections: tuple[Correction, ...]) -> tuple[Correction, ...]:
        """The corrections once it is done."""
        return _exchanged(corrections, self.number, self._out, self._in)

    def revert(self, corrections: tuple[Correction, ...]) -> tuple[Correction, ...]:
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
