"""Measurements on a trained model for the paper's tables: one function for each kind of job."""

import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.baselines.mc_dropout import PASSES, box_uncertainty, quantile_threshold
from medgrape.datasets.cache import CachedFilms, cached_films
from medgrape.datasets.dataset import Dataset, check_concepts
from medgrape.evaluation.classification import Classification, calibration, classify, detect
from medgrape.evaluation.dispersion import dispersion
from medgrape.evaluation.evaluate import Loaded, read_split
from medgrape.evaluation.examples import evenly_spaced
from medgrape.evaluation.faithfulness import answer_of, faithfulness, random_order, saliency_of
from medgrape.evaluation.few_shot import TrialPlan, leave_one_out
from medgrape.evaluation.localisation import Localisation, Pointing, box_energies, localise
from medgrape.evaluation.readings import EvaluationError, Readings, true_classes
from medgrape.evaluation.safety_check import check_figures
from medgrape.evaluation.statistics import ROUNDS as RESAMPLINGS
from medgrape.evaluation.statistics import interval
from medgrape.progress import Track
from medgrape.runs.checkpoint import LoadedRun, Run, SafetyRule
from medgrape.safety.boxes import measure_boxes
from medgrape.safety.claims import Alarms, SimulatedClaims, alarms, majority_alarms, most_frequent_concept

Figures = dict[str, Any]  # name, in dotted parts, to figure; None if the figure is not defined

BINS = 80  # of the histograms of cosines, from -1 to 1


def measure_films(loaded: Loaded, data: Path, track: Track) -> Figures:
    """Return classes, calibration, pointing, box energy, geometry of prototypes, and the answer for each test film."""
    readings = read_split(loaded, Dataset.load(data), data, "test", track).readings
    classes, places, probabilities = classify(readings), localise(readings), calibration(readings)
    constant = probabilities.constant
    figures = _class_figures(classes) | {
        "ece": probabilities.expected_error,
        "constant.ece": None if constant is None else constant.expected_error,
        "brier": probabilities.brier,
        "constant.brier": None if constant is None else constant.brier,
        "auc": detect(readings).mean_auc,
    }
    pointings = {"pair": places.per_pair, "film": places.per_film}
    pointings |= {f"concept.{concept.name}": concept.pointing for concept in places.concepts}
    for name, pointing in pointings.items():
        if pointing is not None:
            counts = {"count": pointing.count, "hits": pointing.mean.hits}
            figures |= {f"pointing.{name}.{key}": value for key, value in (counts | pointing_shares(pointing)).items()}
    energies = box_energies(readings)
    if energies:
        figures["energy"] = float(np.mean([energy.share for energy in energies]))
        figures["energy.flat"] = float(np.mean([energy.area for energy in energies]))
    if isinstance(loaded.run, Run):
        figures |= _geometry(loaded.run)
    return figures | {"confusion": classes.confusion, "by_film": _by_film(readings, places)}


def _class_figures(classes: Classification) -> Figures:
    majority = classes.majority
    figures = {
        "films": classes.films,
        "majority": None if majority is None else majority.answer,
        "macro_f1": classes.macro_f1,
        "accuracy": classes.accuracy,
        "majority.macro_f1": None if majority is None else majority.macro_f1,
        "majority.accuracy": None if majority is None else majority.accuracy,
    }
    for one_class in classes.classes:
        trivial = None
        if majority is not None and one_class.support:
            share = one_class.support / classes.films
            trivial = 2 * share / (1 + share) if one_class.name == majority.answer else 0.0
        figures |= {f"f1.{one_class.name}": one_class.f1, f"majority.f1.{one_class.name}": trivial}
    return figures


def pointing_shares(pointing: Pointing) -> dict[str, float | None]:
    """Return the shares of hits of all kinds of maps, and of the trivial baselines."""
    return {
        "mean": pointing.mean.share, "max": pointing.maximum.share,
        "cam": None if pointing.cam is None else pointing.cam.share, "chance": pointing.chance,
        "fixed": pointing.fixed,
    }  # fmt: skip


@torch.no_grad()
def _geometry(run: Run) -> Figures:
    """Cosines of the prototypes of a concept with each other and with its text."""
    prototypes = run.grape.atlas.prototypes.detach()
    spread = dispersion(prototypes)
    products = torch.einsum("kmd,knd->kmn", prototypes, prototypes)
    upper = torch.triu(torch.ones(products.shape[1:], dtype=torch.bool), diagonal=1)
    figures: Figures = {
        "parameters.head": sum(weights.numel() for weights in run.grape.head.parameters()),
        "cosine.within": spread.within,
        "cosine.between": spread.between,
        "histogram.within": _histogram(products[:, upper].flatten()),
    }
    if run.grape.anchors is not None:
        anchors = run.grape.anchors()[: len(prototypes)]
        cosines = torch.einsum("kmd,kd->km", prototypes, anchors).flatten()
        figures |= {
            "cosine.anchor": float(cosines.mean()),
            "cosine.anchor.sd": float(cosines.std()),
            "histogram.anchor": _histogram(cosines),
        }
    return figures


