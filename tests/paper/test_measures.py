"""What the jobs measure, on a small trained run."""

import math

import numpy as np
import pytest

from medgrape.baselines.mc_dropout import box_uncertainty, quantile_threshold
from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset
from medgrape.paper.measures import (
    ETAS,
    GATES,
    RATES,
    measure_faithfulness,
    measure_films,
    measure_latency,
    measure_safety,
    miscorrected,
)
from medgrape.paper.pictures import draw_methods
from medgrape.progress import quietly
from medgrape.runs.checkpoint import SafetyRule, load_run
from medgrape.safety.boxes import measure_boxes
from medgrape.safety.claims import SimulatedClaims, alarms


@pytest.fixture(scope="module")
def loaded(trained_run):
    return load_run(trained_run)


@pytest.fixture(scope="module")
def safety(loaded, drawn_dataset):
    return measure_safety(loaded, drawn_dataset, quietly)


def test_a_higher_lead_and_a_lower_gate_never_warn_more(safety):
    checks = safety["checks"]
    for names in ([f"eta.{eta:.2f}" for eta in ETAS], [f"gate.{gate:g}" for gate in GATES]):
        for key in ("caught", "false_alarms"):
            shares = [checks[name][key]["share"] for name in names]
            assert shares == sorted(shares, reverse=True)
    assert checks["eta.0.05"]["caught"] == checks["gate.inf"]["caught"] == checks["mean"]["caught"]


def test_without_wrong_boxes_nothing_is_caught_and_with_only_wrong_boxes_no_alarm_is_false(safety):
    first, *_, last = safety["rates"]
    assert (first["rate"], first["caught"]) == (0.0, None)
    assert (last["rate"], last["false_alarms"]) == (1.0, None)
    assert len(safety["rates"]) == len(RATES)


def test_random_wrong_boxes_are_caught_as_often_as_all_wrong_claims_counted(safety):
    """What is drawn a thousand times scatters about what is counted."""
    for figures in safety["rates"][1:]:
        counted = safety["checks"]["mean"]["caught"]["share"]
        assert figures["caught"]["low"] <= counted <= figures["caught"]["high"]
        assert figures["caught"]["mean"] == pytest.approx(counted, abs=0.1)


def test_a_check_that_always_warns_catches_every_wrong_box(loaded, drawn_dataset):
    dataset = Dataset.load(drawn_dataset)
    seen = measure_boxes(loaded.run, dataset, cached_films(loaded.run.config, dataset, drawn_dataset), "test")
    claims = SimulatedClaims.on(seen, dataset)
    figures = miscorrected(claims, np.ones_like(claims.wrong), 0.5)
    assert figures["caught"] == figures["false_alarms"] == {"mean": 1.0, "low": 1.0, "high": 1.0}


def test_dropouts_thresholds_come_from_validation_boxes(loaded, drawn_dataset, safety):
    dataset = Dataset.load(drawn_dataset)
    cached = cached_films(loaded.run.config, dataset, drawn_dataset)
    learnt, tested = (box_uncertainty(loaded.run, dataset, cached, split) for split in ("val", "test"))
    seen = measure_boxes(loaded.run, dataset, cached, "val")
    rule = SafetyRule.plain(0.05, math.inf)
    bound = (
        SimulatedClaims.on(seen, dataset).false_alarms(alarms(seen, loaded.run.concepts, dataset.concepts, rule)).mean()
    )
    for variant, values in (("variance", "variance_of_truth"), ("entropy", "entropy")):
        limit = quantile_threshold(getattr(learnt, values), min(bound, 1 - 1 / len(learnt)))
        assert (getattr(learnt, values) > limit).mean() <= bound
        found = safety["checks"][f"dropout.{variant}"]["false_alarms"]["share"]
        assert found == pytest.approx((getattr(tested, values) > limit).mean())


def test_the_highest_value_in_a_box_is_no_less_than_the_mean(loaded, drawn_dataset):
    dataset = Dataset.load(drawn_dataset)
    cached = cached_films(loaded.run.config, dataset, drawn_dataset)
    mean, highest = (measure_boxes(loaded.run, dataset, cached, "test", highest=choice) for choice in (False, True))
    for average, maximum in zip(mean, highest, strict=True):
        assert (maximum.means >= average.means - 1e-6).all()
        assert average.variances.equal(maximum.variances)


def test_one_reading_gives_figures_histograms_and_the_answer_for_each_film(loaded, drawn_dataset):
    figures = measure_films(loaded, drawn_dataset, quietly)
    dataset = Dataset.load(drawn_dataset)
    assert figures["films"] == len(dataset.in_split("test")) == len(figures["by_film"]["answers"])
    assert math.isclose(sum(figures["histogram.within"]), 1.0, abs_tol=1e-6)
    assert math.isclose(sum(figures["histogram.anchor"]), 1.0, abs_tol=1e-6)
    right = [
        truth == answer
        for truth, answer in zip(figures["by_film"]["truth"], figures["by_film"]["answers"], strict=True)
    ]
    assert figures["accuracy"] == pytest.approx(np.mean(right))
    hits = [pair["hit"] for pair in figures["by_film"]["pairs"]]
    assert figures["pointing.pair.mean"] == pytest.approx(np.mean(hits))
    assert 0 < figures["energy.flat"] < 1


def test_faithfulness_is_measured_with_a_random_order_beside_it(loaded, drawn_dataset):
    figures = measure_faithfulness(loaded, drawn_dataset, 3, quietly)
    assert figures["films"] == 3
    for kind in ("deletion", "insertion"):
        assert 0 <= figures[f"own.{kind}"] <= 1
        assert figures[f"own.{kind}"] != figures[f"random.{kind}"]


def test_latency_reports_the_overhead_of_medians(loaded):
    figures = measure_latency(loaded, loaded)
    for batch in (1, 8, 32):
        ratio = figures[f"{batch}.graph.median"] / figures[f"{batch}.linear.median"] - 1
        assert figures[f"{batch}.overhead"] == pytest.approx(ratio)


def test_pictures_show_films_chosen_by_a_rule(loaded, drawn_dataset, tmp_path):
    figures = draw_methods({"one": loaded, "other": loaded}, drawn_dataset, tmp_path, loaded)
    assert {picture["file"] for picture in figures["pictures"]} >= {
        "pictures-maps.jpg",
        "pictures-points.jpg",
        "pictures-correction.jpg",
    }
    assert all((tmp_path / picture["file"]).stat().st_size > 10_000 for picture in figures["pictures"])
    again = draw_methods({"one": loaded, "other": loaded}, drawn_dataset, tmp_path / "again", loaded)
    assert again == figures
