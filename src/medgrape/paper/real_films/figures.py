"""The figures of one row, by name: plain numbers, each with the trivial answer's beside it."""

from collections.abc import Iterator

from medgrape.datasets.dataset import SPLITS, Dataset
from medgrape.evaluation.few_shot import VocabularyTrial
from medgrape.evaluation.localisation import Pointing
from medgrape.evaluation.report import Evaluation
from medgrape.evaluation.safety_check import CALIBRATED, MAJORITY, CheckFigures, ConceptAlarms, Interaction, Rate

ALL = "all"
"""In place of a concept's name: film-concept pairs of all concepts together."""
TOLD_APART = ("active_tb", "obsolete_tb")
LEFT_OUT = "obsolete_tb"
Figures = dict[str, float | None]
"""Name, in dotted parts, to figure; None where it is not defined."""


def film_figures(dataset: Dataset, evaluation: Evaluation) -> Figures:
    """How many films taught, chose and tested the model."""
    counts: Figures = {f"films.{split}": len(dataset.in_split(split)) for split in SPLITS}
    return counts | {"films.read": evaluation.films.read, "films.with_boxes": evaluation.films.with_boxes}


def box_figures(evaluation: Evaluation, trial: VocabularyTrial) -> Figures:
    """TBX11K: where the maps point, whether the safety check warns, and a finding learnt from one film."""
    localisation, interaction = evaluation.localisation, evaluation.interaction
    found = dict(_pointing(ALL, localisation.per_pair))
    for concept in localisation.concepts:
        found |= dict(_pointing(concept.name, concept.pointing))
    if interaction is not None:
        found |= _safety("safety", interaction.named(CALIBRATED)) | _safety("majority", interaction.named(MAJORITY))
        found["telling_apart"] = _told_apart(interaction)
    return found | one_shot_figures(trial)


def label_figures(evaluation: Evaluation) -> Figures:
    """NIH: classes and concepts of whole films."""
    classes, detection = evaluation.classification, evaluation.detection
    found: Figures = {
        "macro_f1": classes.macro_f1,
        "majority.macro_f1": None if classes.majority is None else classes.majority.macro_f1,
        "auc.all": detection.mean_auc,
    }
    for concept in detection.concepts:
        found |= {f"auc.{concept.name}": concept.auc, f"present.{concept.name}": concept.present}
    return found


def _pointing(name: str, pointing: Pointing | None) -> Iterator[tuple[str, float | None]]:
    if pointing is None:
        return
    shown = {
        "pairs": pointing.count, "mean": pointing.mean.share, "max": pointing.maximum.share,
        "cam": None if pointing.cam is None else pointing.cam.share, "chance": pointing.chance, "fixed": pointing.fixed,
    }  # fmt: skip
    for figure, value in shown.items():
        yield f"pointing.{name}.{figure}", value


def _safety(check: str, found: CheckFigures | None) -> Figures:
    if found is None:
        return {}
    figures: Figures = {f"{check}.balanced": _share(found.balanced)}
    named: dict[str, CheckFigures | ConceptAlarms] = {ALL: found} | {one.name: one for one in found.concepts}
    for name, alarms in named.items():
        figures[f"{check}.{name}.caught"] = _share(alarms.caught)
        figures[f"{check}.{name}.false_alarms"] = _share(alarms.false_alarms)
    return figures


def _share(rate: Rate | None) -> float | None:
    return None if rate is None else rate.share


def _told_apart(interaction: Interaction) -> float | None:
    pairs = interaction.telling_apart.pairs
    return next((pair.auc for pair in pairs if (pair.name, pair.against) == TOLD_APART), None)


def one_shot_figures(trial: VocabularyTrial) -> Figures:
    """The finding that was left out, learnt again from one film: where it points, and its share of full supervision."""
    tried = next((one for one in trial.concepts if one.name == LEFT_OUT), None)
    if tried is None:
        return {}
    mean = tried.shots[0].pointing.mean
    return {
        "one_shot.pointing": mean,
        "one_shot.full": tried.full,
        "one_shot": mean / tried.full if tried.full else None,
    }
