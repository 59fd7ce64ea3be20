"""A film read by a model and corrected by a person. Studies are immutable: a correction returns a new one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any

import torch

from medgrape.corrections.attribution import Contributions, class_contributions
from medgrape.corrections.effects import rejected, revise, revised_scores
from medgrape.corrections.statements import BoxCorrection, Correction, Rejection, StudyChange
from medgrape.errors import UserError
from medgrape.explain.assemble import explain
from medgrape.explain.explanation import Explanation
from medgrape.explain.film_evidence import DrawnBox
from medgrape.explain.notebook import MimeBundle, show
from medgrape.explain.words import format_probabilities
from medgrape.films.film import Film
from medgrape.geometry import Box, on_film
from medgrape.model.evidence import Evidence
from medgrape.model.grape import Prediction
from medgrape.records import once
from medgrape.runs.checkpoint import Run, SafetyRule
from medgrape.safety.check import SafetyCheck, check_box


class ConceptMismatchError(UserError):
    """The safety check warns about a box that is not confirmed."""

    def __init__(self, check: SafetyCheck) -> None:
        super().__init__(f"{check.reason} Nothing was changed; to apply the box all the same, say confirmed=True.")
        self.check = check


class NothingToUndoError(UserError):
    """A study without corrections has nothing to undo."""


class NoSuchCorrectionError(UserError):
    """A study has no correction with this number."""

    def __init__(self, number: int, count: int) -> None:
        known = f"those in force are numbered 0 to {count - 1}" if count else "none is in force"
        super().__init__(f"There is no correction {number}: {known}.")


@dataclass(frozen=True, repr=False)
class Study:
    """A film with the model's evidence, the corrections of a person, and the reading that follows from both."""

    run: Run
    film: Film
    """The whole film, upright, in its original pixels."""
    original: Evidence
    """The evidence before any correction."""
    corrections: tuple[Correction, ...] = ()
    """Corrections in force, oldest first. Their effect does not depend on their order."""
    before: "Study | None" = None
    """The study before the last ``change``."""
    change: StudyChange | None = None
    model: str = "unknown"
    """Name of the model in reports: the fingerprint of its weights."""

    @once
    def evidence(self) -> Evidence:
        """Evidence after all boxes, computed from the original."""
        return revise(self.original, self.corrections)

    @once
    def output(self) -> Prediction:
        """Output of the head for this evidence."""
        scores = revised_scores(self.evidence, self.corrections, self.run.reference_scores.absent)
        with torch.no_grad():
            return self.run.model.classify(scores.unsqueeze(0))

    @once
    def prediction(self) -> Mapping[str, float]:
        """Class to probability, the most probable first."""
        probabilities = zip(self.run.classes, self.output.probabilities[0].tolist(), strict=True)
        return dict(sorted(probabilities, key=lambda item: -item[1]))

    @once
    def moves(self) -> Contributions:
        """Concept to class to the contribution: how much the probability would fall if the concept were rejected.

        Concepts that are not inputs of the head are left out; rejected ones contribute 0.
        """
        names = rejected(self.original.concepts, self.corrections)
        return class_contributions(self.run, self.output.scores[0], self.prediction, names)

    def check(self, box: Box, concept: str) -> SafetyCheck:
        """Check whether the model sees ``concept`` inside the box, by the thresholds of the run.

        Uses the original evidence, so that one correction cannot make the model agree with the next.
        """
        return check_box(self.original, box, concept, SafetyRule.of(self.run))

    def apply(self, box: Box, concept: str | None, *, confirmed: bool = False) -> "Study":
        """Return a study in which the concept is inside the box.

        Raises ``ConceptMismatchError`` if the model sees something else there, unless confirmed. ``concept`` None means
        "look here, whatever it is" and is not checked; it has no default, so that no check is skipped by omission.
        """
        return self.correct(BoxCorrection(box, concept), confirmed=confirmed)

    def rule_out(self, box: Box, concept: str | None = None) -> "Study":
        """Return a study in which the concept, or every concept, is not inside the box. This is not checked."""
        return self.correct(BoxCorrection(box, concept, positive=False))

    def reject(self, concept: str | None = None) -> "Study":
        """Return a study in which the concept, or every concept, scores as on films without it.

        Its map does not change, and boxes drawn before count again once the rejection is undone.
        """
        return self.correct(Rejection(concept))

    def correct(self, *corrections: Correction, confirmed: bool = False) -> "Study":
        """Return a study with several corrections in this order; if one is refused, none is applied."""
        study = self
        for correction in corrections:
            study = study._append(study._checked(correction, confirmed=confirmed))
        return study

    def withdraw(self, number: int) -> "Study":
        """Return a study without one correction, counted from 0 in ``corrections``."""
        return self._changed(StudyChange("withdrawn", number, self._correction(number)))

    def redraw(
        self,
        number: int,
        box: Box | None = None,
        concept: str | EllipsisType | None = ...,
        *,
        positive: bool | None = None,
        confirmed: bool = False,
    ) -> "Study":
        """Return a study with another box in place of box ``number``; omitted arguments keep their values.

        ``concept`` None is every concept, as in ``apply``. The new box is checked, whether or not the old one was
        confirmed.
        """
        old = self._correction(number)
        if isinstance(old, Rejection):
            raise UserError(f"Correction {number} is a rejection and has no box to redraw; withdraw it instead.")
        new = BoxCorrection(
            old.box if box is None else box,
            old.concept if isinstance(concept, EllipsisType) else concept,
            old.positive if positive is None else positive,
        )
        return self._changed(StudyChange("redrawn", number, self._checked(new, confirmed=confirmed), old))

    def resumed(self, accepted: Iterable[Correction]) -> "Study":
        """Return a study with corrections that were accepted in an earlier session; they are not checked again."""
        study = self
        for correction in accepted:
            study = study._append(correction)
        return study

    def undo(self) -> "Study":
        """Return the study before the last change."""
        if self.before is None:
            raise NothingToUndoError("There is no correction to undo: this is the film as the model reads it.")
        return self.before

    def explain(self) -> Explanation:
        """Return ranked concepts with maps, the training films behind them, classes and attention."""
        concepts = self.original.concepts
        texts = [correction.in_words(concepts) for correction in self.corrections]
        notes = (f"A person corrected this reading: {'; '.join(texts)}.",) if texts else ()
        boxes = (correction for correction in self.corrections if isinstance(correction, BoxCorrection))
        drawn = tuple(DrawnBox(box.box, box.concept, box.positive) for box in boxes)
        names, moves = rejected(concepts, self.corrections), self.moves
        return explain(
            self.run, self.film, self.evidence, self.output, rejected=names, notes=notes, drawn=drawn, moves=moves
        )

    @property
    def log(self) -> list[dict[str, Any]]:
        """All changes, oldest first, as plain data for JSON; undone changes are not included.

        An entry has the keys of its correction, the predictions before and after, and ``step``: "corrected" (added),
        "withdrawn", or "redrawn" in place of ``replaced``; ``number`` is the position of the correction.
        """
        entries: list[dict[str, Any]] = []
        study = self
        while study.before is not None and study.change is not None:
            before, after = dict(study.before.prediction), dict(study.prediction)
            entries.append(study.change.to_json() | {"prediction_before": before, "prediction_after": after})
            study = study.before
        return entries[::-1]

    def __repr__(self) -> str:
        count = len(self.corrections)
        corrected = f"; {count} correction{'s' if count > 1 else ''}" if count else ""
        return f"Study(film of {self.film.facts.size} pixels; {format_probabilities(self.prediction)}{corrected})"

    def _repr_mimebundle_(self, **_formats: object) -> MimeBundle:
        """Return the film with findings, classes and corrections as a picture for a notebook."""
        return show(self.explain, repr(self), complete=False)

    def _append(self, correction: Correction) -> "Study":
        return self._changed(StudyChange("corrected", len(self.corrections), correction))

    def _changed(self, change: StudyChange) -> "Study":
        return replace(self, corrections=change.apply(self.corrections), before=self, change=change)

    def _correction(self, number: int) -> Correction:
        if not 0 <= number < len(self.corrections):  # a negative index would be valid in Python
            raise NoSuchCorrectionError(number, len(self.corrections))
        return self.corrections[number]

    def _checked(self, correction: Correction, *, confirmed: bool) -> Correction:
        """Return the correction with the result of its safety check; every new correction passes here."""
        correction.rows(self.original.concepts)  # raises for an unknown concept
        if isinstance(correction, Rejection):
            return correction
        on_film(correction.box, self.original.grid)  # raises for a box outside the film
        if correction.claim is None:
            return replace(correction, confirmed=False, check=None)
        check = self.check(correction.box, correction.claim)
        if check.mismatch and not confirmed:
            raise ConceptMismatchError(check)
        return replace(correction, confirmed=confirmed, check=check)
