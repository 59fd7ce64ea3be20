"""The loop that every stage goes through: epochs, steps, cosine schedule, clipping, model choice, checkpoints.

An epoch depends on nothing but its number, the seed and the state before it. So a training that was killed goes on
after its last whole epoch, and ends with the same bytes as one that was not.
"""

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import torch
from lightning_fabric import Fabric
from lightning_fabric.wrappers import _FabricModule
from torch import Tensor

from medgrape.config.training import Schedule
from medgrape.progress import Watch
from medgrape.training.barrier import Meeting
from medgrape.training.checkpoint import StageState, optimiser_tensors, put_back, put_optimiser_back, tensors_of
from medgrape.training.films import TrainingError
from medgrape.training.journal import Journal
from medgrape.training.stage import Figure, Lesson


@dataclass(frozen=True)
class Steps:
    """How the batches of an epoch become steps of the weights."""

    batches: int
    """To a step."""
    count: int
    """In an epoch. Batches that are too few for one more step are left over, as films are that are too few for one
    more batch: so an epoch is that of batches so many times as large."""

    @classmethod
    def of(cls, lesson: Lesson) -> "Steps":
        """As the settings say, at least one."""
        batches = min(lesson.schedule.accumulate, lesson.steps())
        return cls(batches, lesson.steps() // batches)

    @property
    def seen(self) -> int:
        """Batches that an epoch learns from."""
        return self.batches * self.count


def set_pace(optimiser: torch.optim.Optimizer, schedule: Schedule, step: int, steps: int) -> None:
    """Let the weights move as fast as that step of all ``steps`` is to move them."""
    for group in optimiser.param_groups:
        group["lr"] = schedule.learning_rate * pace(schedule, step, steps)


def pace(schedule: Schedule, step: int, steps: int) -> float:
    """Share of the learning rate at a step: up during the warm-up, then down along a cosine."""
    warm = schedule.warmup * steps
    if step < warm:
        return (step + 1) / (warm + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1)))


@dataclass(frozen=True)
class Workshop:
    """Where training happens: devices, folder, seed, and who is told."""

    fabric: Fabric
    folder: Path
    seed: int
    journal: Journal
    watch: Watch
    meeting: Meeting = field(default_factory=Meeting)
    """Those who share the work, where there are several."""

    @property
    def leads(self) -> bool:
        """Whether this process writes files and tells people; of several, one does."""
        return bool(self.fabric.is_global_zero)

    @property
    def share(self) -> tuple[int, int]:
        """Which process this is, of how many."""
        return self.fabric.global_rank, self.fabric.world_size

    def chance(self, *what: object) -> None:
        """Seed torch for one thing: dropout of one epoch, first weights of one part."""
        digest = hashlib.sha256("/".join(map(str, (self.seed, *what))).encode()).digest()
        torch.manual_seed(int.from_bytes(digest[:7]))


def learn(lesson: Lesson, workshop: Workshop) -> StageState:
    """Go through a stage, or through what is left of it; the best epoch's weights are in the learner afterwards."""
    path = workshop.folder / f"{lesson.name}.safetensors"
    state = _reached(path, workshop.meeting)
    if state is None or not state.finished:
        state = _Course(lesson, workshop, path).run(state)
    put_back(lesson.learner, state.best)
    return state


def _reached(path: Path, meeting: Meeting) -> StageState | None:
    """Where an earlier attempt has left the stage: for all processes, where the first one says."""
    state = StageState.load(path)
    first = meeting.told(_standing(state))
    if _standing(state) != first:
        meeting.expect(lambda: _standing(StageState.load(path)) == first, path)
        state = StageState.load(path)
    return state


def _standing(state: StageState | None) -> tuple[int, bool] | None:
    return None if state is None else (state.epoch, state.finished)


