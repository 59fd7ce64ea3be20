"""Simulated mistakes: what a safety check catches, and what it doubts without reason."""

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
from medgrape.evaluation.verdicts import cautions, headline
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
    seen = [MeasuredBox(film, one.concept, one.box, nothing, nothing) for film, one in zip(films, drawn, strict=True)]
    return SimulatedClaims.on(seen, data)


def test_a_check_is_counted_by_hand():
    claims = claims_on(["cavity", "cavity", "effusion"])
    warned = np.array([[0, 1, 1], [1, 1, 0], [0, 0, 1]], dtype=bool)  # a row for each box, a column for each claim
    found = check_figures("x", "X", claims, warned)
    assert found.caught.share == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert found.false_alarms.share == pytest.approx(1 / 3)
    cavity, effusion, nodule = found.concepts  # by what is claimed, so by column
    assert (cavity.boxes, cavity.wrong, cavity.caught.share, cavity.false_alarms.share) == (2, 1, 0.0, 0.5)
    assert (effusion.boxes, effusion.wrong, effusion.caught.share, effusion.false_alarms.share) == (1, 2, 1.0, 0.0)
    assert (nodule.boxes, nodule.wrong, nodule.caught.share) == (0, 3, pytest.approx(2 / 3))
    assert nodule.false_alarms is None, "no box shows a nodule, so nobody can claim one rightly"
    assert found.balanced.share == pytest.approx(((0.0 + 0.5) / 2 + (1.0 + 1.0) / 2) / 2)


@pytest.mark.parametrize("shown", [("effusion", "nodule"), ("effusion",)], ids=["all boxed", "no box of a nodule"])
@pytest.mark.parametrize("answer", [True, False])
def test_always_warning_or_never_is_balanced_at_one_half(answer, shown):
    claims = claims_on(["cavity"] * 5 + list(shown))
    found = check_figures("x", "X", claims, np.full(claims.wrong.shape, answer))
    assert found.caught.share == found.false_alarms.share == float(answer)
    assert found.balanced.share == 0.5


@pytest.mark.parametrize("answer", NAMES)
def test_every_answer_given_without_looking_is_balanced_at_one_half_though_no_box_shows_a_nodule(answer):
    claims = claims_on(["cavity"] * 5 + ["effusion"] * 2)
    found = check_figures("x", "X", claims, majority_alarms(answer, claims))
    assert found.balanced.share == 0.5
    assert (found.balanced.interval.low, found.balanced.interval.high) == (0.5, 0.5)


def test_a_check_that_warns_at_just_the_wrong_claims_is_balanced_at_one():
    claims = claims_on(["cavity", "cavity", "effusion"])
    assert check_figures("x", "X", claims, claims.wrong).balanced.share == 1.0
    assert check_figures("x", "X", claims, ~claims.wrong).balanced.share == 0.0


def test_where_all_boxes_show_one_finding_nothing_can_be_balanced():
    claims = claims_on(["cavity", "cavity"])
    found = check_figures("x", "X", claims, claims.wrong)
    assert found.balanced is None
    assert found.caught.share == 1.0


def test_what_the_paper_draws_is_on_average_what_is_counted_over_all_wrong_claims():
    chance = np.random.default_rng(1)
    claims = claims_on([NAMES[n] for n in chance.integers(3, size=400)])
    warned = chance.random(claims.wrong.shape) < (0.3, 0.6, 0.9)
    draws = [check_figures("x", "X", claims, warned, seed=seed).drawn for seed in range(20)]
    exact = check_figures("x", "X", claims, warned)
    assert np.mean([one.caught for one in draws]) == pytest.approx(exact.caught.share, abs=0.01)
    assert np.mean([one.false_alarms for one in draws]) == pytest.approx(exact.false_alarms.share, abs=0.01)
    assert all(one.caught_spread > 0 for one in draws)


