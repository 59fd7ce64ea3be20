"""What the jobs measure, on a small trained run."""

import math

import numpy as np
import pytest

from medgrape.baselines.mc_dropout import box_uncertainty, quantile_threshold
from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset
from medgrape.paper.measures.films import measure_films
from medgrape.paper.measures.methods import measure_faithfulness, measure_latency
from medgrape.paper.measures.pictures import draw_pictures
from medgrape.paper.measures.safety import ETAS, GATES, RATES, _miscorrected, measure_safety
from medgrape.progress import quietly
from medgrape.runs.checkpoint import SafetyRule, load_run
from medgrape.safety.boxes import look
from medgrape.safety.claims import Claims, alarms


@pytest.fixture(scope="module")
def loaded(trained_run):
    return load_run(trained_run)


@pytest.fixture(scope="module")
def safety(loaded, drawn_dataset):
    return measure_safety(loaded, drawn_dataset, quietly)


def test_a_higher_lead_and_a_lower_gate_never_warn_more(safety):
    checks = safety["checks"]
    for names in ([f"eta.{eta:.2f}" for eta in ETAS], [f"gate.{gate:g}" for gate in GATES]):
        for figure in ("caught", "false_alarms"):
            shares = [checks[name][figure]["share"] for name in names]
            assert shares == sorted(shares, reverse=True)
    assert checks["eta.0.05"]["caught"] == checks["gate.inf"]["caught"] == checks["mean"]["caught"]


def test_without_mistakes_nothing_is_caught_and_with_nothing_else_no_alarm_is_false(safety):
    first, *_, last = safety["rates"]
    assert (first["rate"], first["caught"]) == (0.0, None)
    assert (last["rate"], last["false_alarms"]) == (1.0, None)
    assert len(safety["rates"]) == len(RATES)


def test_miscorrections_are_caught_as_often_as_every_wrong_claim_counted_says(safety):
    """What is drawn a thousand times scatters about what is counted."""
    for told in safety["rates"][1:]:
        counted = safety["checks"]["mean"]["caught"]["share"]
        assert told["caught"]["low"] <= counted <= told["caught"]["high"]
        assert told["caught"]["mean"] == pytest.approx(counted, abs=0.1)


def test_a_check_that_warns_always_catches_everything(loaded, drawn_dataset):
    dataset = Dataset.load(drawn_dataset)
    seen = look(loaded.run, dataset, cached_films(loaded.run.config, dataset, drawn_dataset), "test")
    claims = Claims.on(seen, dataset)
    told = _miscorrected(claims, np.ones_like(claims.wrong), 0.5)
    assert told["caught"] == told["false_alarms"] == {"mean": 1.0, "low": 1.0, "high": 1.0}


def test_dropouts_thresholds_come_from_validation_boxes(loaded, drawn_dataset, safety):
    dataset = Dataset.load(drawn_dataset)
    cached = cached_films(loaded.run.config, dataset, drawn_dataset)
    learnt, tested = (box_uncertainty(loaded.run, dataset, cached, split) for split in ("val", "test"))
    seen = look(loaded.run, dataset, cached, "val")
    rule = SafetyRule.plain(0.05, math.inf)
    bound = Claims.on(seen, dataset).false_alarms(alarms(seen, loaded.run.concepts, dataset.concepts, rule)).mean()
    for variant, values in (("variance", "variance_of_truth"), ("entropy", "entropy")):
        limit = quantile_threshold(getattr(learnt, values), min(bound, 1 - 1 / len(learnt)))
        assert (getattr(learnt, values) > limit).mean() <= bound
        found = safety["checks"][f"dropout.{variant}"]["false_alarms"]["share"]
        assert found == pytest.approx((getattr(tested, values) > limit).mean())


def test_the_highest_value_in_a_box_is_no_less_than_the_mean(loaded, drawn_dataset):
    dataset = Dataset.load(drawn_dataset)
    cached = cached_films(loaded.run.config, dataset, drawn_dataset)
    mean, highest = (look(loaded.run, dataset, cached, "test", highest=choice) for choice in (False, True))
    for one, other in zip(mean, highest, strict=True):
        assert (other.means >= one.means - 1e-6).all()
        assert one.variances.equal(other.variances)


def test_reading_once_gives_figures_histograms_and_what_was_said_of_each_film(loaded, drawn_dataset):
    told = measure_films(loaded, drawn_dataset, quietly)
    dataset = Dataset.load(drawn_dataset)
    assert told["films"] == len(dataset.in_split("test")) == len(told["by_film"]["answers"])
    assert math.isclose(sum(told["histogram.within"]), 1.0, abs_tol=1e-6)
    assert math.isclose(sum(told["histogram.anchor"]), 1.0, abs_tol=1e-6)
    right = [
        truth == answer for truth, answer in zip(told["by_film"]["truth"], told["by_film"]["answers"], strict=True)
    ]
    assert told["accuracy"] == pytest.approx(np.mean(right))
    hits = [pair["hit"] for pair in told["by_film"]["pairs"]]
    assert told["pointing.pair.mean"] == pytest.approx(np.mean(hits))
    assert 0 < told["energy.flat"] < 1


def test_faithfulness_stands_beside_a_random_order(loaded, drawn_dataset):
    told = measure_faithfulness(loaded, drawn_dataset, 3, quietly)
    assert told["films"] == 3
    for kind in ("deletion", "insertion"):
        assert 0 <= told[f"own.{kind}"] <= 1
        assert told[f"own.{kind}"] != told[f"random.{kind}"]


def test_latency_tells_the_overhead_of_medians(loaded):
    told = measure_latency(loaded, loaded)
    for batch in (1, 8, 32):
        ratio = told[f"{batch}.graph.median"] / told[f"{batch}.linear.median"] - 1
        assert told[f"{batch}.overhead"] == pytest.approx(ratio)


def test_pictures_are_drawn_of_films_that_a_rule_chooses(loaded, drawn_dataset, tmp_path):
    told = draw_pictures({"one": loaded, "other": loaded}, drawn_dataset, tmp_path, loaded)
    assert {one["file"] for one in told["pictures"]} >= {
        "pictures-maps.jpg",
        "pictures-points.jpg",
        "pictures-correction.jpg",
    }
    assert all((tmp_path / one["file"]).stat().st_size > 10_000 for one in told["pictures"])
    again = draw_pictures({"one": loaded, "other": loaded}, drawn_dataset, tmp_path / "again", loaded)
    assert again == told