def _histogram(values: Float[Tensor, " n"]) -> list[float]:
    """The share of the values in each bin."""
    counts = torch.histc(values.clamp(-1.0, 1.0), bins=BINS, min=-1.0, max=1.0)
    return [float(share) for share in counts / max(len(values), 1)]


def _by_film(readings: Readings, places: Localisation) -> Figures:
    """The answer for each film, so that methods can be compared film by film."""
    return {
        "classes": readings.dataset.classes,
        "patients": [film.patient or film.id for film in readings.films],
        "truth": true_classes(readings).tolist(),
        "answers": readings.probabilities.argmax(axis=1).tolist(),
        "pairs": [
            {"film": pair.film, "concept": pair.concept, "hit": pair.mean.hit, "fixed": pair.fixed}
            for pair in places.pairs
        ],
        "films": [film.id for film in readings.films],
    }


def measure_faithfulness(loaded: Loaded, data: Path, films: int, track: Track) -> Figures:
    """Return insertion and deletion AUC on some test films, beside those of a random order of patches."""
    dataset, model = Dataset.load(data), loaded.run.model
    cached = cached_films(loaded.run.config, dataset, data, track)
    tested = [place for place in cached.readable() if dataset.pictured[place].split == "test"]
    chosen = evenly_spaced(tested, films)
    greys = torch.from_numpy(cached.stack(chosen))
    answer, saliency = answer_of(model), saliency_of(model, greys)
    salient = faithfulness(answer, greys, saliency, track=track)
    random = faithfulness(answer, greys, random_order(len(greys), (saliency.shape[1], saliency.shape[2])), track=track)
    records = [dataset.pictured[place] for place in chosen]
    by_film: Figures = {"patients": [film.patient or film.id for film in records]}
    figures: Figures = {"films": len(chosen), "by_film": by_film}
    for order, result in (("own", salient), ("random", random)):
        for kind in ("deletion", "insertion"):
            areas = getattr(result, kind)
            by_film[f"{order}.{kind}"] = areas.tolist()
            figures[f"{order}.{kind}"] = float(areas.mean())
            figures[f"{order}.{kind}.curve"] = getattr(result, f"{kind}_curves").mean(axis=0).tolist()
    return figures


FEW_SHOT_FILMS = (0, 1, 5, 20)


def measure_few_shot(loaded: LoadedRun, data: Path, draws: int, track: Track) -> Figures:
    """Return the pointing game after learning from few films; a warning instead if no concept can be left out."""
    try:
        return leave_one_out(loaded, data, TrialPlan(FEW_SHOT_FILMS, draws), track=track).to_json()
    except EvaluationError as error:
        return {"concepts": [], "warnings": [str(error)]}


BATCHES = (1, 8, 32)
WARM, ROUNDS = 3, 30


@torch.no_grad()
def measure_latency(linear: LoadedRun, graph: LoadedRun) -> Figures:
    """Return milliseconds from film to classes with both heads, timed in turns: other load affects both equally."""
    side = linear.run.config.preprocessing.size
    figures: Figures = {
        "threads": torch.get_num_threads(), "backbone": linear.run.config.backbone.name, "side": side
    }  # fmt: skip
    for batch in BATCHES:
        films = torch.rand(batch, 1, side, side, generator=torch.Generator().manual_seed(0))
        milliseconds: dict[str, list[float]] = {"linear": [], "graph": []}
        for turn in range(WARM + ROUNDS):
            for name, loaded in (("linear", linear), ("graph", graph)):
                began = time.perf_counter()
                loaded.run.grape(films)
                if turn >= WARM:
                    milliseconds[name].append(1e3 * (time.perf_counter() - began))
        for name, times in milliseconds.items():
            statistics = {
                "mean": np.mean(times), "sd": np.std(times, ddof=1), "p95": np.quantile(times, 0.95),
                "median": np.median(times), "film": 1e3 * np.mean(times) / batch,
            }  # fmt: skip
            figures |= {f"{batch}.{name}.{key}": float(value) for key, value in statistics.items()}
        figures[f"{batch}.overhead"] = figures[f"{batch}.graph.median"] / figures[f"{batch}.linear.median"] - 1
    return figures