def test_intervals_are_wider_where_the_same_boxes_come_from_few_patients():
    chance, truth = np.random.default_rng(2), ["cavity", "effusion"] * 60
    by_patient = np.repeat(chance.random((12, 3)) < 0.5, 10, axis=0)
    width = []
    for patients in (range(120), [n // 10 for n in range(120)]):
        found = check_figures("x", "X", claims_on(truth, list(patients)), by_patient).caught.interval
        width.append(found.high - found.low)
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


def test_every_check_stands_beside_the_trivial_one(study, scene):
    _, data, _ = scene
    assert [one.name for one in study.checks] == [
        "paper", "ungated", "majority", "dropout_variance", "dropout_entropy"
    ]  # fmt: skip
    assert study.main.name == "paper"
    assert any("never calibrated" in warning for warning in study.warnings)
    boxes = [drawn for drawn in data.boxes if drawn.film in {one.id for one in data.in_split("test")}]
    assert study.boxes == len(boxes) == sum(one.boxes for one in study.checks[0].concepts)


def test_settings_other_than_the_papers_are_judged_too(scene):
    loaded, data, cached = scene
    config = loaded.run.config
    bolder = config.model_copy(update={"safety": config.safety.model_copy(update={"lead": 0.0, "gate": float("inf")})})
    found = simulate_mistakes(replace(loaded.run, config=bolder), data, cached, "test")
    assert found.main.title == "by this run's settings (lead 0, gate inf)"
    assert found.main.caught.share >= found.named("ungated").caught.share > 0


def test_the_gate_only_ever_holds_warnings_back(study):
    paper, ungated = study.named("paper"), study.named("ungated")
    assert paper.caught.share <= ungated.caught.share
    assert paper.false_alarms.share <= ungated.false_alarms.share


def test_a_calibrated_run_is_judged_by_its_own_thresholds(scene, drawn_dataset):
    loaded, data, cached = scene
    safety = calibrate(loaded, drawn_dataset, CalibrationOptions(max_false_alarms=0.4, confidence=0.6)).thresholds
    found = simulate_mistakes(replace(loaded.run, safety=safety), data, cached, "val")
    assert found.main.name == "calibrated"
    assert found.bound == 0.4
    again = calibrate(loaded, drawn_dataset, CalibrationOptions(max_false_alarms=0.4, confidence=0.6)).check
    assert found.main.caught.share == pytest.approx(again.caught)
    assert found.main.false_alarms.share == pytest.approx(again.false_alarms)


def test_a_run_calibrated_for_balance_is_called_so_and_dropout_keeps_its_usual_bound(scene, tmp_path):
    loaded, data, _ = scene
    everyone = tuple(replace(one, path=str(data.film_path(one).resolve()), split="val") for one in data.films)
    two = tuple(drawn for drawn in data.boxes if drawn.concept != "pulmonary_tb")  # as on TBX11K, it has no box
    replace(data, films=everyone, boxes=two).save(tmp_path / "all")
    learnt, data = (
        calibrate(loaded, tmp_path / "all", CalibrationOptions(balanced=True)),
        Dataset.load(tmp_path / "all"),
    )
    cached = cached_films(loaded.run.config, data, tmp_path / "all")
    found = simulate_mistakes(replace(loaded.run, safety=learnt.thresholds), data, cached, "val")
    assert learnt.thresholds.by_concept.keys() == {"active_tb", "obsolete_tb"}
    assert (found.main.name, found.main.title) == ("calibrated", "calibrated for balance")
    assert found.bound == 0.10
    assert found.main.balanced.share == pytest.approx(learnt.balanced), "the same figure, on the same boxes"
    assert found.main.balanced.share >= max(found.named("ungated").balanced.share, 0.5)


def test_dropout_lets_no_more_correct_validation_boxes_raise_an_alarm_than_allowed(scene):
    loaded, data, cached = scene
    found = simulate_mistakes(loaded.run, data, cached, "val")
    for name in ("dropout_variance", "dropout_entropy"):
        assert found.named(name).false_alarms.share <= 0.10


def test_the_entropy_of_a_film_knows_nothing_of_what_is_claimed(study):
    found = study.named("dropout_entropy")
    assert found.caught.share == pytest.approx(found.false_alarms.share)


def test_dropout_is_the_variance_over_thirty_passes_one_by_one(scene):
    loaded, data, cached = scene
    model = loaded.run.model
    films, greys = next(iter(boxed_films(data, cached, "test")))
    found = box_uncertainty(loaded.run, data, cached, "test")
    lot, film = torch.Generator().manual_seed(0), films[0]
    drawn = data.boxes_by_film[film.id][0]
    means, shares = [], []
    for once in mc_dropout.dropped(model.features(greys)[0], lot):
        patches = model.projector.patches(once.unsqueeze(0))[0]
        similarity = torch.einsum("dhw,kmd->kmhw", patches, model.atlas.prototypes)
        grid = PatchGrid(film.size, *patches.shape[-2:])
        means.append(inside(similarity.mean(dim=1), grid, drawn.box))
        shares.append(model.judge(similarity.amax(dim=(-2, -1)).unsqueeze(0)).probabilities[0])
    assert len(means) == 30
    np.testing.assert_allclose(found.variance[0], torch.stack(means).var(dim=0, correction=0).numpy(), rtol=1e-3)
    mean = torch.stack(shares).mean(dim=0)
    assert found.entropy[0] == pytest.approx(float(-(mean * mean.log()).sum()), rel=1e-4)


def test_dropout_draws_the_same_lots_for_the_same_seed_and_sees_the_boxes_in_the_same_order(scene):
    loaded, data, cached = scene
    first, again = (box_uncertainty(loaded.run, data, cached, "test", seed=3) for _ in range(2))
    other = box_uncertainty(loaded.run, data, cached, "test", seed=4)
    assert (first.variance == again.variance).all()
    assert (first.variance != other.variance).any()
    seen = measure_boxes(loaded.run, data, cached, "test")
    assert [loaded.run.concepts.names[row] for row in first.truth] == [one.concept for one in seen]


def test_a_tenth_of_the_features_is_dropped_and_their_mean_is_kept():
    found = mc_dropout.dropped(torch.ones(40, 20, 20), torch.Generator().manual_seed(0))
    assert float((found == 0).float().mean()) == pytest.approx(0.1, abs=0.002)
    assert float(found.mean()) == pytest.approx(1.0, abs=0.002)


def test_a_threshold_lets_just_the_bound_exceed_it():
    values = np.arange(20.0)
    assert (values > quantile_threshold(values, 0.1)).sum() == 2
    assert (values > quantile_threshold(values, 0.04)).sum() == 0


def test_a_split_without_boxes_has_no_study(scene):
    loaded, data, cached = scene
    assert simulate_mistakes(loaded.run, replace(data, boxes=()), cached, "test") is None


def test_without_validation_boxes_dropout_is_left_out_and_said_so(scene):
    loaded, data, cached = scene
    tested = {one.id for one in data.in_split("test")}
    bare = replace(data, boxes=tuple(drawn for drawn in data.boxes if drawn.film in tested))
    found = simulate_mistakes(loaded.run, bare, cached, "test")
    assert [one.name for one in found.checks] == ["paper", "ungated"]
    assert any("MC-dropout" in warning for warning in found.warnings)
    assert any("no commonest finding" in warning for warning in found.warnings)


def test_a_check_that_is_no_better_than_one_answer_is_told_so(scene, study, drawn_dataset, tmp_path):
    loaded, _, _ = scene
    evaluation, _ = evaluate_run(loaded, drawn_dataset, tmp_path)
    told = (evaluation.classification, evaluation.localisation)
    trivial = study.named("majority")
    poor = replace(study, checks=(replace(trivial, name="paper"), trivial))
    assert any("no better than always" in line for line in cautions("test", *told, evaluation.dispersion, poor))
    sentence = headline(*told, study)[-1]
    assert f"warns at {study.main.caught.share:.3f} (95 % interval" in sentence
    assert f"without looking, at {trivial.caught.share:.3f} and {trivial.false_alarms.share:.3f}." in sentence


def test_the_report_has_the_study_as_data_and_as_a_section(scene, study, drawn_dataset, tmp_path):
    loaded, _, _ = scene
    _, files = evaluate_run(loaded, drawn_dataset, tmp_path)
    told = json.loads(files.json.read_text("utf-8"))["interaction"]
    assert told["checks"][0]["caught"]["share"] == study.checks[0].caught.share
    html = unescape(files.html.read_text("utf-8"))
    section = html[html.index("Does the safety check warn") : html.index("Can the probabilities")]
    for check in study.checks:
        assert check.title in section
    shown = dict(re.findall(r'data-figure="interaction\.([^"]+)" value="([^"]+)"', section))
    assert float(shown["checks.2.caught.share"]) == study.checks[2].caught.share
    assert float(shown["checks.3.concepts.0.false_alarms.share"]) == study.checks[3].concepts[0].false_alarms.share
    assert int(shown["checks.0.concepts.1.wrong"]) == study.checks[0].concepts[1].wrong
    assert told["telling_apart"]["chance"] == 0.5
    for place, pair in enumerate(study.telling_apart.pairs):
        assert told["telling_apart"]["pairs"][place]["auc"] == pair.auc
        assert float(shown[f"telling_apart.pairs.{place}.auc"]) == pair.auc
    assert "do the maps tell which finding it is" in section


def test_a_data_set_with_fewer_concepts_in_another_order_gets_the_same_maps(scene, drawn_dataset, tmp_path):
    loaded, data, _ = scene
    kept = ConceptSet(tuple(data.concepts)[:0:-1])
    boxes = tuple(drawn for drawn in data.boxes if drawn.concept in kept)
    fewer = replace(data, concepts=kept, boxes=boxes)
    some, every = (read_split(loaded, one, drawn_dataset, "test", quietly).readings for one in (fewer, data))
    np.testing.assert_array_equal(some.mean_maps, every.mean_maps[:, :0:-1])
    np.testing.assert_array_equal(some.max_maps, every.max_maps[:, :0:-1])
    fewer.save(tmp_path / "fewer")
    (tmp_path / "fewer" / "cache").mkdir()
    evaluation, _ = evaluate_run(loaded, tmp_path / "fewer", tmp_path / "report")
    assert [one.name for one in evaluation.detection.concepts] == list(kept.names)
    assert [one.name for one in evaluation.interaction.checks[0].concepts] == list(kept.names)


def test_a_data_set_with_a_concept_that_the_model_does_not_know_is_refused(scene, drawn_dataset):
    loaded, data, _ = scene
    more = replace(data, concepts=ConceptSet((*data.concepts, Concept("gout", "Gout", "In a toe."))))
    with pytest.raises(VocabularyError, match="also has gout"):
        read_split(loaded, more, drawn_dataset, "test", quietly)
