"""Corrections that a person makes to the reading of a film, and the changes of a study's corrections."""

from dataclasses import dataclass
from typing import Any, Literal

from medgrape.concepts import ConceptSet
from medgrape.geometry import Box
from medgrape.safety.check import SafetyCheck


class _AboutConcept:
    """A correction of one concept, or of every concept if ``concept`` is None."""

    concept: str | None

    def rows(self, concepts: ConceptSet) -> tuple[int, ...]:
        """Return the indices of the concepts; an unknown one is an error."""
        return tuple(range(len(concepts))) if self.concept is None else (concepts.index(self.concept),)

    def _title(self, concepts: ConceptSet) -> str:
        return "every finding" if self.concept is None else concepts[self.concept].title


@dataclass(frozen=True)
class BoxCorrection(_AboutConcept):
    """A box that a person drew."""

    box: Box
    concept: str | None
    """None: every concept. A positive box then says "look here", a negative one "there is nothing here"."""
    positive: bool = True
    """Whether the concept is inside the box, or is not."""
    confirmed: bool = False
    """Whether the box is applied even if the safety check warns."""
    check: SafetyCheck | None = None
    """Result of the safety check; None if no concept is claimed."""

    @property
    def claim(self) -> str | None:
        """The concept that is claimed to be inside, which is checked.

        A negative box and a box for every concept claim none, so they cannot contradict what the model sees.
        """
        return self.concept if self.positive else None

    def in_words(self, concepts: ConceptSet) -> str:
        """Describe the correction."""
        text = f"a box {'for' if self.positive else 'against'} {self._title(concepts)}"
        contradicts = self.check is not None and self.check.mismatch
        return f"{text}, confirmed though the model sees something else there" if contradicts else text

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "kind": "box" if self.positive else "not_box",
            "concept": self.concept,
            "box": list(self.box.corners),
            "confirmed": self.confirmed,
            "check": None if self.check is None else self.check.to_json(),
        }


@dataclass(frozen=True)
class Rejection(_AboutConcept):
    """The statement that a concept is not on this film."""

    concept: str | None
    """None: every concept."""

    def in_words(self, concepts: ConceptSet) -> str:
        """Describe the correction."""
        return f"{self._title(concepts)} rejected"

    def to_json(self) -> dict[str, Any]:
        """Return plain data with the keys of a box."""
        return {"kind": "reject", "concept": self.concept, "box": None, "confirmed": False, "check": None}


Correction = BoxCorrection | Rejection


def correction_from_json(payload: dict[str, Any]) -> Correction:
    """Return the correction of which ``payload`` is the ``to_json``."""
    if payload["kind"] == "reject":
        return Rejection(payload["concept"])
    check = None if payload["check"] is None else SafetyCheck.from_json(payload["check"])
    positive = payload["kind"] == "box"
    return BoxCorrection(Box(*payload["box"]), payload["concept"], positive, payload["confirmed"], check)


ChangeKind = Literal["corrected", "withdrawn", "redrawn"]


@dataclass(frozen=True)
class StudyChange:
    """A change of a study's corrections."""

    kind: ChangeKind
    number: int  # position among the corrections, from 0
    correction: Correction  # the correction that was added, withdrawn, or drawn in place of another
    replaced: Correction | None = None  # the correction that was redrawn

    def apply(self, corrections: tuple[Correction, ...]) -> tuple[Correction, ...]:
        """Return the corrections after the change."""
        before, after = self._before_and_after
        return (*corrections[: self.number], *after, *corrections[self.number + len(before) :])

    def revert(self, corrections: tuple[Correction, ...]) -> tuple[Correction, ...]:
        """Return the corrections before the change."""
        before, after = self._before_and_after
        return (*corrections[: self.number], *before, *corrections[self.number + len(after) :])

    def to_json(self) -> dict[str, Any]:
        """Return plain data: that of the correction, with ``step``, ``number`` and ``replaced``."""
        replaced = None if self.replaced is None else self.replaced.to_json()
        return self.correction.to_json() | {"step": self.kind, "number": self.number, "replaced": replaced}

    @property
    def _before_and_after(self) -> tuple[tuple[Correction, ...], tuple[Correction, ...]]:
        """The corrections at this position, none or one, before and after the change."""
        if self.kind == "withdrawn":
            return (self.correction,), ()
        return (() if self.replaced is None else (self.replaced,)), (self.correction,)
