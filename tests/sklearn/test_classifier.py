"""GRAPE in scikit-learn's hands: fitted, asked, cloned, cross-validated and searched over."""

import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image, ImageOps
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import medgrape as mg
from medgrape.config import ConfigError
from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError
from medgrape.sklearn.classifier import _save_once
from medgrape.training.films import TrainingError
from medgrape.training.run import TrainingJob, train
from small_settings import small

TINY = small(
    backbone={"frozen_parts": 9},
    model={"prototypes": 2, "width": 8},
    stages={
        "concepts": {"epochs": 1, "augment": False},
        "prototypes": {"epochs": 1},
        "head": {"epochs": 1, "views": 1},
    },
)


@pytest.fixture(scope="module")
def films(drawn_dataset):
    return mg.labelled_films(drawn_dataset, "train", "val")


@pytest.fixture(scope="module")
def fitted(films):
    return mg.GrapeClassifier(TINY, validation=0.3).fit(films.films, films.classes)


def test_a_row_of_probabilities_for_each_film_in_the_order_of_the_classes(fitted, drawn_dataset):
    tested = mg.labelled_films(drawn_dataset, "test")
    shares = fitted.predict_proba(tested.films)

    assert fitted.classes_.tolist() == sorted(Dataset.load(drawn_dataset).classes)
    assert shares.shape == (len(tested.films), 3)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert fitted.predict(tested.films).tolist() == fitted.classes_[shares.argmax(axis=1)].tolist()
    right = fitted.predict(tested.films) == tested.classes
    assert fitted.score(tested.films, tested.classes) == pytest.approx(right.mean())


def test_predictions_equal_those_of_the_reader(fitted, films):
    (shares,) = fitted.predict_proba(films.films[:1])
    study = fitted.reader_.open(films.films[0].path)

    assert dict(zip(fitted.classes_, shares, strict=True)) == pytest.approx(dict(study.prediction), abs=1e-6)
    assert fitted.predict_proba([str(films.films[0].path)])[0] == pytest.approx(shares)


def test_findings_and_boxes_are_used(fitted, drawn_dataset):
    run = fitted.reader_.loaded.run
    assert run.concepts == Dataset.load(drawn_dataset).concepts
    assert run.metrics["data"]["splits"]["train"]["with_boxes"] > 0


@pytest.mark.slow
def test_a_pipeline_is_searched_with_whole_patients_in_each_fold(films, tmp_path):
    pipeline = Pipeline([("as they are", FunctionTransformer()), ("grape", mg.GrapeClassifier(TINY))])
    pipeline.set_params(grape__validation=0.3, grape__memory=tmp_path / "memory")
    grid = {"grape__stages__head__learning_rate": [1e-6, 0.1]}
    search = GridSearchCV(
        pipeline, grid, cv=GroupKFold(2), scoring="neg_log_loss", refit=False, error_score="raise",
    )  # fmt: skip
    search.fit(films.films, films.classes, groups=films.patients)

    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert scores[0] != scores[1]  # the setting reached the training
    kept = [path.name for path in (tmp_path / "memory").rglob("concepts.safetensors")]
    assert len(kept) == 2  # one for each fold, not for each fit: what candidates share is learnt once


def test_a_data_set_is_learnt_from_by_its_own_splits_and_found_again(drawn_dataset, tmp_path):
    classifier = mg.GrapeClassifier(TINY, runs=tmp_path / "runs").fit(drawn_dataset)
    made = (classifier.run_ / "manifest.json").stat().st_mtime_ns
    counted = classifier.reader_.loaded.run.metrics["data"]["splits"]
    again = clone(classifier).fit(str(drawn_dataset))

    assert {name: one["films"] for name, one in counted.items()} == {
        split: len(Dataset.load(drawn_dataset).in_split(split)) for split in ("train", "val")
    }
    assert (again.run_ / "manifest.json").stat().st_mtime_ns == made


