"""Several batches to a step: the weights move as if there had been one larger batch."""

import json

import pytest
import torch
from lightning_fabric import Fabric
from safetensors.torch import load_file
from torch import nn

from medgrape.config.settings import Schedule
from medgrape.errors import UserError
from medgrape.progress import unwatched
from medgrape.training.loop import TrainingContext, pace, run_stage
from medgrape.training.run import TrainingJob, train
from medgrape.training.stage import StageTraining, ValidationResult
from medgrape.training.training_log import TrainingLog
from small_settings import small

FILMS = 22
EPOCHS = 3


class LineStage(StageTraining):
    """A straight line through points; batches in the order of the points, an incomplete one left over."""

    name = "line"

    def __init__(self, batch, accumulate, **schedule):
        settings = {"epochs": EPOCHS, "learning_rate": 0.05, "warmup": 0.3, "choose": "last"} | schedule
        self.schedule = Schedule(batch=batch, accumulate=accumulate, **settings)
        self.points = torch.linspace(-1, 2, FILMS).unsqueeze(1)
        self.learner = nn.Linear(1, 1)
        nn.init.zeros_(self.learner.weight)
        nn.init.zeros_(self.learner.bias)
        self.seen = 0

    def steps(self):
        return FILMS // self.schedule.batch

    def batches(self, epoch):  # noqa: ARG002 (always the same)
        return [self.points[start : start + self.schedule.batch] for start in self._starts()]

    def _starts(self):
        return range(0, self.steps() * self.schedule.batch, self.schedule.batch)

    def loss(self, learner, batch):
        self.seen += len(batch)
        return (learner(batch) - 3 * batch.square() + 1).square().mean()

    def validate(self):
        return ValidationResult(0.0, 0.0, "nothing")


@pytest.fixture
def learnt(tmp_path):
    """Weights after a stage, and how many steps the optimiser took."""

    def through(stage):
        folder = tmp_path / f"{stage.schedule.batch}x{stage.schedule.accumulate}x{stage.schedule.clip}"
        log = TrainingLog(folder)
        log.begin([])
        state = run_stage(stage, TrainingContext(Fabric(accelerator="cpu"), folder, 0, log, unwatched))
        log.close()
        return torch.cat([state.best["weight"].flatten(), state.best["bias"]]), int(state.optimiser["0/step"])

    return through


@pytest.mark.parametrize("clip", [0.0, 0.5])
@pytest.mark.parametrize(("batch", "accumulate"), [(1, 4), (2, 3), (5, 2), (4, 5), (2, 11)])
def test_accumulated_batches_train_like_one_larger_batch(learnt, batch, accumulate, clip):
    """Also where batches are left over at the end of an epoch: 22 films, batches of 5, two to a step."""
    apart, steps = learnt(LineStage(batch, accumulate, clip=clip))
    at_once, as_many = learnt(LineStage(batch * accumulate, 1, clip=clip))
    assert steps == as_many
    torch.testing.assert_close(apart, at_once, rtol=1e-5, atol=1e-6)


def test_accumulated_gradients_equal_a_plain_loop_over_films(learnt):
    batch, accumulate = 2, 3
    stage = LineStage(batch, accumulate, clip=0.0)
    slow = nn.Linear(1, 1)
    nn.init.zeros_(slow.weight)
    nn.init.zeros_(slow.bias)
    optimiser = torch.optim.AdamW(slow.parameters(), lr=1.0, weight_decay=stage.schedule.weight_decay)
    groups = FILMS // batch // accumulate
    for step in range(EPOCHS * groups):
        first = (step % groups) * batch * accumulate
        sums = [torch.zeros_like(weights) for weights in slow.parameters()]
        for point in stage.points[first : first + batch * accumulate]:
            cost = (slow(point) - 3 * point.square() + 1).square().sum()
            for total, gradient in zip(sums, torch.autograd.grad(cost, list(slow.parameters())), strict=True):
                total += gradient
        for weights, total in zip(slow.parameters(), sums, strict=True):
            weights.grad = total / (batch * accumulate)
        optimiser.param_groups[0]["lr"] = 0.05 * pace(stage.schedule, step, EPOCHS * groups)
        optimiser.step()
    fast, steps = learnt(stage)
    assert steps == EPOCHS * groups
    expected = torch.cat([weights.detach().flatten() for weights in slow.parameters()])
    torch.testing.assert_close(fast, expected, rtol=1e-5, atol=1e-6)


def test_batches_too_few_for_a_step_are_not_read(learnt):
    stage = LineStage(batch=5, accumulate=3)  # four batches: one step of three
    _, steps = learnt(stage)
    assert (steps, stage.seen) == (EPOCHS, EPOCHS * 15)


def test_a_step_has_at_most_all_batches_of_an_epoch(learnt):
    stage = LineStage(batch=5, accumulate=100)
    _, steps = learnt(stage)
    assert (steps, stage.seen) == (EPOCHS, EPOCHS * 20)


def test_a_step_of_zero_batches_is_refused():
    with pytest.raises(UserError, match="accumulate"):
        small(stages={"head": {"accumulate": 0}})


def test_stage_one_learns_the_same_from_four_films_twice_as_from_eight(drawn_dataset, tmp_path):
    """Real films, all losses of the stage, no batch statistics; what follows it is left as it is."""
    found = {}
    for batch, accumulate in ((8, 1), (4, 2)):
        config = small(stages={"concepts": {"batch": batch, "accumulate": accumulate}})
        run = train(TrainingJob(config, drawn_dataset, tmp_path / f"{batch}x{accumulate}"))
        found[batch] = load_file(run / "model.safetensors")
    for name, weights in found[8].items():
        if name.startswith(("backbone", "cam")):
            torch.testing.assert_close(found[4][name], weights, rtol=1e-3, atol=2e-4)
    begun = load_file(
        train(TrainingJob(small(stages={"concepts": {"batch": 4}}), drawn_dataset, tmp_path / "4"))
        / "model.safetensors"
    )
    assert not torch.allclose(begun["cam.maps.weight"], found[8]["cam.maps.weight"], atol=2e-4)


def test_later_stages_accumulate_batches_too(drawn_dataset, trained_run, tmp_path):
    several = {"accumulate": 2}
    run = train(TrainingJob(small(stages={"prototypes": several, "head": several}), drawn_dataset, tmp_path / "run"))
    apart, usual = load_file(run / "model.safetensors"), load_file(trained_run / "model.safetensors")
    moved = {name.split(".")[0] for name in usual if not torch.equal(usual[name], apart[name])}
    assert moved >= {"atlas", "head"}
    assert not moved & {"backbone", "cam"}


def test_half_precision_accumulates_gradients_in_full_precision(drawn_dataset, tmp_path):
    losses = []
    for batch, accumulate in ((8, 1), (2, 4)):
        settings = {"batch": batch, "accumulate": accumulate, "epochs": 3}
        config = small(stages={"concepts": settings}, training={"precision": "bf16"})
        run = train(TrainingJob(config, drawn_dataset, tmp_path / f"{batch}"))
        entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
        losses.append([entry["train_loss"] for entry in entries if entry["stage"] == "concepts"])
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
