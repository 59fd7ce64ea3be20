"""One film in front of one model and one person. Immutable: a correction gives a new study, and the old one stays."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from medgrape.data.film import Film
from medgrape.errors import UserError
from medgrape.explain.assembling import explain
from medgrape.explain.explanation import DrawnBox, Explanation
from medgrape.feedback.correction import BoxCorrection, Correction, Rejection
from medgrape.feedback.moving import Moves, moves
from medgrape.feedback.revise import rejected, revise, revised_scores
from medgrape.feedback.safety import SafetyCheck, SafetyRule, check_box, on_film
from medgrape.geometry import Box
from medgrape.model.checkpoint import Run
from medgrape.model.evidence import Evidence
from medgrape.model.grape import Prediction
from medgrape.once import once


class ConceptMismatchError(UserError):
    """A box inside which the model sees something else, and which nobody has confirmed yet."""

    def __init__(self, check: SafetyCheck) -> None:
        super().__init__(f"{check.reason} Nothing was changed; to apply the box all the same, say confirmed=True.")
        self.check = check


class NothingToUndoError(UserError):
    """A study that nobody corrected."""


@dataclass(frozen=True)
class Study:
    """A film, what the model found on it, what a person said to that, and what comes of both."""

    run: Run
    film: Film
    """Whole, upright, in its original pixels."""
    original: Evidence
    """As the model saw it, before any correction."""
    corrections: tuple[Correction, ...] = ()
    """The first one first. What they do together does not depend on their order."""
    before: "Study | None" = field(default=None, repr=False)
    """The study without the last correction."""

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
            accepted = study._accepted(correction, confirmed=confirmed)
            study = replace(study, corrections=(*study.corrections, accepted), before=study)
        return study

    def resumed(self, accepted: Iterable[Correction]) -> "Study":
        """A study with corrections that were accepted at an earlier sitting, as they were accepted then."""
        study = self
        for correction in accepted:
            study = replace(study, corrections=(*study.corrections, correction), before=study)
        return study

    def undo(self) -> "Study":
        """The study without the last correction: the very one that it was made from."""
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
        """What was corrected and what it did, the first correction first: plain data, ready for JSON."""
        steps: list[dict[str, Any]] = []
        study = self
        while study.before is not None:
            shares = {"prediction_before": study.before.prediction, "prediction_after": study.prediction}
            steps.append(study.corrections[-1].to_json() | {name: dict(share) for name, share in shares.items()})
            study = study.before
        return steps[::-1]

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