def test_other_films_under_the_same_names_are_another_fit(films, tmp_path):
    paths = [tmp_path / f"{place}.png" for place in range(len(films.films))]
    for film, path in zip(films.films, paths, strict=True):
        Image.open(film.path).save(path)
    settings = {"model.method": "black-box", "stages.black_box.epochs": 1, "stages.black_box.batch": 16}
    classifier = mg.GrapeClassifier(TINY, settings=settings, validation=0.3, runs=tmp_path / "runs")
    first = clone(classifier).fit(paths, films.classes, patients=films.patients).run_
    again = clone(classifier).fit(paths, films.classes, patients=films.patients).run_
    ImageOps.invert(Image.open(paths[0])).save(paths[0])
    other = clone(classifier).fit(paths, films.classes, patients=films.patients).run_

    assert first == again
    assert other != first
    (data,) = (tmp_path / "runs").glob("films-*")
    with pytest.raises(TrainingError, match="before they were changed"):
        train(TrainingJob(classifier._configured(), data, first))


@pytest.mark.slow
def test_classes_keep_their_names_if_a_tool_numbers_them(films, fitted):
    classifier = mg.GrapeClassifier(TINY, settings={"stages.vectors.normal": ("healthy",)}, validation=0.3)
    shares = cross_val_predict(
        classifier, films.films, films.classes, cv=GroupKFold(2), groups=films.patients, method="predict_proba",
    )  # fmt: skip
    numbered = clone(fitted).fit(films.films, np.unique(films.classes, return_inverse=True)[1])

    assert shares.shape == (len(films.films), 3)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert numbered.classes_.tolist() == [0, 1, 2]
    assert numbered.reader_.classes == tuple(np.unique(films.classes))
    assert numbered.predict_proba(films.films[:3]) == pytest.approx(fitted.predict_proba(films.films[:3]))


def test_parallel_fits_may_share_a_folder(drawn_dataset, tmp_path, monkeypatch):
    dataset, both, save = Dataset.load(drawn_dataset), threading.Barrier(2, timeout=60), Dataset.save

    def in_step(self, folder):
        save(self, folder)
        if not folder.name.endswith(".part"):  # both know its name now, and find that it is not there
            both.wait()

    monkeypatch.setattr(Dataset, "save", in_step)
    with ThreadPoolExecutor(2) as threads:
        for attempt in range(5):
            room = tmp_path / str(attempt)
            one, other = threads.map(_save_once, [dataset] * 2, [room] * 2)
            assert one == other
            assert Dataset.load(one).films == dataset.films


@pytest.mark.slow
def test_a_search_in_two_processes_shares_runs_and_memory(films, tmp_path):
    classifier = mg.GrapeClassifier(TINY, validation=0.3, runs=tmp_path / "runs", memory=tmp_path / "memory")
    grid = {"stages__head__learning_rate": [0.01, 0.1, 0.1]}
    search = GridSearchCV(
        classifier, grid, cv=GroupKFold(2), scoring="neg_log_loss", error_score="raise", n_jobs=2
    )  # fmt: skip
    search.fit(films.films, films.classes, groups=films.patients)

    scores = search.cv_results_["mean_test_score"]
    assert scores[1] == scores[2]  # the same training, found again
    assert len(list((tmp_path / "runs").glob("films-*"))) == 3  # two folds, and all to fit again
    assert len(list((tmp_path / "runs").glob("*/manifest.json"))) == 5
    assert search.predict(films.films).shape == films.classes.shape


def test_paths_with_any_labels_can_be_fitted(films):
    paths = [str(film.path) for film in films.films]
    ill = (films.classes != "healthy").astype(int)
    classifier = mg.GrapeClassifier(TINY, settings={"stages.vectors.normal": ()}, normal=["0"], validation=0.3)
    scores = cross_val_score(
        classifier, np.array(paths), ill, cv=GroupKFold(2).split(paths, ill, films.patients),
        params={"patients": films.patients}, error_score="raise",
    )  # fmt: skip
    assert ((scores >= 0) & (scores <= 1)).all()


def test_labels_keep_their_kind(films):
    paths, ill = [film.path for film in films.films], (films.classes != "healthy").astype(int)
    settings = {"model.method": "black-box", "stages.black_box.epochs": 1, "stages.black_box.batch": 16}
    classifier = mg.GrapeClassifier(TINY, settings=settings, normal=["0"], validation=0.3)
    classifier.fit(paths, ill, patients=films.patients)

    assert classifier.classes_.tolist() == [0, 1]
    assert set(classifier.predict(paths[:4]).tolist()) <= {0, 1}
    with pytest.raises(UserError, match="Only GRAPE itself has a reader"):
        _ = classifier.reader_


