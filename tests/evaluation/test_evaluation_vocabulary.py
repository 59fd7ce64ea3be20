import json
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from medgrape.datasets.dataset import Dataset
from medgrape.datasets.statistics import blind_pointing
from medgrape.evaluation import few_shot
from medgrape.evaluation.evaluate import read_split
from medgrape.evaluation.few_shot import ConceptTrial, Shots, TrialPlan, VocabularyTrial, leave_one_out, write_trial
from medgrape.evaluation.few_shot_films import untaught_anchor
from medgrape.evaluation.localisation import localise
from medgrape.evaluation.readings import EvaluationError
from medgrape.progress import quietly
from medgrape.runs.checkpoint import load_run


@pytest.fixture(scope="module")
def loaded(trained_run):
    return load_run(trained_run)


@pytest.fixture(scope="module")
def tried(loaded, drawn_dataset):
    return leave_one_out(loaded, drawn_dataset, TrialPlan((2, 0, 1), seeds=2))


def shots(films, *by_seed):
    return Shots(films, by_seed, seconds=0.5 + films)


def concept(name, full, *result):
    return ConceptTrial(name, name.title(), 10, 30, full, 0.3, 0.1, result)


def scene(*concepts):
    return VocabularyTrial("run", "drawn_dataset", "test", True, concepts)


def test_full_supervision_agrees_with_the_evaluation_of_the_run(loaded, drawn_dataset, tried):
    read = read_split(loaded, Dataset.load(drawn_dataset), drawn_dataset, "test", quietly).readings
    pointing = {concept.name: concept.pointing for concept in localise(read).concepts if concept.pointing is not None}
    for concept in tried.concepts:
        assert concept.full == pytest.approx(pointing[concept.name].mean.share)
        assert concept.pairs == pointing[concept.name].count


def test_every_concept_has_the_blind_pointing_baselines(drawn_dataset, tried):
    for concept in tried.concepts:
        blind = blind_pointing(Dataset.load(drawn_dataset), concept.name, ("test",))
        assert (concept.chance, concept.fixed) == (pytest.approx(blind.random), pytest.approx(blind.fixed))


def test_every_number_of_films_is_tried_with_every_seed_in_ascending_order(tried):
    assert tried.concepts
    for concept in tried.concepts:
        assert [result.films for result in concept.shots] == [0, 1, 2]
        assert all(len(result.by_seed) == 2 for result in concept.shots)


def test_relearning_the_original_prototypes_gives_the_result_of_full_supervision(loaded, drawn_dataset, monkeypatch):
    atlas, rows = loaded.run.model.atlas, []

    def remembered(start, examples, others, *, seed):  # noqa: ARG001
        own = next(vectors for vectors in atlas.in_use if not (others == vectors[0]).all(dim=1).any())
        rows.append(own)
        return own

    monkeypatch.setattr(few_shot, "tune", remembered)
    tried = leave_one_out(loaded, drawn_dataset, TrialPlan((0, 1), seeds=2))
    assert len(rows) == 4 * len(tried.concepts)
    for concept in tried.concepts:
        assert all(figure == concept.full for result in concept.shots for figure in result.by_seed)
    assert tried.monotone


@pytest.mark.parametrize("boxes", [True, False])
def test_a_concept_is_learned_from_training_films_only_and_boxes_can_be_hidden(
    loaded, drawn_dataset, monkeypatch, boxes
):
    seen, drawn = [], []
    tune, original = few_shot.tune, few_shot.Candidate.draw_films

    def watched(start, examples, others, *, seed):
        seen.extend(examples)
        return tune(start, examples, others, seed=seed)

    def noted(candidate, films, seed):
        result = original(candidate, films, seed)
        drawn.extend(result)
        return result

    monkeypatch.setattr(few_shot, "tune", watched)
    monkeypatch.setattr(few_shot.Candidate, "draw_films", noted)
    leave_one_out(loaded, drawn_dataset, TrialPlan((1,), seeds=2, boxes=boxes))
    assert {film.split for film in drawn} == {"train"}
    assert seen
    assert all((example.inside is not None) == boxes for example in seen)
    assert all(example.inside.max() > 0 for example in seen if boxes)


def test_a_larger_draw_of_films_includes_the_smaller_one(drawn_dataset):
    films = Dataset.load(drawn_dataset).in_split("train")
    candidate = few_shot.Candidate("active_tb", 0, films, films)
    draws = [{film.id for film in candidate.draw_films(5, seed)} for seed in range(4)]
    assert {film.id for film in candidate.draw_films(2, 0)} < draws[0]
    assert len({frozenset(draw) for draw in draws}) > 1
    assert len(candidate.draw_films(10_000, 0)) == len(films)


