"""A folder of finished stages, from which trainings that differ later on begin."""

import json
from collections import Counter
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import load_file

from medgrape.training.run import TrainingJob, train
from small_settings import small


class StepCounter:
    """Counts the steps of each stage that is really gone through."""

    def __init__(self):
        self.steps = Counter()

    @contextmanager
    def __call__(self, label, total, done=0):  # noqa: ARG002 (as every watch is called)
        yield lambda news: self.steps.update([label])  # noqa: ARG005


def train_and_count(job):
    """The run, and the stages that it went through."""
    counter = StepCounter()
    return train(job, watch=counter), set(counter.steps)


ALL = {"stage concepts", "stage prototypes", "stage head"}


def kept_under(kept, name):
    """How many different ones of that name are kept."""
    return len(list(kept.glob(f"*/{name}")))


def backbone(run):
    tensors = load_file(run / "model.safetensors")
    return {name: tensor for name, tensor in tensors.items() if name.startswith("backbone")}


def log(run):
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def test_trainings_with_different_prototypes_share_the_first_stage(drawn_dataset, tmp_path):
    kept = tmp_path / "kept"
    first, stages = train_and_count(TrainingJob(small(), drawn_dataset, tmp_path / "first", kept))
    assert stages == ALL
    changed = small(stages={"prototypes": {"background": False, "dispersion": 0.0}})
    second, stages = train_and_count(TrainingJob(changed, drawn_dataset, tmp_path / "second", kept))
    assert stages == ALL - {"stage concepts"}
    assert all(torch.equal(tensor, backbone(second)[name]) for name, tensor in backbone(first).items())
    assert log(second)[:2] == log(first)[:2], "the log of the first stage, with its seconds"
    assert kept_under(kept, "concepts.safetensors") == kept_under(kept, "early") == 1
    assert kept_under(kept, "prototypes.safetensors") == kept_under(kept, "scores") == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"model": {"head": "linear", "standardise": False}},
        pytest.param({"model": {"tau": 0.9}}, marks=pytest.mark.slow),
        pytest.param({"text": {"encoder": "none"}}, marks=pytest.mark.slow),
    ],
)
def test_trainings_with_different_heads_share_everything_before_it(changed, drawn_dataset, tmp_path):
    """Another text encoder changes prototypes, but not the first stage."""
    kept = tmp_path / "kept"
    train(TrainingJob(small(), drawn_dataset, tmp_path / "first", kept))
    alone = train(TrainingJob(small(**changed), drawn_dataset, tmp_path / "alone"))
    taken, stages = train_and_count(TrainingJob(small(**changed), drawn_dataset, tmp_path / "second", kept))
    assert stages == (ALL - {"stage concepts"} if "text" in changed else {"stage head"})
    assert (taken / "model.safetensors").read_bytes() == (alone / "model.safetensors").read_bytes()


def test_shared_stages_are_not_changed_by_trainings_that_use_them(drawn_dataset, tmp_path):
    kept = tmp_path / "kept"
    train(TrainingJob(small(), drawn_dataset, tmp_path / "first", kept))
    before = {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}
    train(TrainingJob(small(model={"head": "mlp"}), drawn_dataset, tmp_path / "second", kept))
    assert {path: path.read_bytes() for path in before} == before


def test_a_shared_first_stage_gives_the_same_run(trained_run, drawn_dataset, tmp_path):
    kept = tmp_path / "kept"
    train(TrainingJob(small(stages={"head": {"epochs": 1}}), drawn_dataset, tmp_path / "first", kept))
    taken = train(TrainingJob(small(), drawn_dataset, tmp_path / "second", kept))
    assert (taken / "model.safetensors").read_bytes() == (trained_run / "model.safetensors").read_bytes()


@pytest.mark.parametrize("tables", [{"stages": {"concepts": {"box_weight": 0.5}}}, {"preprocessing": {"size": 80}}])
def test_a_first_stage_with_other_settings_is_not_shared(tables, drawn_dataset, tmp_path):
    kept = tmp_path / "kept"
    train(TrainingJob(small(), drawn_dataset, tmp_path / "first", kept))
    assert train_and_count(TrainingJob(small(**tables), drawn_dataset, tmp_path / "second", kept))[1] == ALL
    assert kept_under(kept, "concepts.safetensors") == 2


def test_a_first_stage_with_another_seed_is_not_shared(drawn_dataset, tmp_path):
    kept = tmp_path / "kept"
    train(TrainingJob(small(), drawn_dataset, tmp_path / "first", kept))
    other = small().model_copy(update={"seed": 1})
    assert train_and_count(TrainingJob(other, drawn_dataset, tmp_path / "second", kept))[1] == ALL
