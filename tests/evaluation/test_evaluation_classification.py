import time

import numpy as np
import pytest
from evaluation_scenes import bump, dataset, drawn_dataset, film, readings
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from medgrape.evaluation.classification import classify, detect
from medgrape.evaluation.readings import EvaluationError, check_readings, true_classes
from medgrape.evaluation.statistics import resampled_sums

SURE = {"healthy": (0.9, 0.1), "ill": (0.2, 0.8)}


def read(truth, answers, classes=("healthy", "ill"), sure=SURE):
    films = [film(f"t{n}", "healthy" if n else "ill", split="train") for n in range(3)]
    films += [film(f"f{n}", name) for n, name in enumerate(truth)]
    return readings(dataset(films, classes=classes), probabilities=[sure[name] for name in answers])


def test_confusion_and_f1_agree_with_a_count_by_hand():
    result = classify(read(["healthy", "healthy", "ill", "ill"], ["healthy", "ill", "ill", "ill"]))
    assert result.confusion == ((1, 1), (0, 2))
    assert result.accuracy == 0.75
    assert [row.support for row in result.classes] == [2, 2]
    assert (result.classes[1].precision, result.classes[1].recall) == (pytest.approx(2 / 3), 1.0)
    assert result.macro_f1 == pytest.approx((2 / 3 + 4 / 5) / 2)


def test_a_model_that_is_always_right_has_an_f1_and_an_auc_of_1():
    names = ["healthy", "ill"] * 5
    result = classify(read(names, names))
    assert (result.macro_f1, result.accuracy, result.macro_auc) == (1, 1, 1)
    assert (result.interval.low, result.interval.high) == (1, 1)


def test_classification_figures_agree_with_scikit_learn():
    read = drawn_dataset()
    result, truth = classify(read), true_classes(read)
    answers = read.probabilities.argmax(axis=1)
    assert result.macro_f1 == pytest.approx(f1_score(truth, answers, average="macro"))
    assert result.accuracy == pytest.approx(accuracy_score(truth, answers))
    assert result.macro_auc == pytest.approx(roc_auc_score(truth, read.probabilities, multi_class="ovr"))


def test_the_trivial_answer_is_the_commonest_class_of_training_and_not_of_the_films_read():
    read = drawn_dataset()
    films = read.dataset.in_split("train")
    trained = [read.dataset.classes.index(record.class_name) for record in films]
    dummy = DummyClassifier(strategy="most_frequent").fit(np.zeros((len(trained), 1)), trained)
    truth, answers = true_classes(read), dummy.predict(np.zeros((len(read.films), 1)))
    result = classify(read).majority
    assert result.answer == read.dataset.classes[answers[0]]
    assert result.answer != read.dataset.classes[np.bincount(truth).argmax()], "else the test could not tell"
    assert result.macro_f1 == pytest.approx(f1_score(truth, answers, average="macro", zero_division=0))
    assert result.accuracy == pytest.approx(accuracy_score(truth, answers))


def test_a_class_without_films_has_no_figures_and_is_named_in_a_warning():
    result = classify(read(["ill", "ill", "ill"], ["ill", "ill", "healthy"]))
    healthy, ill = result.classes
    assert (healthy.support, healthy.answered, healthy.precision) == (0, 1, 0.0)
    assert healthy.f1 is None
    assert healthy.recall is None
    assert healthy.auc is None
    assert ill.auc is None
    assert result.macro_auc is None
    assert result.macro_f1 == pytest.approx(0.8), "over the one class that occurs, which the wrong answer still costs"
    assert "'healthy'" in result.warnings[0]


def test_a_class_that_is_never_answered_has_no_precision():
    result = classify(read(["ill", "healthy"], ["ill", "ill"]))
    assert result.classes[0].precision is None
    assert result.classes[0].f1 == 0.0


def test_without_training_films_there_is_no_trivial_answer_and_the_report_says_so():
    data = dataset([film("a"), film("b", "healthy")])
    result = classify(readings(data, probabilities=[SURE["ill"], SURE["healthy"]]))
    assert result.majority is None
    assert any("training films" in line for line in result.warnings)


