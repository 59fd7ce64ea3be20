"""What the figures mean, in words: better than blind pointing or not, and what to beware of."""

from dataclasses import dataclass
from typing import Any

from medgrape.evaluation.classification import Classification
from medgrape.evaluation.dispersion import Dispersion
from medgrape.evaluation.localisation import HitRate, Localisation, Pointing
from medgrape.evaluation.safety_check import MAJORITY, Interaction
from medgrape.evaluation.statistics import Interval

DECIMALS = 3


@dataclass(frozen=True)
class Verdict:
    """A sign and a word, so that colour alone never tells."""

    kind: str
    sign: str
    word: str


BETTER = Verdict("better", "▲", "better")
WORSE = Verdict("worse", "▼", "worse")
UNCLEAR = Verdict("unclear", "≈", "not clearly different")
UNKNOWN = Verdict("unknown", "–", "nothing to compare with")


def versus_fixed(pointing: dict[str, Any] | None) -> Verdict:
    """Whether the mean map points better than the fixed prior: its interval must lie wholly on one side of it."""
    if pointing is None or pointing["fixed"] is None:
        return UNKNOWN
    bounds, fixed = pointing["mean"]["interval"], pointing["fixed"]
    if bounds is None or bounds["low"] <= fixed <= bounds["high"]:
        return UNCLEAR
    return BETTER if bounds["low"] > fixed else WORSE


def shown(value: float | None) -> str:
    """A share as people read it."""
    return "–" if value is None else f"{value:.{DECIMALS}f}"


def headline(
    classification: Classification, localisation: Localisation, interaction: Interaction | None = None
) -> tuple[str, ...]:
    """The result in plain sentences, each with what the trivial answer gets."""
    told = f"Macro-F1 {shown(classification.macro_f1)}{_within(classification.interval)}; "
    if classification.majority is None:
        told += "there are no training films that would tell a trivial answer."
    else:
        trivial = classification.majority
        told += f"always answering '{trivial.answer}' gives {shown(trivial.macro_f1)}."
    pointing = () if localisation.per_pair is None else (_pointing_sentence(localisation.per_pair),)
    return told, *pointing, *_safety_sentence(interaction)


def cautions(
    split: str,
    classification: Classification,
    localisation: Localisation,
    prototypes: Dispersion,
    interaction: Interaction | None = None,
) -> tuple[str, ...]:
    """What makes the figures worth less than they seem."""
    told = []
    if split != "test":
        told.append(f"These are {split} films: the model has learnt from them or was chosen on them.")
    trivial = classification.majority
    if trivial is not None and classification.macro_f1 <= trivial.macro_f1:
        told.append(f"The classes are named no better than by always answering '{trivial.answer}'.")
    if _no_better(localisation.per_pair):
        told.append("The concept maps point no better than one fixed point for each concept, learnt without looking.")
    if interaction is not None and _no_safer(interaction):
        told.append("The safety check tells wrong boxes from right ones no better than always giving one answer.")
    if prototypes.collapsed:
        told.append("The prototypes of a concept are as good as one vector: their disagreement means nothing.")
    return tuple(told)


def _no_better(pointing: Pointing | None) -> bool:
    return pointing is not None and pointing.fixed is not None and pointing.mean.share <= pointing.fixed


def _no_safer(interaction: Interaction) -> bool:
    trivial, check = interaction.named(MAJORITY), interaction.main
    if trivial is None or trivial.balanced is None or check.balanced is None:
        return False
    return check.balanced.share <= trivial.balanced.share


def _safety_sentence(interaction: Interaction | None) -> tuple[str, ...]:
    """What the check that the run uses is worth, and what the trivial one gets."""
    check = None if interaction is None else interaction.main
    if interaction is None or check is None or check.caught is None or check.false_alarms is None:
        return ()
    told = (
        f"The safety check, {check.title}, warns at {shown(check.caught.share)}{_within(check.caught.interval)} of "
        f"wrong claims on {interaction.boxes:,} boxes and at {shown(check.false_alarms.share)}"
        f"{_within(check.false_alarms.interval)} of right ones"
    )
    trivial = interaction.named(MAJORITY)
    if trivial is None or trivial.caught is None or trivial.false_alarms is None:
        return (f"{told}.",)
    shares = f"{shown(trivial.caught.share)} and {shown(trivial.false_alarms.share)}"
    return (f"{told}; {trivial.title}, without looking, at {shares}.",)


def _within(bounds: Interval | None) -> str:
    return "" if bounds is None else f" (95 % interval {shown(bounds.low)} to {shown(bounds.high)})"


def _pointing_sentence(pointing: Pointing) -> str:
    rate: HitRate = pointing.mean
    fixed = f"one fixed point for each concept {shown(pointing.fixed)}" if pointing.fixed is not None else (
        "training has no box that a fixed point could be learnt from")  # fmt: skip
    return (
        f"The mean maps point into the finding on {shown(rate.share)}{_within(rate.interval)} of {pointing.count:,} "
        f"film-concept pairs; a random point gets {shown(pointing.chance)}, {fixed}."
    )
