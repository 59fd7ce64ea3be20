"""One film in front of one model and one person. Immutable: a correction gives a new study, and the old one stays."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any

import torch
from torch import Tensor

from medgrape.corrections.attribution import Moves, moves
from medgrape.corrections.effects import rejected, revise, revised_scores
from medgrape.corrections.statements import BoxCorrection, StudyChange, Correction, Rejection
from medgrape.errors import UserError
from medgrape.explain.assemble import explain
from medgrape.explain.explanation import DrawnBox, Explanation
from medgrape.explain.notebook import Bundle, read, shares
from medgrape.films.film import Film
from medgrape.geometry import Box, on_film
from medgrape.model.evidence import Evidence
from medgrape.model.grape import Prediction
from medgrape.records import once
from medgrape.runs.checkpoint import Run, SafetyRule
from medgrape.safety.check import SafetyCheck, check_box


class ConceptMismatchError(UserError):
    """A box inside which the model sees something else, and which nobody has confirmed yet."""

    def __init__(self, check: SafetyCheck) -> None:
        super().__init__(f"{check.reason} Nothing was changed; to apply the box all the same, say confirmed=True.")
        self.check = check


class NothingToUndoError(UserError):
    """A study that nobody corrected."""


class NoSuchCorrectionError(UserError):
    """A number under which no correction is in force."""

    def __init__(self, number: int, count: int) -> None:
        there = f"those in force are numbered 0 to {count - 1}" if count else "none is in force"
        super().__init__(f"There is no correction {number}: {there}.")


@dataclass(frozen=True, repr=False)
class Study:
    """A film, what the model found on it, what a person said to that, and what comes of both."""

    run: Run
    film: Film
    """Whole, upright, in its original pixels."""
    original: Evidence
    """As the model saw it, before any correction."""
    corrections: tuple[Correction, ...] = ()
    """The first one first. What they do together does not depend on their order."""
    before: "Study | None" = None
    """The study before the last step; None: nothing was done yet."""
    change: StudyChange | None = None
    """What the last step did."""
    model: str = "unknown"
    """What reports call the model by: the fingerprint of its weights."""

    @once
    def evidence(self) -> Evidence:
        """What was found, with every box taken into account; computed from the original each time."""
        return revise(self.original, self.corrections)

    @once
    def judged(self) -> Prediction:
        """What the head makes of the evidence."""
        found = revised_scores(self.evidence, self.corrections, self.run.usual.absent)
        with torch.no_grad():
            return self.run.model.judge(found.unsqueeze(0))

    @once
    def prediction(self) -> Mapping[str, float]:
        """Class to probability, the likeliest first."""
        shares = dict(zip(self.run.classes, _row(self.judged.probabilities), strict=True))
        return dict(sorted(shares.items(), key=lambda one: -one[1]))

    @once
    def moves(self) -> Moves:
        """Concept to class to how much its probability would fall if the concept were rejected: what moved the classes.

        Concepts that the head does not listen to are left out; rejected ones move nothing any more.
        """
        gone = rejected(self.original.concepts, self.corrections)
        return moves(self.run, self.judged.scores[0], self.prediction, gone)

    def check(self, box: Box, concept: str) -> SafetyCheck:
        """Does the model see ``concept`` inside the box?

        It is asked about the film as it saw it, before any correction: else one box could talk it into agreeing with
        the next. The rule is what the run was calibrated to, or its settings. No backbone runs.
        """
        return check_box(self.original, box, concept, SafetyRule.of(self.run))

    def apply(self, box: Box, concept: str | None, *, confirmed: bool = False) -> "Study":
        """A study in which the concept is inside the box.

        Raises ``ConceptMismatchError`` if the model sees something else there and nobody confirmed. ``concept`` is None
        for "look here, whatever it is", which claims nothing and is not checked; it has no default, so that nobody
        goes round the check by leaving a word out.
        """
        return self.correct(BoxCorrection(box, concept), confirmed=confirmed)

    def rule_out(self, box: Box, concept: str | None = None) -> "Study":
        """A study in which the concept, or anything at all, is not inside the box. Nothing is claimed, nor checked."""
        return self.correct(BoxCorrection(box, concept, positive=False))

    def reject(self, concept: str | None = None) -> "Study":
        """A study in which the concept, or every one, is not on the film: it scores as on films without it.

        Its map stays as the model saw it, and boxes drawn before it count again once it is undone.
        """
        return self.correct(Rejection(concept))

    def correct(self, *corrections: Correction, confirmed: bool = False) -> "Study":
        """Several corrections in this order, all of them or, if one is refused, none."""
        study = self
        for correction in corrections:
            study = study._with(study._accepted(correction, confirmed=confirmed))
        return study

    def withdraw(self, number: int) -> "Study":
        """A study without one correction, counted from 0 in ``corrections``; the others stay as they are."""
        return self._after(StudyChange("withdrawn", number, self._in_force(number)))

    def redraw(
        self,
        number: int,
        box: Box | None = None,
        concept: str | EllipsisType | None = ...,
        *,
        positive: bool | None = None,
        confirmed: bool = False,
    ) -> "Study":
        """A study in which another box stands in the place of box ``number``; what is left out stays as it was.

        ``concept`` None is every concept, as in ``apply``. The new box goes through the same check, and
        ``ConceptMismatchError`` leaves all as it was: that somebody confirmed the old one says nothing about this one.
        """
        old = self._in_force(number)
        if isinstance(old, Rejection):
            raise UserError(f"Correction {number} is a rejection and has no box to redraw; withdraw it instead.")
        drawn = BoxCorrection(
            old.box if box is None else box,
            old.concept if isinstance(concept, EllipsisType) else concept,
            old.positive if positive is None else positive,
        )
        return self._after(StudyChange("redrawn", number, self._accepted(drawn, confirmed=confirmed), old))

    def resumed(self, accepted: Iterable[Correction]) -> "Study":
        """A study with corrections that were accepted at an earlier sitting, as they were accepted then."""
        study = self
        for correction in accepted:
            study = study._with(correction)
        return study

    def undo(self) -> "Study":
        """The study before the last step, whatever that did: the very one that it was made from."""
        if self.before is None:
            raise NothingToUndoError("There is no correction to undo: this is the film as the model reads it.")
        return self.before

    def explain(self) -> Explanation:
        """Ranked concepts with maps, the training films behind them, and who listened to whom."""
        concepts = self.original.concepts
        told = [correction.in_words(concepts) for correction in self.corrections]
        notes = (f"A person corrected this reading: {'; '.join(told)}.",) if told else ()
        gone = rejected(concepts, self.corrections)
        boxes = (one for one in self.corrections if isinstance(one, BoxCorrection))
        drawn = tuple(DrawnBox(one.box, one.concept, one.positive) for one in boxes)
        return explain(
            self.run, self.film, self.evidence, self.judged, rejected=gone, notes=notes, drawn=drawn, moves=self.moves
        )

    @property
    def log(self) -> list[dict[str, Any]]:
        """What was done and what came of it, the first step first: plain data, ready for JSON.

        An entry is a correction; its ``step`` says whether that was "corrected" (made), "withdrawn", or "redrawn" in
        place of the one ``replaced``, and ``number`` where it stood. What was undone is not told.
        """
        steps: list[dict[str, Any]] = []
        study = self
        while study.before is not None and study.change is not None:
            shares = {"prediction_before": study.before.prediction, "prediction_after": study.prediction}
            steps.append(study.change.to_json() | {name: dict(share) for name, share in shares.items()})
            study = study.before
        return steps[::-1]

    def __repr__(self) -> str:
        count = len(self.corrections)
        done = f"; {count} correction{'s' if count > 1 else ''}" if count else ""
        return f"Study(film of {self.film.facts.size} pixels; {shares(self.prediction.items())}{done})"

    def _repr_mimebundle_(self, **_formats: object) -> Bundle:
        """The film with findings, classes and corrections, in a notebook."""
        return read(self.explain, repr(self))

    def _with(self, correction: Correction) -> "Study":
        return self._after(StudyChange("corrected", len(self.corrections), correction))

    def _after(self, change: StudyChange) -> "Study":
        return replace(self, corrections=change.apply(self.corrections), before=self, change=change)

    def _in_force(self, number: int) -> Correction:
        if not 0 <= number < len(self.corrections):  # -1 is the last one to Python, and a slip to a person
            raise NoSuchCorrectionError(number, len(self.corrections))
        return self.corrections[number]

    def _accepted(self, correction: Correction, *, confirmed: bool) -> Correction:
        """The correction with what the model had to say to it; the rule that no front end can forget."""
        correction.rows(self.original.concepts)  # a concept that is not known is refused here
        if isinstance(correction, Rejection):
            return correction
        on_film(correction.box, self.original.grid)
        if correction.claims is None:
            return replace(correction, confirmed=False, check=None)
        check = self.check(correction.box, correction.claims)
        if check.mismatch and not confirmed:
            raise ConceptMismatchError(check)
        return replace(correction, confirmed=confirmed, check=check)


def _row(batch: Tensor) -> list[float]:
    values: list[float] = batch[0].tolist()
    return values
