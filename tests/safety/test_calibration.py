"""Calibration of the safety check: bounded and balanced thresholds."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import medgrape as mg
from command_line import medgrape
from medgrape.concepts import Concept, ConceptSet
from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord, Source, VocabularyError
from medgrape.geometry import Box, FilmSize
from medgrape.runs.checkpoint import SafetyRule, load_run
from medgrape.safety.boxes import MeasuredBox, measure_boxes
from medgrape.safety.calibration import calibrate, keep
from medgrape.safety.check import check_box, check_claim
from medgrape.safety.claims import SimulatedClaims, alarms, majority_alarms, most_frequent_concept
from medgrape.safety.thresholds import (
    CalibrationError,
    CalibrationOptions,
    allowed_alarms,
    conformal_threshold,
    learn_thresholds,
    midpoint_threshold,
    units_needed,
)
from oracles import feedback as slow

NAMES = ("active_tb", "obsolete_tb", "other_tb")
THREE = ConceptSet(tuple(Concept(name, name, "A finding.") for name in NAMES))
BOX = Box(10, 10, 30, 30)
LOOSE = CalibrationOptions(max_false_alarms=0.4, confidence=0.6)
"""What a handful of boxes is enough for."""


def film(number, patient=None, split="val"):
    return FilmRecord(f"f{number}", "", "ill", patient or f"p{number}", FilmSize(100, 100), {}, split)


def box(number, concept, means, *, patient=None, variances=(0.0, 0.0, 0.0), place=BOX):
    return MeasuredBox(film(number, patient), concept, place, torch.tensor(means), torch.tensor(variances))


def dataset(seen, trained=(), concepts=THREE):
    films = (*(one.film for one in seen), *(film(f"train{place}", split="train") for place in range(len(trained))))
    drawn = [DrawnBox(one.film.id, one.concept, one.box) for one in seen]
    drawn += [DrawnBox(f"ftrain{place}", name, BOX) for place, name in enumerate(trained)]
    return Dataset("scene", ("ill",), concepts, Path(), films, tuple(drawn), Source("scene", "nowhere"))


@pytest.fixture(scope="module")
def run(trained_run):
    """Any run whose concepts and settings can be borrowed."""
    return replace(load_run(trained_run).run, concepts=THREE, metrics={})


def measured(run, data, folder):
    """The boxes of the validation films, measured by a run."""
    return measure_boxes(run, data, cached_films(run.config, data, folder), "val")


def thresholds(seen, run, terms=None):
    """What is learnt from these boxes."""
    return learn_thresholds(
        seen, run, SimulatedClaims.on(seen, dataset(seen)), terms or CalibrationOptions(), {"name": "scene"}
    )


@pytest.mark.parametrize(("patients", "bound", "confidence"), [(22, 0.1, 0.9), (60, 0.1, 0.9), (200, 0.05, 0.8)])
def test_false_alarms_stay_below_the_bound_with_the_given_confidence(patients, bound, confidence):
    chance = np.random.default_rng(patients)
    found = [conformal_threshold(chance.random(patients), bound, confidence) for _ in range(4000)]
    rates = 1 - np.array(found)  # of values drawn evenly from 0 to 1

    broken = (rates > bound).mean()
    slack = 3 * np.sqrt((1 - confidence) * confidence / 4000)
    assert broken <= 1 - confidence + slack
    exact = stats.beta.sf(bound, allowed_alarms(patients, bound, confidence) + 1, patients - allowed_alarms(
        patients, bound, confidence))  # fmt: skip
    assert broken == pytest.approx(exact, abs=slack), "and is no stricter than the next patient allows"


def test_one_more_value_above_the_threshold_would_break_the_bound():
    for patients in range(22, 120):
        above = allowed_alarms(patients, 0.1, 0.9)
        assert stats.binom.cdf(above, patients, 0.1) <= 0.1 < stats.binom.cdf(above + 1, patients, 0.1)


def test_values_that_are_all_alike_raise_no_alarm():
    assert conformal_threshold(np.full(30, 0.2), 0.1, 0.9) == 0.2
    assert conformal_threshold(np.full(30, -np.inf), 0.1, 0.9) == 0.0


@pytest.mark.parametrize("bound", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.9, 0.99])
def test_the_fewest_patients_needed_are_just_enough(bound, confidence):
    needed = units_needed(bound, confidence)
    assert conformal_threshold(np.zeros(needed), bound, confidence) is not None
    assert conformal_threshold(np.zeros(needed - 1), bound, confidence) is None


shares = st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3)


@given(shares, st.lists(st.floats(0, 1, width=32), min_size=3, max_size=3), st.sampled_from([-0.3, 0.0, 0.05, 0.5]),
       st.sampled_from([0.0, 0.5, float("inf")]), st.sets(st.sampled_from(NAMES)))  # fmt: skip
@settings(deadline=None)
def test_boxes_in_a_batch_are_judged_like_single_boxes_and_like_the_slow_rule(means, variances, lead, gate, untaught):
    rule = SafetyRule(lambda name: lead * (NAMES.index(name) + 1), gate, frozenset(untaught))
    found = alarms([box(0, "active_tb", means, variances=variances)], THREE, THREE, rule)

    one_by_one = [
        check_claim(torch.tensor(means), torch.tensor(variances), THREE, name, rule).mismatch for name in NAMES
    ]
    assert found[0].tolist() == one_by_one
    rows = {NAMES.index(name) for name in untaught}
    expected = [slow.warns(means, variances, row, rule.lead(name), gate, rows) for row, name in enumerate(NAMES)]
    assert one_by_one == expected


def test_always_answering_active_tb_has_the_rates_on_tbx11k_that_the_paper_reports():
    seen = [box(n, "active_tb" if n < 164 else "obsolete_tb", (0.0, 0.0, 0.0)) for n in range(207)]
    data = dataset(seen, trained=["obsolete_tb", "active_tb", "active_tb"])
    claims = SimulatedClaims.on(seen, data)
    assert most_frequent_concept(data) == "active_tb"
    counted = claims.rates(majority_alarms("active_tb", claims))
    assert counted.false_alarms == pytest.approx(0.208, abs=5e-4)
    assert counted.caught == pytest.approx(0.896, abs=5e-4)


def test_a_claim_is_not_wrong_if_another_box_in_the_same_place_shows_the_claimed_finding():
    here, nearly, apart = box(0, "active_tb", (0.0,) * 3), Box(11, 11, 30, 30), Box(50, 50, 90, 90)
    data = dataset([here])
    data = replace(data, boxes=(*data.boxes, DrawnBox("f0", "obsolete_tb", nearly), DrawnBox("f0", "other_tb", apart)))
    claims = SimulatedClaims.on([here], data)
    assert claims.wrong.tolist() == [[False, False, True]]
    assert claims.left_out == 1


def test_a_finding_with_enough_patients_has_its_own_threshold_and_a_rare_one_the_pooled(run):
    common = [box(n, "active_tb", (0.5, 0.5 + n / 1000, 0.0)) for n in range(40)]
    rare = [box(n, "obsolete_tb", (0.9, 0.2, 0.0)) for n in range(40, 45)]
    learnt = thresholds([*common, *rare], run)
    assert set(learnt.by_concept) == {"active_tb"}
    assert learnt.boxes == {"active_tb": 40, "obsolete_tb": 5, "other_tb": 0}
    assert learnt.lead("active_tb") == pytest.approx(0.038), "one of forty may lie above"
    assert learnt.lead("obsolete_tb") == learnt.lead("other_tb") == learnt.pooled
    assert learnt.pooled == pytest.approx(0.7), "of 45, five lie at 0.7 and one may lie above"


def test_twenty_boxes_of_one_patient_are_one_patient(run):
    boxes = [box(n, "active_tb", (0.5, 0.6, 0.0), patient=f"p{n % 21}") for n in range(420)]
    with pytest.raises(CalibrationError, match=r"boxes of 21 patients.*at least 22"):
        thresholds(boxes, run, CalibrationOptions())


def test_every_box_of_a_patient_may_be_drawn_and_the_same_one_for_the_same_seed(run):
    boxes = [box(n, "active_tb", (0.0, n / 100, 0.0), patient="anna") for n in range(4)]
    drawn = [thresholds(boxes, run, CalibrationOptions(0.9, 0.5, seed=seed)).pooled for seed in range(40)]
    assert {round(lead, 2) for lead in drawn} == {0.0, 0.01, 0.02, 0.03}
    again = [thresholds(boxes, run, CalibrationOptions(0.9, 0.5, seed=seed)).pooled for seed in range(40)]
    assert drawn == again


def test_a_gate_lowers_the_threshold(run):
    boxes = [box(n, "active_tb", (0.1, 0.6, 0.0), variances=(0.0, 0.01, 0.0)) for n in range(30)]
    assert thresholds(boxes, run, CalibrationOptions()).pooled == pytest.approx(0.5)
    assert thresholds(boxes, run, CalibrationOptions(gate=0.001)).pooled == 0.0


def test_a_finding_without_training_films_never_leads(run):
    boxes = [box(n, "active_tb", (0.1, 0.2, 0.9)) for n in range(30)]
    taught = replace(run, metrics={"untrained_concepts": ["other_tb"]})
    assert thresholds(boxes, run, CalibrationOptions()).pooled == pytest.approx(0.8)
    assert thresholds(boxes, taught, CalibrationOptions()).pooled == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("right", "wrong", "lead"),
    [
        ([0.0, 0.1], [0.5, 0.6], 0.3),
        ([-0.4, -0.2], [-0.1, 0.1], -0.15),  # doubted unless the claimed finding leads by 0.15
        ([-0.4, -np.inf], [0.2, -np.inf], -0.1),  # a lead that is not believed says nothing
        ([0.5], [0.1], 0.5),  # looking makes it worse: silence is best
        ([-0.5], [-0.6], 0.0),
        ([-np.inf], [0.2], 0.2),
        ([-np.inf], [-np.inf], 0.0),
    ],
)
def test_a_balanced_threshold_lies_half_way_between_right_and_wrong_claims(right, wrong, lead):
    assert midpoint_threshold(np.array(right), np.array(wrong)) == pytest.approx(lead)


@given(st.lists(st.floats(-1, 1, width=16), min_size=1, max_size=9), st.lists(st.floats(-1, 1, width=16), min_size=1))
def test_if_wrong_claims_do_not_lead_by_more_than_right_ones_there_is_no_warning(right, wrong):
    found = midpoint_threshold(np.array(right), np.array(wrong))
    if np.mean(wrong) <= np.mean(right):
        assert found >= max(*right, *wrong)
    else:
        assert np.mean(right) <= found <= np.mean(wrong)


def test_each_claimed_finding_has_its_own_balanced_threshold_and_a_rare_one_the_pooled(run):
    active = [box(n, "active_tb", (0.5, 0.5, 0.0)) for n in range(6)]
    obsolete = [box(n, "obsolete_tb", (0.1, 0.9, 0.0)) for n in range(6, 11)]
    rare = [box(n, "other_tb", (0.1, 0.2, 0.9)) for n in range(11, 15)]
    learnt = thresholds([*active, *obsolete, *rare], run, CalibrationOptions(balanced=True))
    assert set(learnt.by_concept) == {"active_tb", "obsolete_tb"}, "four patients are too few"
    assert learnt.by_concept["active_tb"] == pytest.approx(0.4), "rightly claimed 0, wrongly 0.8"
    wrongly = (6 * 0.0 + 4 * 0.7) / 10
    assert learnt.by_concept["obsolete_tb"] == pytest.approx((-0.8 + wrongly) / 2)
    assert learnt.lead("other_tb") == learnt.pooled
    assert (learnt.max_false_alarms, learnt.confidence) == (None, None)


def test_findings_without_wrong_claims_have_the_pooled_threshold(run):
    boxes = [box(n, "active_tb", (0.5, 0.4, 0.0)) for n in range(5)]
    learnt = thresholds(boxes, run, CalibrationOptions(balanced=True))
    assert learnt.by_concept == {}
    assert learnt.pooled == pytest.approx((-0.1 + (0.1 + 0.5) / 2) / 2)


def test_boxes_of_four_patients_are_too_few_for_a_balanced_threshold_of_a_findings_own(run):
    boxes = [box(n, NAMES[n % 2], (0.5, 0.4, 0.0), patient=f"p{n % 4}") for n in range(20)]
    assert thresholds(boxes, run, CalibrationOptions(balanced=True)).by_concept == {}


def test_balanced_thresholds_without_a_wrong_claim_are_an_error(run):
    with pytest.raises(CalibrationError, match="need boxes of at least two findings; split 'val' has none"):
        thresholds([], run, CalibrationOptions(balanced=True))


def test_bounded_thresholds_without_a_box_are_an_error(run):
    with pytest.raises(CalibrationError, match=r"boxes of 0 patients.*at least 22"):
        thresholds([], run)


def test_rates_are_counted_for_each_claimed_finding():
    seen = [box(0, "active_tb", (0.0,) * 3), box(1, "active_tb", (0.0,) * 3), box(2, "obsolete_tb", (0.0,) * 3)]
    claims = SimulatedClaims.on(seen, dataset(seen))
    warned = np.array([[0, 1, 1], [1, 1, 0], [0, 0, 1]], dtype=bool)
    active, obsolete = claims.rates_of("active_tb", warned), claims.rates_of("obsolete_tb", warned)
    assert (active.caught, active.false_alarms, active.balanced) == (0.0, 0.5, 0.25)
    assert (obsolete.caught, obsolete.false_alarms, obsolete.balanced) == (1.0, 0.0, 1.0)
    assert claims.rates_of("other_tb", warned) is None
    assert claims.rates_of("of another data set", warned) is None


def test_a_box_has_the_same_measurements_in_a_batch_as_in_a_study(trained_run, drawn_dataset):
    reader, data = mg.load(trained_run), Dataset.load(drawn_dataset)
    seen = measured(reader.loaded.run, data, drawn_dataset)
    assert len(seen) == sum(drawn.film in {one.id for one in data.in_split("val")} for drawn in data.boxes)
    for one in seen[:3]:
        check = check_box(reader.open(data.film_path(one.film)).evidence, one.box, one.concept)
        means, variances = ({c.name: getattr(c, kind) for c in check.concepts} for kind in ("mean", "variance"))
        assert one.means.tolist() == pytest.approx([means[name] for name in reader.concepts.names], abs=1e-5)
        assert one.variances.tolist() == pytest.approx([variances[n] for n in reader.concepts.names], abs=1e-5)


def test_a_box_outside_its_film_is_skipped(trained_run, drawn_dataset):
    loaded, data = load_run(trained_run), Dataset.load(drawn_dataset)
    astray = data.in_split("val")[0].id
    data = replace(data, boxes=(DrawnBox(astray, data.concepts.names[0], Box(900, 900, 950, 950)),))
    assert measured(loaded.run, data, drawn_dataset) == ()


def test_a_finding_that_the_model_does_not_know_is_an_error_that_names_it(trained_run, drawn_dataset, tmp_path):
    data = Dataset.load(drawn_dataset)
    films = tuple(replace(one, labels=one.labels | {"gout": False}) for one in data.films)
    more = ConceptSet((*data.concepts, Concept("gout", "Gout", "In a toe.")))
    replace(data, concepts=more, films=films).save(tmp_path / "more")
    with pytest.raises(VocabularyError, match="also has gout"):
        calibrate(load_run(trained_run), tmp_path / "more")


@pytest.fixture
def copy(trained_run, tmp_path):
    shutil.copytree(trained_run, tmp_path / "run")
    return tmp_path / "run"


def test_a_calibrated_run_keeps_its_thresholds_and_checks_by_them(copy, drawn_dataset):
    calibration = calibrate(load_run(copy), drawn_dataset, LOOSE)
    assert load_run(copy).run.safety is None, "nothing is written before it is kept"
    keep(load_run(copy), calibration)

    run = load_run(copy).run
    assert run.safety == calibration.thresholds
    assert run.safety.data_set["split"] == "val"
    assert "Calibrated the safety check" in run.changes[-1].what
    reader, data = mg.load(copy), Dataset.load(drawn_dataset)
    film = next(film for film in data.in_split("test") if film.id in data.boxes_by_film)
    drawn = data.boxes_by_film[film.id][0]
    check = check_box(
        reader.open(data.film_path(film)).evidence, drawn.box, drawn.concept, SafetyRule.of(reader.loaded.run)
    )
    assert check.calibrated
    assert check.allowed == run.safety.lead(drawn.concept)


def test_the_pooled_rates_are_those_of_the_calibration_boxes(trained_run, drawn_dataset):
    loaded, data = load_run(trained_run), Dataset.load(drawn_dataset)
    calibration = calibrate(loaded, drawn_dataset, LOOSE)
    rule = SafetyRule.of(replace(loaded.run, safety=calibration.thresholds))
    seen = measured(loaded.run, data, drawn_dataset)
    doubted = [check_claim(one.means, one.variances, loaded.run.concepts, one.concept, rule).mismatch for one in seen]
    assert calibration.check.false_alarms == pytest.approx(np.mean(doubted))
    assert sum(one.boxes for one in calibration.concepts) == calibration.boxes == len(seen)
    assert calibration.majority_answer == most_frequent_concept(data)


def test_a_run_with_balanced_thresholds_bounds_no_rate(copy, drawn_dataset, tmp_path):
    data = Dataset.load(drawn_dataset)
    everyone = tuple(replace(one, path=str(data.film_path(one).resolve()), split="val") for one in data.films)
    replace(data, films=everyone).save(tmp_path / "all")
    calibration = calibrate(load_run(copy), tmp_path / "all", CalibrationOptions(balanced=True))
    assert calibration.thresholds.by_concept, "here some finding has boxes of five patients"
    assert calibration.guarantee == (
        f"These thresholds lie half way between right and wrong claims on {calibration.boxes:,} boxes; no rate is "
        "promised.",
    )  # fmt: skip
    assert calibration.balanced >= 0.5
    keep(load_run(copy), calibration)
    run = load_run(copy).run
    assert run.safety == calibration.thresholds
    assert run.safety.max_false_alarms is None
    assert run.changes[-1].what.endswith("for balance, with no rate promised.")


def test_the_balanced_command_says_that_no_rate_is_promised(copy, drawn_dataset):
    said = medgrape("calibrate", copy, "--data", drawn_dataset, "--balanced")
    assert said.returncode == 0, said.stderr
    words = " ".join(said.stdout.split())
    assert "no rate is promised" in words
    assert "at most" not in words
    assert "Balanced over the claimed concepts: " in words
    assert load_run(copy).run.safety.max_false_alarms is None


@pytest.mark.parametrize(
    ("option", "value"), [("--max-false-alarms", 0.1), ("--confidence", 0.9)], ids=["a bound", "a confidence"]
)
def test_balanced_with_a_bound_is_an_error_and_changes_nothing(copy, drawn_dataset, option, value):
    said = medgrape("calibrate", copy, "--data", drawn_dataset, "--balanced", option, value)
    assert said.returncode == 2
    assert f"--balanced promises no rate of false alarms; leave out {option}." in " ".join(said.stderr.split())
    assert load_run(copy).run.safety is None


def test_calibration_on_test_films_warns(trained_run, drawn_dataset):
    assert "test films" in calibrate(load_run(trained_run), drawn_dataset, replace(LOOSE, split="test")).warnings[0]
    assert calibrate(load_run(trained_run), drawn_dataset, LOOSE).warnings == ()


def test_training_films_in_another_data_set_are_recognised(trained_run, drawn_dataset, tmp_path):
    data = Dataset.load(drawn_dataset)
    moved = tuple(replace(one, path=str(data.film_path(one).resolve()), split="val") for one in data.in_split("train"))
    replace(data, films=moved).save(tmp_path / "moved")
    warnings = calibrate(load_run(trained_run), tmp_path / "moved", LOOSE).warnings
    assert any("has learnt from" in warning for warning in warnings)


def test_the_command_prints_what_it_learnt_and_what_it_promises(copy, drawn_dataset):
    bounds = ("--max-false-alarms", 0.4, "--confidence", 0.6)
    said = medgrape("calibrate", copy, "--data", drawn_dataset, *bounds)
    assert said.returncode == 0, said.stderr
    for words in (
        "lead allowed",
        "too few of its own: it takes the pooled lead",
        "Pooled threshold: ",
        "kept in",
    ):
        assert words in said.stdout
    told = json.loads(medgrape("calibrate", copy, "--data", drawn_dataset, *bounds, "--json").stdout)
    assert told["thresholds"]["max_false_alarms"] == 0.4
    assert len(load_run(copy).run.changes) == 2


@pytest.mark.parametrize(
    ("terms", "complaint"),
    [
        ({"max_false_alarms": 0.0}, "--max-false-alarms lies between 0 and 1"),
        ({"max_false_alarms": float("nan")}, "--max-false-alarms lies between 0 and 1"),
        ({"confidence": 1.0}, "--confidence lies between 0 and 1"),
        ({"gate": -1.0}, "--gate is a variance"),
        ({"gate": float("inf")}, "--gate is a variance"),
        ({"split": "train"}, "calibrate with --split val"),
        ({"split": "vla"}, "A split is one of"),
        ({"max_false_alarms": 0.001}, "at least 2,302 patients"),
    ],
)
def test_invalid_options_give_an_error_of_one_sentence(terms, complaint, trained_run, drawn_dataset):
    with pytest.raises(CalibrationError, match=complaint):
        calibrate(load_run(trained_run), drawn_dataset, CalibrationOptions(**terms))


def test_a_refused_calibration_ends_with_exit_code_2_and_changes_nothing(copy, drawn_dataset):
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    said = medgrape("calibrate", copy, "--data", drawn_dataset, "--max-false-alarms", 0.001)
    assert said.returncode == 2, said.stderr
    assert "at least 2,302 patients" in said.stderr
    assert len(said.stderr.strip().splitlines()) == 1
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
