"""Baselines learn by the same command, into runs of their own kind."""

import json
import shutil

import numpy as np
import pytest
import torch

from medgrape.baselines.methods import LoadedBaseline, load_any
from medgrape.datasets.augment import RandomViews, augmented
from medgrape.datasets.dataset import Dataset
from medgrape.evaluation.evaluate import evaluate_run
from medgrape.runs.checkpoint import load_run
from medgrape.runs.manifest import RunError
from medgrape.training.films import TrainingError
from medgrape.training.run import TrainingJob, train
from medgrape.training.stored_features import Views
from small_settings import small

pytestmark = pytest.mark.xdist_group("baselines")  # each is trained once for all of these tests
METHODS = ("black-box", "cbm", "pip-net")
BRIEF = {
    "concepts": {"views": 3},
    "black_box": {"epochs": 2, "batch": 16},
    "cbm": {"epochs": 2, "batch": 16},
    "pip_net_parts": {"epochs": 2, "batch": 8, "parts": 12},
    "pip_net": {"epochs": 3, "batch": 8, "hold": 1},
}


def settings(method, **model):
    return small(model={"method": method, **model}, stages=BRIEF)


@pytest.fixture(scope="session", params=METHODS)
def compared(request, drawn_dataset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    return train(TrainingJob(settings(request.param), drawn_dataset, folder / request.param))


def test_a_baseline_is_trained_sealed_and_evaluated(compared, drawn_dataset, tmp_path):
    loaded = load_any(compared)
    assert isinstance(loaded, LoadedBaseline)
    assert loaded.run.metrics["validation"]
    evaluation, files = evaluate_run(loaded, drawn_dataset, tmp_path / "report")
    assert evaluation.interaction is None
    assert evaluation.dispersion.within is None
    assert evaluation.localisation.per_pair.cam is None
    assert files.html.is_file()
    payload = json.loads(files.json.read_text())
    assert payload["facts"]["method"] == compared.name


def test_loading_a_baseline_as_grape_is_refused(compared):
    with pytest.raises(RunError, match=f"is a run of {compared.name}, which has no prototypes"):
        load_run(compared)


@pytest.mark.parametrize(("name", "content"), [("metrics.json", "{}"), ("architecture.json", "{")])
def test_an_altered_baseline_is_refused(name, content, compared, tmp_path):
    altered = shutil.copytree(compared, tmp_path / "altered")
    (altered / name).write_text(content)
    with pytest.raises(RunError, match="was altered"):
        load_any(altered)


def test_training_again_gives_the_same_bytes(compared, drawn_dataset, tmp_path):
    again = train(TrainingJob(settings(compared.name), drawn_dataset, tmp_path / "again"))
    assert (again / "model.safetensors").read_bytes() == (compared / "model.safetensors").read_bytes()


def test_a_finished_baseline_is_not_trained_again(compared, drawn_dataset):
    before = (compared / "manifest.json").stat().st_mtime_ns
    train(TrainingJob(settings(compared.name), drawn_dataset, compared))
    assert (compared / "manifest.json").stat().st_mtime_ns == before


def test_every_method_gives_maps_of_the_same_concepts(compared, drawn_dataset):
    run, dataset = load_any(compared).run, Dataset.load(drawn_dataset)
    seen = run.model.predict_with_all_maps(torch.rand(2, 1, 64, 64))
    assert seen.maps.shape[:2] == (2, len(dataset.concepts))
    assert seen.logits.shape == (2, len(dataset.classes))
    assert np.isfinite(seen.maps.numpy()).all()


def test_pip_net_needs_two_views_beside_the_film(drawn_dataset, tmp_path):
    for place, changed in enumerate(({"views": 2}, {"augment": False})):
        config = small(model={"method": "pip-net"}, stages=BRIEF | {"concepts": changed})
        with pytest.raises(TrainingError, match="compares two views"):
            train(TrainingJob(config, drawn_dataset, tmp_path / f"run{place}"))


def test_paired_views_have_the_same_position_and_different_grey_levels():
    views, films = Views(0, augment=True, paired=True), torch.rand(2, 1, 32, 32)
    first, second, next_pair = (views.random([0, 1], number) for number in (1, 2, 3))
    torch.testing.assert_close(first.transforms(), second.transforms())
    assert not torch.allclose(first.transforms(), next_pair.transforms())
    assert first.gammas() != second.gammas()
    even = torch.full_like(films, 0.5)
    assert not torch.allclose(augmented(even, first), augmented(even, second))
    assert RandomViews([(0, 1, 0)]).gammas() == RandomViews([(0, 1, 0)], greys=0).gammas()
