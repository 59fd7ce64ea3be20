"""The results in plain sentences: headline, warnings, and verdicts against the trivial baselines."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from medgrape.evaluation.classification import Classification
from medgrape.evaluation.dispersion import Dispersion
from medgrape.evaluation.localisation import Localisation, Pointing
from medgrape.evaluation.safety_check import MAJORITY, SafetyCheckResults
from medgrape.evaluation.statistics import Interval


@dataclass(frozen=True)
class Verdict:
    """The result of a comparison as a symbol and a word, so that it does not depend on colour."""

    css_class: str
    symbol: str
    word: str


BETTER = Verdict("better", "▲", "better")
WORSE = Verdict("worse", "▼", "worse")
UNCLEAR = Verdict("unclear", "≈", "not clearly different")
UNKNOWN = Verdict("unknown", "–", "nothing to compare with")


def versus_fixed(pointing: dict[str, Any] | None) -> Verdict:
    """Compare the mean map with the fixed point, which must lie outside the map's interval."""
    if pointing is None or pointing["fixed"] is None:
        return UNKNOWN
    bounds, fixed = pointing["mean"]["interval"], pointing["fixed"]
    if bounds is None or bounds["low"] <= fixed <= bounds["high"]:
        return UNCLEAR
    return BETTER if bounds["low"] > fixed else WORSE


def format_figure(value: float | None) -> str:
    """Format a figure with three decimals, or as a dash if it is undefined."""
    return "–" if value is None else f"{value:.3f}"


def headline(
    classification: Classification, localisation: Localisation, safety: SafetyCheckResults | None = None
) -> tuple[str, ...]:
    """Return the main results as sentences, each with the result of the trivial baseline."""
    trivial = classification.majority
    comparison = (
        "there are no training films that would tell a trivial answer."
        if trivial is None
        else f"always answering '{trivial.answer}' gives {format_figure(trivial.macro_f1)}."
    )
    macro_f1 = f"Macro-F1 {format_figure(classification.macro_f1)}{_format_interval(classification.interval)}"
    sentences = [f"{macro_f1}; {comparison}"]
    if localisation.per_pair is not None:
        sentences.append(_pointing_sentence(localisation.per_pair))
    if safety is not None:
        sentences.extend(_safety_sentences(safety))
    return tuple(sentences)


def film_warnings(refused: int, known: int, films: int, remark: str = "") -> Iterator[str]:
    """Yield what is wrong with the films themselves."""
    if refused:
        yield f"Films that could not be read, and count nowhere: {refused:,}."
    if known:
        yield f"{known:,} of the {films:,} films were learnt from, or the model was chosen on them{remark}."


def cautions(
    split: str,
    classification: Classification,
    localisation: Localisation,
    prototypes: Dispersion,
    safety: SafetyCheckResults | None = None,
) -> Iterator[str]:
    """Yield the reasons to distrust the figures."""
    if split != "test":
        yield f"These are {split} films: the model has learnt from them or was chosen on them."
    trivial, pointing = classification.majority, localisation.per_pair
    if trivial is not None and classification.macro_f1 <= trivial.macro_f1:
        yield f"The classes are named no better than by always answering '{trivial.answer}'."
    if pointing is not None and pointing.fixed is not None and pointing.mean.share <= pointing.fixed:
        yield "The concept maps point no better than one fixed point for each concept, learnt without looking."
    if safety is not None and _is_no_better_than_majority(safety):
        yield "The safety check tells wrong boxes from right ones no better than always giving one answer."
    if prototypes.collapsed:
        yield "The prototypes of a concept are as good as one vector: their disagreement means nothing."


def _is_no_better_than_majority(safety: SafetyCheckResults) -> bool:
    trivial, check = safety.named(MAJORITY), safety.main
    if trivial is None or trivial.balanced is None or check.balanced is None:
        return False
    return check.balanced.share <= trivial.balanced.share


def _safety_sentences(safety: SafetyCheckResults) -> Iterator[str]:
    """Describe the run's own check beside the trivial one, if both of its shares are defined."""
    check, trivial = safety.main, safety.named(MAJORITY)
    if check.caught is None or check.false_alarms is None:
        return
    sentence = (
        f"The safety check, {check.title}, warns at "
        f"{format_figure(check.caught.share)}{_format_interval(check.caught.interval)} of "
        f"wrong claims on {safety.boxes:,} boxes and at {format_figure(check.false_alarms.share)}"
        f"{_format_interval(check.false_alarms.interval)} of right ones"
    )
    if trivial is not None and trivial.caught is not None and trivial.false_alarms is not None:
        shares = f"{format_figure(trivial.caught.share)} and {format_figure(trivial.false_alarms.share)}"
        sentence += f"; {trivial.title}, without looking, at {shares}"
    yield f"{sentence}."


def _format_interval(bounds: Interval | None) -> str:
    return "" if bounds is None else f" (95 % interval {format_figure(bounds.low)} to {format_figure(bounds.high)})"


def _pointing_sentence(pointing: Pointing) -> str:
    rate, fixed = pointing.mean, "training has no box that a fixed point could be learnt from"
    if pointing.fixed is not None:
        fixed = f"one fixed point for each concept {format_figure(pointing.fixed)}"
    return (
        f"The mean maps point into the finding on {format_figure(rate.share)}{_format_interval(rate.interval)} of "
        f"{pointing.count:,} film-concept pairs; a random point gets {format_figure(pointing.chance)}, {fixed}."
    )