def test_the_interval_includes_the_figure_and_depends_on_the_seed():
    read = drawn_dataset()
    result = classify(read)
    assert result.interval.low < result.macro_f1 < result.interval.high
    assert classify(read).interval == result.interval
    assert classify(read, seed=1).interval != result.interval


def test_films_of_one_patient_are_resampled_together():
    films = [film("a", patient="p"), film("b", patient="p"), film("c", patient="q")]
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    sums = resampled_sums(rows, films)
    assert {tuple(row) for row in sums.tolist()} == {(4.0, 0.0), (2.0, 1.0), (0.0, 2.0)}


def test_a_single_patient_has_no_interval():
    films = [film("a", patient="p"), film("b", "healthy", patient="p")]
    assert classify(readings(dataset(films), probabilities=[SURE["ill"], SURE["ill"]])).interval is None


def test_the_interval_of_two_thousand_films_takes_less_than_a_second():
    films = [film(f"f{number}", patient=f"p{number}") for number in range(2000)]
    rows = np.eye(9)[np.arange(2000) % 9]
    start = time.process_time()
    resampled_sums(rows, films)
    assert time.process_time() - start < 1


def test_detection_leaves_out_films_whose_label_is_not_known():
    labels = [True, True, False, False, None, None]
    films = [film(f"f{n}", effusion=known) for n, known in enumerate(labels)]
    scores = np.array([[0, 0.9], [0, 0.4], [0, 0.5], [0, 0.1], [0, 0.0], [0, 1.0]])
    result = detect(readings(dataset(films), scores=scores))
    cavity, effusion = result.concepts
    assert (effusion.known, effusion.present, effusion.prevalence) == (4, 2, 0.5)
    assert effusion.auc == pytest.approx(0.75)
    assert effusion.average_precision == pytest.approx((1 + 2 / 3) / 2)
    assert (cavity.auc, cavity.average_precision, cavity.prevalence) == (None, None, 0.0)
    assert "0 of 6 films" in result.warnings[0]
    assert result.mean_auc == effusion.auc


def test_a_concept_without_known_labels_has_no_prevalence():
    result = detect(readings(dataset([film("a", cavity=None), film("b", cavity=None)])))
    assert result.concepts[0].prevalence is None


def test_a_constant_score_has_the_auc_and_precision_of_chance():
    films = [film(f"f{n}", cavity=n < 3) for n in range(10)]
    result = detect(readings(dataset(films))).concepts[0]
    assert result.auc == 0.5
    assert result.average_precision == pytest.approx(result.prevalence) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": [(np.nan, 0.5), (0.5, 0.5)]}, "not all numbers on 1 films, first on a"),
        ({"probabilities": [(0.9, 0.9), (0.5, 0.5)]}, "do not add up to 1"),
        ({"probabilities": [(0.2, 0.3, 0.5)] * 2}, "2 classes"),
        ({"mean_maps": np.full((2, 2, 8, 8), np.inf), "scores": np.zeros((2, 2))}, "mean maps are not all numbers"),
        ({"mean_maps": np.zeros((2, 3, 8, 8))}, "2 concepts"),
        ({"cam_maps": {"cavity": [bump(0, 0), bump(0, 0) * np.nan]}}, "CAM maps of cavity .* 1 films, first on b"),
    ],
)
def test_invalid_readings_are_refused_with_the_reason(change, message):
    with pytest.raises(EvaluationError, match=message):
        check_readings(readings(dataset([film("a"), film("b")]), **change))


def test_no_film_at_all_is_refused():
    with pytest.raises(EvaluationError, match="No film could be read"):
        check_readings(readings(dataset([film("a", split="train")])))


def test_a_class_that_the_data_set_does_not_know_is_named_with_its_film():
    with pytest.raises(EvaluationError, match=r"Film a is of the unknown class 'il'.*ill"):
        classify(readings(dataset([film("a", "il")])))
