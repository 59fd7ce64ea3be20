"""What a person can say about a film: it is here, it is not here, or it is not on this film at all."""

from dataclasses import dataclass
from typing import Any

from medgrape.concepts import ConceptSet
from medgrape.feedback.safety import SafetyCheck
from medgrape.geometry import Box


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