ETAS = (0.01, 0.03, 0.05, 0.10, 0.20)
GATES = (math.inf, 1e-3, 5e-4, 2e-4, 1e-4)
RATES = (0.0, 0.10, 0.25, 0.50, 1.0)  # shares of the boxes that are claimed wrongly
ETA = 0.05


def measure_safety(loaded: LoadedRun, data: Path, track: Track) -> Figures:
    """Return the rates of all safety checks on the boxes of the test films; empty if they have no boxes."""
    run, dataset = loaded.run, Dataset.load(data)
    check_concepts(run.concepts, dataset)
    cached = cached_films(run.config, dataset, data, track)
    looks = measure_boxes(run, dataset, cached, "test", track)
    if not looks:
        return {}
    claims = SimulatedClaims.on(looks, dataset)
    rules = {f"eta.{eta:.2f}": SafetyRule.plain(eta, math.inf) for eta in ETAS}
    rules |= {f"gate.{gate:g}": SafetyRule.plain(ETA, gate) for gate in GATES}
    if run.safety is not None:
        rules["calibrated"] = SafetyRule.of(run)
    ungated = rules["mean"] = SafetyRule.plain(ETA, math.inf)
    checks = {name: alarms(looks, run.concepts, dataset.concepts, rule) for name, rule in rules.items()}
    highest = measure_boxes(run, dataset, cached, "test", track, highest=True)
    checks["max"] = alarms(highest, run.concepts, dataset.concepts, ungated)
    answer = most_frequent_concept(dataset)
    if answer is not None:
        checks["majority"] = majority_alarms(answer, claims)
    validation = measure_boxes(run, dataset, cached, "val", track)
    if validation:
        validation_alarms = alarms(validation, run.concepts, dataset.concepts, ungated)
        bound = float(SimulatedClaims.on(validation, dataset).false_alarms(validation_alarms).mean())
        checks |= _dropout(run, dataset, cached, bound, track)
    return {
        "boxes": len(looks),
        "patients": len({box.patient for box in looks}),
        "passes": PASSES,
        "commonest": answer,
        "checks": {name: asdict(check_figures(name, name, claims, alarm)) for name, alarm in checks.items()},
        "rates": [miscorrected(claims, checks["mean"], rate) for rate in RATES],
        "majority_rates": [miscorrected(claims, checks["majority"], rate) for rate in RATES] if answer else [],
    }


def _dropout(run: Run, dataset: Dataset, cached: CachedFilms, bound: float, track: Track) -> dict[str, Alarms]:
    """The alarms of MC-dropout, with thresholds that give at most ``bound`` false alarms on validation boxes."""
    validation, test = (box_uncertainty(run, dataset, cached, split, track) for split in ("val", "test"))
    bound = min(bound, 1 - 1 / max(len(validation), 1))
    claimed = [run.concepts.index(name) for name in dataset.concepts.names]
    undecided = test.entropy > quantile_threshold(validation.entropy, bound)
    return {
        "dropout.variance": test.variance[:, claimed] > quantile_threshold(validation.variance_of_truth, bound),
        "dropout.entropy": np.tile(undecided[:, None], (1, len(claimed))),
    }


def miscorrected(claims: SimulatedClaims, warned: Alarms, rate: float) -> Figures:
    """Return shares caught and false alarms if a share ``rate`` of the boxes, drawn at random, is claimed wrongly.

    Shares are means over all rounds. Each round also draws the patients anew, which the intervals include.
    """
    chance = np.random.default_rng(0)
    names, owner = np.unique([film.patient or film.id for film in claims.films], return_inverse=True)
    possible, boxes = claims.wrong.any(axis=1), np.arange(len(claims.truth))
    shares: dict[str, list[float]] = {"caught": [], "false_alarms": []}
    for _ in range(RESAMPLINGS):
        times = np.bincount(chance.integers(len(names), size=len(names)), minlength=len(names))[owner]
        wrong = np.where(claims.wrong, chance.random(claims.wrong.shape), -1.0).argmax(axis=1)
        mistaken = (chance.random(len(boxes)) < rate) & possible
        alarm = warned[boxes, np.where(mistaken, wrong, claims.truth)]
        for key, counted in (("caught", mistaken), ("false_alarms", ~mistaken)):
            if times[counted].sum():
                shares[key].append(float((alarm * times)[counted].sum() / times[counted].sum()))
    figures: Figures = {"rate": rate, "caught": None, "false_alarms": None}
    for key, values in shares.items():
        if values:
            bounds = interval(np.array(values))
            figures[key] = {"mean": float(np.mean(values)), "low": bounds.low, "high": bounds.high}
    return figures
