"""Evaluation of the safety check by simulated mistakes: wrong claims caught and false alarms."""

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
import torch

from medgrape.baselines import mc_dropout
from medgrape.baselines.mc_dropout import box_uncertainty, quantile_threshold
from medgrape.concepts import Concept, ConceptSet
from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord, Source, VocabularyError
from medgrape.evaluation.evaluate import evaluate_run, read_split
from medgrape.evaluation.safety_check import check_figures, simulate_mistakes
from medgrape.evaluation.summary import cautions, headline
from medgrape.geometry import Box, FilmSize, PatchGrid
from medgrape.progress import quietly
from medgrape.runs.checkpoint import load_run
from medgrape.safety.boxes import MeasuredBox, boxed_films, measure_boxes
from medgrape.safety.calibration import calibrate
from medgrape.safety.check import inside
from medgrape.safety.claims import SimulatedClaims, majority_alarms
from medgrape.safety.thresholds import CalibrationOptions

NAMES = ("cavity", "effusion", "nodule")
CONCEPTS = ConceptSet(tuple(Concept(name, name.title(), "A finding.") for name in NAMES))


def claims_on(truth, patients=None):
    """Boxes that show these concepts, each on a film of its own."""
    films = tuple(
        FilmRecord(f"f{n}", "", "ill", (patients or range(len(truth)))[n].__str__(), FilmSize(9, 9), {}, "test")
        for n in range(len(truth))
    )
    drawn = tuple(DrawnBox(f"f{n}", name, Box(1, 1, 5, 5)) for n, name in enumerate(truth))
    data = Dataset("scene", ("ill",), CONCEPTS, Path(), films, drawn, Source("scene", "nowhere"))
    nothing = torch.zeros(3)
    seen = [MeasuredBox(film, box.concept, box.box, nothing, nothing) for film, box in zip(films, drawn, strict=True)]
    return SimulatedClaims.on(seen, data)


def test_the_figures_of_a_check_agree_with_a_count_by_hand():
    claims = claims_on(["cavity", "cavity", "effusion"])
    warned = np.array([[0, 1, 1], [1, 1, 0], [0, 0, 1]], dtype=bool)  # a row for each box, a column for each claim
    result = check_figures("x", "X", claims, warned)
    assert result.caught.share == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert result.false_alarms.share == pytest.approx(1 / 3)
    cavity, effusion, nodule = result.concepts  # by what is claimed, so by column
    assert (cavity.boxes, cavity.wrong, cavity.caught.share, cavity.false_alarms.share) == (2, 1, 0.0, 0.5)
    assert (effusion.boxes, effusion.wrong, effusion.caught.share, effusion.false_alarms.share) == (1, 2, 1.0, 0.0)
    assert (nodule.boxes, nodule.wrong, nodule.caught.share) == (0, 3, pytest.approx(2 / 3))
    assert nodule.false_alarms is None, "no box shows a nodule, so nobody can claim one rightly"
    assert result.balanced.share == pytest.approx(((0.0 + 0.5) / 2 + (1.0 + 1.0) / 2) / 2)


@pytest.mark.parametrize("shown", [("effusion", "nodule"), ("effusion",)], ids=["all boxed", "no box of a nodule"])
@pytest.mark.parametrize("answer", [True, False])
def test_always_warning_or_never_is_balanced_at_one_half(answer, shown):
    claims = claims_on(["cavity"] * 5 + list(shown))
    result = check_figures("x", "X", claims, np.full(claims.wrong.shape, answer))
    assert result.caught.share == result.false_alarms.share == float(answer)
    assert result.balanced.share == 0.5


@pytest.mark.parametrize("answer", NAMES)
def test_every_constant_answer_is_balanced_at_one_half_even_if_no_box_shows_a_nodule(answer):
    claims = claims_on(["cavity"] * 5 + ["effusion"] * 2)
    result = check_figures("x", "X", claims, majority_alarms(answer, claims))
    assert result.balanced.share == 0.5
    assert (result.balanced.interval.low, result.balanced.interval.high) == (0.5, 0.5)


def test_a_check_that_warns_exactly_at_the_wrong_claims_has_a_balance_of_1():
    claims = claims_on(["cavity", "cavity", "effusion"])
    assert check_figures("x", "X", claims, claims.wrong).balanced.share == 1.0
    assert check_figures("x", "X", claims, ~claims.wrong).balanced.share == 0.0