def test_the_same_trial_twice_gives_the_same_figures(loaded, drawn_dataset, tried):
    again = leave_one_out(loaded, drawn_dataset, TrialPlan((0, 1, 2), seeds=2))
    assert [[result.by_seed for result in concept.shots] for concept in again.concepts] == [
        [result.by_seed for result in concept.shots] for concept in tried.concepts
    ]


def test_concepts_have_equal_weights_in_the_mean():
    trial = scene(concept("a", 0.8, shots(1, 0.4, 0.6)), concept("b", 0.4, shots(1, 0.1, 0.3)))
    (result,) = trial.average.shots
    assert result.by_seed == pytest.approx((0.25, 0.45))
    assert (result.pointing.mean, result.pointing.sd) == (pytest.approx(0.35), pytest.approx(0.1 * 2**0.5))
    assert result.pointing.se == pytest.approx(0.1)
    assert trial.average.full == pytest.approx(0.6)
    assert trial.share_of_full(result).mean == pytest.approx(0.35 / 0.6)
    assert result.seconds == 1.5


def test_a_single_seed_has_no_standard_error_and_full_supervision_without_hits_no_share():
    trial = scene(concept("a", 0.0, shots(1, 0.4)))
    assert trial.average.shots[0].pointing.se is None
    assert trial.share_of_full(trial.average.shots[0]) is None
    assert trial.to_json()["share_of_full"] == []


@pytest.mark.parametrize(
    ("fewer", "more", "monotone"),
    [
        ((0.4, 0.5, 0.6), (0.5, 0.6, 0.7), True),
        ((0.4, 0.5, 0.6), (0.4, 0.5, 0.6), True),
        ((0.4, 0.5, 0.6), (0.3, 0.4, 0.5), False),  # less with every seed
        ((0.4, 0.5, 0.6), (0.1, 0.7, 0.65), True),  # a little less on the whole, by the luck of one draw
    ],
)
def test_a_worse_result_with_more_films_counts_only_beyond_one_standard_error(fewer, more, monotone):
    assert scene(concept("a", 0.8, shots(1, *fewer), shots(5, *more))).monotone is monotone


def test_figures_are_written_as_json(tried, tmp_path):
    write_trial(tried, tmp_path / "new" / "trial.json")
    payload = json.loads((tmp_path / "new" / "trial.json").read_text())
    assert payload == tried.to_json()
    assert {"mean", "sd", "se", "seconds", "films"} <= set(payload["average"]["shots"][0])


def test_a_model_that_reads_no_text_needs_films(loaded, drawn_dataset):
    model = deepcopy(loaded.run.model)
    model.anchors = None
    textless = replace(loaded, run=replace(loaded.run, model=model))
    tried = leave_one_out(textless, drawn_dataset, TrialPlan((0, 1), seeds=1))
    assert [result.films for result in tried.average.shots] == [1]
    with pytest.raises(EvaluationError, match="reads no text"):
        leave_one_out(textless, drawn_dataset, TrialPlan((0,), seeds=1))


def test_a_set_without_boxes_is_refused(loaded, drawn_dataset, tmp_path):
    dataset = Dataset.load(drawn_dataset)
    replace(dataset, boxes=()).save(tmp_path / "bare")
    with pytest.raises(EvaluationError, match="has boxes on both train and test films"):
        leave_one_out(loaded, tmp_path / "bare", TrialPlan((1,), seeds=1))


def test_too_few_films_and_known_films_get_warnings(loaded, drawn_dataset):
    tried = leave_one_out(loaded, drawn_dataset, TrialPlan((1, 500), seeds=1, split="val"))
    assert any("Only" in warning and "active_tb" in warning for warning in tried.warnings)
    assert any("was trained or chosen on" in warning for warning in tried.warnings)
    assert torch.isfinite(torch.tensor(tried.average.shots[-1].by_seed)).all()


@pytest.mark.parametrize("wrong", [{"films": ()}, {"films": (-1,)}, {"seeds": 0}, {"split": "train"}])
def test_an_impossible_plan_of_a_trial_is_refused(wrong):
    with pytest.raises(EvaluationError):
        TrialPlan(**wrong)


def test_the_untaught_anchor_does_not_depend_on_what_training_did_with_the_concept(trained_run):
    anchors = load_run(trained_run).run.model.anchors
    before = untaught_anchor(anchors, 1)

    with torch.no_grad():
        anchors.project.weight += torch.outer(torch.randn(anchors.project.out_features), _only_in(anchors.text, 1))

    assert not torch.allclose(anchors()[1], load_run(trained_run).run.model.anchors()[1], atol=1e-2)
    torch.testing.assert_close(untaught_anchor(anchors, 1), before, atol=1e-4, rtol=0)


def _only_in(text, row):
    """A direction in which this sentence differs from all others."""
    others = torch.cat([text[:row], text[row + 1 :]])
    return text[row] - torch.linalg.pinv(others) @ (others @ text[row])