def test_every_setting_can_be_read_set_and_cloned():
    classifier = mg.GrapeClassifier("demo")
    assert classifier.get_params()["stages__concepts__epochs"] == 10
    changed = clone(classifier).set_params(stages__concepts__epochs=np.int64(3), model__tau=0.2, seed=7)

    assert clone(changed).get_params()["stages__concepts__epochs"] == 3
    assert clone(changed).get_params(deep=False)["seed"] == 7
    assert classifier.get_params()["stages__concepts__epochs"] == 10
    assert is_classifier(classifier)
    with pytest.raises(ConfigError, match=r"no key 'stages\.concepts\.epoch' \(did you mean 'epochs'"):
        clone(classifier).set_params(stages__concepts__epoch=3)
    with pytest.raises(ConfigError, match=r"model\.tau"):
        clone(classifier).set_params(model__tau=2.0)
    with pytest.raises(ValueError, match="Invalid parameter 'epochs'"):
        clone(classifier).set_params(epochs=3)


def test_missing_settings_are_named():
    with pytest.raises(ConfigError, match=r"settings in demmo: there is no such file; give a file, or one of .*demo"):
        mg.GrapeClassifier("demmo").fit(["film.png"], ["ill"])
    with pytest.raises(ConfigError, match="not 5"):
        mg.GrapeClassifier().set_params(config=5)


@pytest.mark.parametrize(
    "refused",
    [
        {"model__tau": 2.0},
        {"settings": {"model.tau": 2.0}},
        {"settings": ["model.tau"]},
        {"config": "demmo"},
        {"seed": "seven"},
        {"validation": 0.4, "epochs": 3},
    ],
)
def test_a_change_that_is_refused_leaves_the_classifier_as_it_was(refused):
    classifier = mg.GrapeClassifier("demo", settings={"model.tau": 0.2})
    before = classifier.get_params()
    with pytest.raises(ValueError if "epochs" in refused else ConfigError):
        classifier.set_params(**refused)

    assert classifier.get_params() == before
    assert classifier.set_params(model__tau=0.3).get_params()["model__tau"] == 0.3


@pytest.mark.parametrize(
    ("bad", "mended"),
    [
        ({"config": "demmo"}, {"config": "demo"}),
        ({"config": 5}, {"config": None}),
        ({"settings": {"model.tau": 2.0}}, {"settings": None}),
        ({"settings": {"model.tau": 2.0}}, {"model__tau": 0.2}),
    ],
)
def test_a_classifier_with_bad_settings_can_be_shown_and_corrected(bad, mended):
    classifier = mg.GrapeClassifier(**bad)

    assert "GrapeClassifier" in classifier._repr_html_()
    assert not [name for name in classifier.get_params() if "__" in name]
    assert clone(classifier).set_params(**mended).get_params()["stages__concepts__epochs"] > 0


def test_a_temporary_run_is_deleted_with_its_classifier(films):
    classifier = mg.GrapeClassifier(TINY)
    room = classifier._runs_folder()
    assert room.is_dir()
    del classifier
    gc.collect()
    assert not room.exists()
    with pytest.raises(NotFittedError):
        mg.GrapeClassifier(TINY).predict(films.films)


def test_unusable_input_gives_an_error(films, fitted, drawn_dataset):
    classifier = mg.GrapeClassifier(TINY)
    with pytest.raises(UserError, match=r"There are \d+ films and 2 y"):
        classifier.fit(films.films, ["a", "b"])
    with pytest.raises(UserError, match="class of a path is unknown"):
        classifier.fit(["film.png"])
    with pytest.raises(UserError, match="not both at once"):
        classifier.fit([films.films[0], "film.png"], ["a", "b"])
    with pytest.raises(UserError, match=r"There are 2 films and 1 patients"):
        classifier.fit(["film.png", "film.png"], ["a", "b"], patients=["one"])
    with pytest.raises(UserError, match="Give films as one list"):
        fitted.predict([["film.png", "film.png"]])
    with pytest.raises(UserError, match="leave y and patients out"):
        classifier.fit(drawn_dataset, ["a"])
    with pytest.raises(UserError, match="Say which films"):
        fitted.predict(drawn_dataset)
    with pytest.raises(UserError, match="nowhere"):
        fitted.predict(["nowhere.png"])


def test_importing_medgrape_does_not_import_torch():
    asked = "import sys, medgrape; print(sorted({'torch', 'sklearn', 'huggingface_hub'} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mg.nothing