def test_with_boxes_of_a_single_finding_there_is_no_balance():
    claims = claims_on(["cavity", "cavity"])
    result = check_figures("x", "X", claims, claims.wrong)
    assert result.balanced is None
    assert result.caught.share == 1.0


def test_the_random_claims_of_the_paper_average_to_the_count_over_all_wrong_claims():
    chance = np.random.default_rng(1)
    claims = claims_on([NAMES[n] for n in chance.integers(3, size=400)])
    warned = chance.random(claims.wrong.shape) < (0.3, 0.6, 0.9)
    draws = [check_figures("x", "X", claims, warned, seed=seed).drawn for seed in range(20)]
    exact = check_figures("x", "X", claims, warned)
    assert np.mean([trial.caught for trial in draws]) == pytest.approx(exact.caught.share, abs=0.01)
    assert np.mean([trial.false_alarms for trial in draws]) == pytest.approx(exact.false_alarms.share, abs=0.01)
    assert all(trial.caught_spread > 0 for trial in draws)


def test_intervals_are_wider_if_the_same_boxes_come_from_few_patients():
    chance, truth = np.random.default_rng(2), ["cavity", "effusion"] * 60
    by_patient = np.repeat(chance.random((12, 3)) < 0.5, 10, axis=0)
    width = []
    for patients in (range(120), [n // 10 for n in range(120)]):
        result = check_figures("x", "X", claims_on(truth, list(patients)), by_patient).caught.interval
        width.append(result.high - result.low)
    assert width[1] > 2 * width[0]
    assert check_figures("x", "X", claims_on(truth, [7] * 120), by_patient).caught.interval is None


@pytest.fixture(scope="module")
def scene(trained_run, drawn_dataset):
    loaded, data = load_run(trained_run), Dataset.load(drawn_dataset)
    return loaded, data, cached_films(loaded.run.config, data, drawn_dataset)


@pytest.fixture(scope="module")
def study(scene):
    loaded, data, cached = scene
    return simulate_mistakes(loaded.run, data, cached, "test")


def test_all_checks_are_reported_with_the_trivial_one(study, scene):
    _, data, _ = scene
    assert [check.name for check in study.checks] == [
        "paper", "ungated", "majority", "dropout_variance", "dropout_entropy"
    ]  # fmt: skip
    assert study.main.name == "paper"
    assert any("never calibrated" in warning for warning in study.warnings)
    boxes = [drawn for drawn in data.boxes if drawn.film in {record.id for record in data.in_split("test")}]
    assert study.boxes == len(boxes) == sum(concept.boxes for concept in study.checks[0].concepts)


def test_a_check_with_other_settings_than_the_paper_is_evaluated_too(scene):
    loaded, data, cached = scene
    config = loaded.run.config
    bolder = config.model_copy(update={"safety": config.safety.model_copy(update={"lead": 0.0, "gate": float("inf")})})
    result = simulate_mistakes(replace(loaded.run, config=bolder), data, cached, "test")
    assert result.main.title == "by this run's settings (lead 0, gate inf)"
    assert result.main.caught.share >= result.named("ungated").caught.share > 0


def test_the_gate_can_only_suppress_warnings(study):
    paper, ungated = study.named("paper"), study.named("ungated")
    assert paper.caught.share <= ungated.caught.share
    assert paper.false_alarms.share <= ungated.false_alarms.share


def test_a_calibrated_run_is_evaluated_with_its_own_thresholds(scene, drawn_dataset):
    loaded, data, cached = scene
    safety = calibrate(loaded, drawn_dataset, CalibrationOptions(max_false_alarms=0.4, confidence=0.6)).thresholds
    result = simulate_mistakes(replace(loaded.run, safety=safety), data, cached, "val")
    assert result.main.name == "calibrated"
    assert result.bound == 0.4
    again = calibrate(loaded, drawn_dataset, CalibrationOptions(max_false_alarms=0.4, confidence=0.6)).check
    assert result.main.caught.share == pytest.approx(again.caught)
    assert result.main.false_alarms.share == pytest.approx(again.false_alarms)


def test_a_run_calibrated_for_balance_has_that_title_and_dropout_keeps_its_default_bound(scene, tmp_path):
    loaded, data, _ = scene
    everyone = tuple(replace(record, path=str(data.film_path(record).resolve()), split="val") for record in data.films)
    two = tuple(drawn for drawn in data.boxes if drawn.concept != "pulmonary_tb")  # as on TBX11K, it has no box
    replace(data, films=everyone, boxes=two).save(tmp_path / "all")
    learnt, data = (
        calibrate(loaded, tmp_path / "all", CalibrationOptions(balanced=True)),
        Dataset.load(tmp_path / "all"),
    )
    cached = cached_films(loaded.run.config, data, tmp_path / "all")
    result = simulate_mistakes(replace(loaded.run, safety=learnt.thresholds), data, cached, "val")
    assert learnt.thresholds.by_concept.keys() == {"active_tb", "obsolete_tb"}
    assert (result.main.name, result.main.title) == ("calibrated", "calibrated for balance")
    assert result.bound == 0.10
    assert result.main.balanced.share == pytest.approx(learnt.balanced), "the same figure, on the same boxes"
    assert result.main.balanced.share >= max(result.named("ungated").balanced.share, 0.5)


def test_dropout_has_no_more_false_alarms_on_validation_boxes_than_allowed(scene):
    loaded, data, cached = scene
    result = simulate_mistakes(loaded.run, data, cached, "val")
    for name in ("dropout_variance", "dropout_entropy"):
        assert result.named(name).false_alarms.share <= 0.10


def test_the_entropy_of_a_film_does_not_depend_on_the_claim(study):
    result = study.named("dropout_entropy")
    assert result.caught.share == pytest.approx(result.false_alarms.share)


def test_dropout_agrees_with_thirty_separate_passes(scene):
    loaded, data, cached = scene
    model = loaded.run.model
    films, greys = next(iter(boxed_films(data, cached, "test")))
    result = box_uncertainty(loaded.run, data, cached, "test")
    lot, film = torch.Generator().manual_seed(0), films[0]
    drawn = data.boxes_by_film[film.id][0]
    means, shares = [], []
    for once in mc_dropout.dropped(model.features(greys)[0], lot):
        patches = model.projector.patches(once.unsqueeze(0))[0]
        similarity = torch.einsum("dhw,kmd->kmhw", patches, model.atlas.prototypes)
        grid = PatchGrid(film.size, *patches.shape[-2:])
        means.append(inside(similarity.mean(dim=1), grid, drawn.box))
        shares.append(model.classify(similarity.amax(dim=(-2, -1)).unsqueeze(0)).probabilities[0])
    assert len(means) == 30
    np.testing.assert_allclose(result.variance[0], torch.stack(means).var(dim=0, correction=0).numpy(), rtol=1e-3)
    mean = torch.stack(shares).mean(dim=0)
    assert result.entropy[0] == pytest.approx(float(-(mean * mean.log()).sum()), rel=1e-4)


def test_dropout_repeats_for_the_same_seed_and_keeps_the_order_of_the_boxes(scene):
    loaded, data, cached = scene
    first, again = (box_uncertainty(loaded.run, data, cached, "test", seed=3) for _ in range(2))
    other = box_uncertainty(loaded.run, data, cached, "test", seed=4)
    assert (first.variance == again.variance).all()
    assert (first.variance != other.variance).any()
    seen = measure_boxes(loaded.run, data, cached, "test")
    assert [loaded.run.concepts.names[row] for row in first.truth] == [box.concept for box in seen]


def test_a_tenth_of_the_features_is_dropped_and_their_mean_is_kept():
    result = mc_dropout.dropped(torch.ones(40, 20, 20), torch.Generator().manual_seed(0))
    assert float((result == 0).float().mean()) == pytest.approx(0.1, abs=0.002)
    assert float(result.mean()) == pytest.approx(1.0, abs=0.002)


def test_the_share_above_a_threshold_is_the_bound():
    values = np.arange(20.0)
    assert (values > quantile_threshold(values, 0.1)).sum() == 2
    assert (values > quantile_threshold(values, 0.04)).sum() == 0


def test_a_split_without_boxes_has_no_results_of_the_safety_check(scene):
    loaded, data, cached = scene
    assert simulate_mistakes(loaded.run, replace(data, boxes=()), cached, "test") is None


def test_without_validation_boxes_dropout_is_left_out_with_a_warning(scene):
    loaded, data, cached = scene
    tested = {record.id for record in data.in_split("test")}
    bare = replace(data, boxes=tuple(drawn for drawn in data.boxes if drawn.film in tested))
    result = simulate_mistakes(loaded.run, bare, cached, "test")
    assert [check.name for check in result.checks] == ["paper", "ungated"]
    assert any("MC-dropout" in warning for warning in result.warnings)
    assert any("no commonest finding" in warning for warning in result.warnings)


def test_a_check_that_is_no_better_than_a_constant_answer_gets_a_warning(scene, study, drawn_dataset, tmp_path):
    loaded, _, _ = scene
    evaluation, _ = evaluate_run(loaded, drawn_dataset, tmp_path)
    results = (evaluation.classification, evaluation.localisation)
    trivial = study.named("majority")
    poor = replace(study, checks=(replace(trivial, name="paper"), trivial))
    assert any("no better than always" in line for line in cautions("test", *results, evaluation.dispersion, poor))
    sentence = headline(*results, study)[-1]
    assert f"warns at {study.main.caught.share:.3f} (95 % interval" in sentence
    assert f"without looking, at {trivial.caught.share:.3f} and {trivial.false_alarms.share:.3f}." in sentence


def test_the_report_has_the_safety_check_as_data_and_as_a_section(scene, study, drawn_dataset, tmp_path):
    loaded, _, _ = scene
    _, files = evaluate_run(loaded, drawn_dataset, tmp_path)
    payload = json.loads(files.json.read_text("utf-8"))["interaction"]
    assert payload["checks"][0]["caught"]["share"] == study.checks[0].caught.share
    html = unescape(files.html.read_text("utf-8"))
    section = html[html.index("Does the safety check warn") : html.index("Can the probabilities")]
    for check in study.checks:
        assert check.title in section
    shown = dict(re.findall(r'data-figure="interaction\.([^"]+)" value="([^"]+)"', section))
    assert float(shown["checks.2.caught.share"]) == study.checks[2].caught.share
    assert float(shown["checks.3.concepts.0.false_alarms.share"]) == study.checks[3].concepts[0].false_alarms.share
    assert int(shown["checks.0.concepts.1.wrong"]) == study.checks[0].concepts[1].wrong
    assert payload["telling_apart"]["chance"] == 0.5
    for place, pair in enumerate(study.telling_apart.pairs):
        assert payload["telling_apart"]["pairs"][place]["auc"] == pair.auc
        assert float(shown[f"telling_apart.pairs.{place}.auc"]) == pair.auc
    assert "do the maps tell which finding it is" in section


def test_a_data_set_with_fewer_concepts_in_another_order_gets_the_same_maps(scene, drawn_dataset, tmp_path):
    loaded, data, _ = scene
    kept = ConceptSet(tuple(data.concepts)[:0:-1])
    boxes = tuple(drawn for drawn in data.boxes if drawn.concept in kept)
    fewer = replace(data, concepts=kept, boxes=boxes)
    some, every = (read_split(loaded, entry, drawn_dataset, "test", quietly).readings for entry in (fewer, data))
    np.testing.assert_array_equal(some.mean_maps, every.mean_maps[:, :0:-1])
    np.testing.assert_array_equal(some.max_maps, every.max_maps[:, :0:-1])
    fewer.save(tmp_path / "fewer")
    (tmp_path / "fewer" / "cache").mkdir()
    evaluation, _ = evaluate_run(loaded, tmp_path / "fewer", tmp_path / "report")
    assert [concept.name for concept in evaluation.detection.concepts] == list(kept.names)
    assert [concept.name for concept in evaluation.interaction.checks[0].concepts] == list(kept.names)


def test_a_data_set_with_a_concept_that_the_model_does_not_know_is_refused(scene, drawn_dataset):
    loaded, data, _ = scene
    more = replace(data, concepts=ConceptSet((*data.concepts, Concept("gout", "Gout", "In a toe."))))
    with pytest.raises(VocabularyError, match="also has gout"):
        read_split(loaded, more, drawn_dataset, "test", quietly)
