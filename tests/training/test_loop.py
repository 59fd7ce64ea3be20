"""The loop with a stage of one number."""

import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

from medgrape.config.settings import Schedule
from medgrape.progress import unwatched
from medgrape.training.films import TrainingError
from medgrape.training.loop import TrainingContext, run_stage
from medgrape.training.stage import StageTraining, ValidationResult
from medgrape.training.training_log import TrainingLog


class ToyStage(StageTraining):
    """One weight is pulled towards 10; validation returns the given scores."""

    name = "toy"

    def __init__(self, scores, **schedule):
        self.schedule = Schedule(**({"epochs": len(scores), "learning_rate": 0.5} | schedule))
        self.learner = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.learner.weight)
        self._scores, self.validated = scores, []

    def steps(self):
        return 2

    def batches(self, epoch):  # noqa: ARG002 (always the same)
        return [torch.ones(1, 1)] * 2

    def loss(self, learner, batch):
        return (learner(batch) - 10).square().sum()

    def validate(self):
        self.validated.append(float(self.learner.weight.detach()))
        score = self._scores[len(self.validated) - 1]
        return ValidationResult(score, loss=0.0, name="score")


@pytest.fixture
def context(tmp_path):
    log = TrainingLog(tmp_path)
    log.begin([])
    yield TrainingContext(Fabric(accelerator="cpu"), tmp_path, 0, log, unwatched)
    log.close()


def test_the_epoch_with_the_best_validation_score_is_kept(context):
    stage = ToyStage([0.1, 0.9, 0.5, 0.9])
    state = run_stage(stage, context)
    assert state.best_epoch == 2  # the first of equals
    assert float(stage.learner.weight.detach()) == stage.validated[1]
    assert [entry["best"] for entry in state.history] == [True, True, False, False]


def test_the_last_epoch_is_kept_if_the_settings_say_so(context):
    stage = ToyStage([0.1, 0.9, 0.5, 0.2], choose="last")
    state = run_stage(stage, context)
    assert state.best_epoch == 4
    assert float(stage.learner.weight.detach()) == stage.validated[3]
    assert state.result.score == 0.2  # the score of the kept epoch


def test_early_stopping_ends_a_stage_without_improvement(context):
    stage = ToyStage([0.1, 0.5, 0.4, 0.3, 0.9, 0.9], patience=2)
    state = run_stage(stage, context)
    assert (state.epoch, state.best_epoch, state.finished) == (4, 2, True)


def test_a_finished_stage_is_not_run_again(context):
    first = ToyStage([0.1, 0.2])
    run_stage(first, context)
    again = ToyStage([0.0])
    run_stage(again, context)
    assert again.validated == []
    assert torch.equal(again.learner.weight, first.learner.weight)


def test_a_large_gradient_is_clipped(context):
    """AdamW hides the gradient's size; what it remembers of it does not."""
    stage = ToyStage([0.1], clip=0.01)
    state = run_stage(stage, context)
    assert float(state.optimiser["0/exp_avg"].abs()) <= 0.01


def test_a_loss_of_nan_raises_an_error_with_advice(context):
    stage = ToyStage([0.1])
    stage.loss = lambda learner, batch: learner(batch).sum() * torch.nan
    with pytest.raises(TrainingError, match=r"lower stages\.toy\.learning_rate"):
        run_stage(stage, context)


def test_the_log_draws_its_curves(context, tmp_path):
    run_stage(ToyStage([0.1, 0.7, 0.6]), context)
    context.log.draw()
    assert (tmp_path / "curves.png").stat().st_size > 5000