@dataclass
class _Course:
    lesson: Lesson
    workshop: Workshop
    path: Path

    def run(self, state: StageState | None) -> StageState:
        fabric, schedule, learner = self.workshop.fabric, self.lesson.schedule, self.lesson.learner
        learning = [weights for weights in learner.parameters() if weights.requires_grad]
        if not learning:
            raise TrainingError(f"Nothing learns in stage {self.lesson.name!r}; see its key 'learns'.")
        optimiser = torch.optim.AdamW(learning, lr=schedule.learning_rate, weight_decay=schedule.weight_decay)
        if state is not None:
            put_back(learner, state.learner)
        wrapped, optimised = fabric.setup(learner, optimiser)
        if state is not None:
            put_optimiser_back(optimiser, state.optimiser)
        state = state or StageState(0, {}, {}, {}, None, 0)
        seen = Steps.of(self.lesson).seen
        with self.workshop.watch(f"stage {self.lesson.name}", schedule.epochs * seen, state.epoch * seen) as step:
            while not self._is_over(state):
                state = self._epoch(state, wrapped, optimised, step)
        return state

    def _is_over(self, state: StageState) -> bool:
        return state.finished or state.epoch >= self.lesson.schedule.epochs

    def _epoch(
        self, state: StageState, learner: _FabricModule, optimiser: torch.optim.Optimizer, step: Callable[[str], None]
    ) -> StageState:
        began, epoch = time.monotonic(), state.epoch + 1
        self.workshop.chance(self.lesson.name, epoch)
        loss = self._teach(epoch, learner, optimiser, step, _last_news(state))
        figure: Figure = self.workshop.fabric.broadcast(self.lesson.validate())  # all must agree when to stop
        better = self.lesson.schedule.choose == "last" or figure.beats(state.figure)
        entry = {
            "stage": self.lesson.name, "epoch": epoch, "train_loss": loss, "val_loss": figure.loss,
            "val_score": figure.score, "figure": figure.name, "best": better,
            "learning_rate": optimiser.param_groups[0]["lr"], "seconds": round(time.monotonic() - began, 3),
            "processes": self.workshop.fabric.world_size,
        }  # fmt: skip
        tensors = tensors_of(self.lesson.learner)
        best_epoch = epoch if better else state.best_epoch
        patience = self.lesson.schedule.patience
        after = StageState(
            epoch=epoch,
            learner=tensors,
            best=tensors if better else state.best,
            optimiser=optimiser_tensors(getattr(optimiser, "optimizer", optimiser)),
            figure=figure if better else state.figure,
            best_epoch=best_epoch,
            history=[*state.history, entry],
            finished=epoch >= self.lesson.schedule.epochs or (0 < patience <= epoch - best_epoch),
        )
        if self.workshop.leads:
            after.save(self.path)
            self.workshop.journal.add(entry)
        return after

    def _teach(
        self,
        epoch: int,
        learner: _FabricModule,
        optimiser: torch.optim.Optimizer,
        step: Callable[[str], None],
        news: str,
    ) -> float:
        """All batches of an epoch; the mean loss over them, and over all processes."""
        fabric, schedule, steps = self.workshop.fabric, self.lesson.schedule, Steps.of(self.lesson)
        total = 0.0
        for number, batch in enumerate(islice(self.lesson.batches(epoch), steps.seen)):
            whole, part = divmod(number, steps.batches)
            if part == 0:
                set_pace(optimiser, schedule, (epoch - 1) * steps.count + whole, schedule.epochs * steps.count)
                optimiser.zero_grad(set_to_none=True)
            last = part == steps.batches - 1
            with fabric.no_backward_sync(learner, enabled=not last):  # exchanged once a step
                loss = self.lesson.loss(learner, batch)
                _refuse_nonsense(loss, self.lesson.name, epoch)
                fabric.backward(loss / steps.batches)
            if last:
                self._step(learner, optimiser)
            total += float(loss.detach())
            step(f"epoch {epoch}/{schedule.epochs}  loss {total / (number + 1):.3f}  {news}")
        return _mean_of_all(fabric, total / steps.seen)

    def _step(self, learner: _FabricModule, optimiser: torch.optim.Optimizer) -> None:
        if self.lesson.schedule.clip > 0:
            self.workshop.fabric.clip_gradients(learner, optimiser, max_norm=self.lesson.schedule.clip)
        optimiser.step()


def _mean_of_all(fabric: Fabric, value: float) -> float:
    if fabric.world_size == 1:
        return value
    mean = fabric.all_reduce(torch.tensor(value, device=fabric.device), reduce_op="mean")
    assert isinstance(mean, Tensor)  # noqa: S101 (what goes in comes out)
    return float(mean)


def _last_news(state: StageState) -> str:
    if not state.history:
        return ""
    last = state.history[-1]
    return f"validation {last['figure']} {last['val_score']:.3f}"


def _refuse_nonsense(loss: Tensor, stage: str, epoch: int) -> None:
    if not torch.isfinite(loss.detach()):
        raise TrainingError(
            f"The loss of stage {stage!r} is not a number in epoch {epoch}; lower stages.{stage}.learning_rate."
        )
