"""The training loop of every stage: epochs, cosine schedule, clipping, best epoch, checkpoints.

An epoch depends only on its number, the seed and the state before it. So a training that was killed continues after its
last complete epoch, and ends with the same bytes as one that was not.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.wrappers import _FabricModule
from safetensors import safe_open
from torch import Tensor

from medgrape.config.settings import Schedule
from medgrape.files import write_tensors
from medgrape.progress import Watch
from medgrape.training.films import TrainingError
from medgrape.training.processes import Barrier
from medgrape.training.stage import StageTraining, ValidationResult
from medgrape.training.training_log import TrainingLog

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class StageState:
    """Checkpoint of a stage after ``epoch`` epochs: a safetensors file with a line of JSON in its header."""

    epoch: int
    learner: Tensors
    best: Tensors
    optimiser: Tensors
    result: ValidationResult | None  # Validation result of the best epoch
    best_epoch: int
    history: list[dict[str, Any]] = field(default_factory=list)
    finished: bool = False

    def save(self, path: Path) -> None:
        """Write the checkpoint; it replaces the one in ``path`` at once."""
        groups = {"learner": self.learner, "optimiser": self.optimiser}
        if self.best is not self.learner:  # otherwise the last epoch is the best and is written once
            groups["best"] = self.best
        tensors = {f"{group}/{name}": tensor for group, named in groups.items() for name, tensor in named.items()}
        header = {
            "epoch": self.epoch, "figure": None if self.result is None else asdict(self.result),
            "best_epoch": self.best_epoch, "history": self.history, "finished": self.finished,
        }  # fmt: skip
        write_tensors(path, tensors, {"state": json.dumps(header)})

    @classmethod
    def load(cls, path: Path) -> "StageState | None":
        """Load a checkpoint; None if there is no such file."""
        if not path.is_file():
            return None
        groups: dict[str, Tensors] = {"learner": {}, "best": {}, "optimiser": {}}
        with safe_open(path, framework="pt") as file:
            header = json.loads(file.metadata()["state"])
            for key in file.keys():  # noqa: SIM118 (not a mapping)
                group, name = key.split("/", 1)
                groups[group][name] = file.get_tensor(key)
        figure, best = header.pop("figure"), groups["best"] or groups["learner"]
        result = None if figure is None else ValidationResult(**figure)
        return cls(learner=groups["learner"], best=best, optimiser=groups["optimiser"], result=result, **header)


def history(folder: Path, stages: Sequence[str]) -> list[dict[str, Any]]:
    """Return the log entries of every epoch that is in the checkpoints of a folder."""
    states = (StageState.load(folder / f"{stage}.safetensors") for stage in stages)
    return [entry for state in states if state is not None for entry in state.history]


def summary_of_stages(states: Mapping[str, StageState]) -> dict[str, dict[str, Any]]:
    """Return the chosen epoch of each stage with its validation result."""
    return {
        stage: {"best_epoch": state.best_epoch, "epochs": state.epoch, "figure": state.result.name,
                "score": state.result.score, "loss": state.result.loss}
        for stage, state in states.items() if state.result is not None
    }  # fmt: skip


@dataclass(frozen=True)
class TrainingContext:
    """Devices, folder, seed, log and progress of a training."""

    fabric: Fabric
    folder: Path
    seed: int
    log: TrainingLog
    watch: Watch
    barrier: Barrier = field(default_factory=Barrier)

    @property
    def is_rank_zero(self) -> bool:
        """Whether this process writes files and the log."""
        return bool(self.fabric.is_global_zero)

    @property
    def share(self) -> tuple[int, int]:
        """Rank of this process and number of processes."""
        return self.fabric.global_rank, self.fabric.world_size

    def seed_torch(self, *purpose: object) -> None:
        """Seed torch for one purpose, such as the dropout of an epoch."""
        digest = hashlib.sha256("/".join(map(str, (self.seed, *purpose))).encode()).digest()
        torch.manual_seed(int.from_bytes(digest[:7]))


def pace(schedule: Schedule, step: int, steps: int) -> float:
    """Return the fraction of the learning rate at a step: linear warm-up, then a cosine."""
    warm = schedule.warmup * steps
    if step < warm:
        return (step + 1) / (warm + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1)))


def run_stage(stage: StageTraining, context: TrainingContext) -> StageState:
    """Train a stage, or the rest of it; afterwards the learner has the weights of the best epoch."""
    path = context.folder / f"{stage.name}.safetensors"
    state = _checkpoint(path, context.barrier)
    if state is None or not state.finished:
        state = _Loop(stage, context, path).run(state)
    stage.learner.load_state_dict(state.best, strict=True)
    return state


def _checkpoint(path: Path, barrier: Barrier) -> StageState | None:
    """Load the checkpoint that rank 0 sees; the other processes wait until they see it too."""

    def progress(state: StageState | None) -> tuple[int, bool] | None:
        return None if state is None else (state.epoch, state.finished)

    state = StageState.load(path)
    first = barrier.broadcast(progress(state))
    if progress(state) != first:
        barrier.wait_until(lambda: progress(StageState.load(path)) == first, path)
        state = StageState.load(path)
    return state


class _Loop:
    """The epochs of one stage."""

    def __init__(self, stage: StageTraining, context: TrainingContext, path: Path) -> None:
        self._stage, self._context, self._path, self._schedule = stage, context, path, stage.schedule
        self._accumulate = min(self._schedule.accumulate, stage.steps())  # batches of an optimiser step
        # Remaining batches that do not fill an optimiser step are dropped, like films that do not fill a batch.
        self._steps = stage.steps() // self._accumulate
        self._batches = self._steps * self._accumulate

    def run(self, state: StageState | None) -> StageState:
        """Train until the last epoch, or until early stopping."""
        schedule, learner = self._schedule, self._stage.learner
        trained = [weights for weights in learner.parameters() if weights.requires_grad]
        if not trained:
            raise TrainingError(f"No part is trained in stage {self._stage.name!r}; see its key 'learns'.")
        optimiser = torch.optim.AdamW(trained, lr=schedule.learning_rate, weight_decay=schedule.weight_decay)
        if state is not None:
            learner.load_state_dict(state.learner, strict=True)
        wrapped, wrapped_optimiser = self._context.fabric.setup(learner, optimiser)
        if state is None:
            state = StageState(0, {}, {}, {}, None, 0)
        else:
            _load_optimiser(optimiser, state.optimiser)
        label, batches = f"stage {self._stage.name}", self._batches
        with self._context.watch(label, schedule.epochs * batches, state.epoch * batches) as step:
            while not (state.finished or state.epoch >= schedule.epochs):
                state = self._epoch(state, wrapped, wrapped_optimiser, step)
        return state

    def _epoch(
        self, state: StageState, learner: _FabricModule, optimiser: torch.optim.Optimizer, step: Callable[[str], None]
    ) -> StageState:
        began, epoch, schedule, fabric = time.monotonic(), state.epoch + 1, self._schedule, self._context.fabric
        self._context.seed_torch(self._stage.name, epoch)
        last = state.history[-1] if state.history else None
        suffix = "" if last is None else f"validation {last['figure']} {last['val_score']:.3f}"
        loss = self._train_epoch(epoch, learner, optimiser, lambda message: step(f"{message}  {suffix}"))
        result: ValidationResult = fabric.broadcast(self._stage.validate())  # all processes must stop together
        better = schedule.choose == "last" or result.beats(state.result)
        entry = {
            "stage": self._stage.name, "epoch": epoch, "train_loss": loss, "val_loss": result.loss,
            "val_score": result.score, "figure": result.name, "best": better,
            "learning_rate": optimiser.param_groups[0]["lr"], "seconds": round(time.monotonic() - began, 3),
            "processes": fabric.world_size,
        }  # fmt: skip
        tensors = {name: tensor.detach().clone() for name, tensor in self._stage.learner.state_dict().items()}
        chosen = (tensors, result, epoch) if better else (state.best, state.result, state.best_epoch)
        best, best_result, best_epoch = chosen
        finished = epoch >= schedule.epochs or (0 < schedule.patience <= epoch - best_epoch)
        moments = _optimiser_tensors(getattr(optimiser, "optimizer", optimiser))
        after = StageState(epoch, tensors, best, moments, best_result, best_epoch, [*state.history, entry], finished)
        if self._context.is_rank_zero:
            after.save(self._path)
            self._context.log.add(entry)
        return after

    def _train_epoch(
        self, epoch: int, learner: _FabricModule, optimiser: torch.optim.Optimizer, report: Callable[[str], None]
    ) -> float:
        """Train on all batches; return the mean loss over batches and processes."""
        fabric, schedule, total = self._context.fabric, self._schedule, 0.0
        for number, batch in enumerate(islice(self._stage.batches(epoch), self._batches)):
            step, part = divmod(number, self._accumulate)
            if part == 0:
                rate = pace(schedule, (epoch - 1) * self._steps + step, schedule.epochs * self._steps)
                for group in optimiser.param_groups:
                    group["lr"] = schedule.learning_rate * rate
                optimiser.zero_grad(set_to_none=True)
            is_last = part == self._accumulate - 1
            with fabric.no_backward_sync(learner, enabled=not is_last):  # gradients are exchanged once a step
                loss = self._stage.loss(learner, batch)
                if not torch.isfinite(loss.detach()):
                    raise TrainingError(
                        f"The loss of stage {self._stage.name!r} is not a number in epoch {epoch}; "
                        f"lower stages.{self._stage.name}.learning_rate."
                    )
                fabric.backward(loss / self._accumulate)
            if is_last:
                if schedule.clip > 0:
                    fabric.clip_gradients(learner, optimiser, max_norm=schedule.clip)
                optimiser.step()
            total += float(loss.detach())
            report(f"epoch {epoch}/{schedule.epochs}  loss {total / (number + 1):.3f}")
        mean = total / self._batches
        if fabric.world_size > 1:
            mean = float(fabric.all_reduce(torch.tensor(mean, device=fabric.device), reduce_op="mean"))  # type: ignore[arg-type]
        return mean


def _optimiser_tensors(optimiser: torch.optim.Optimizer) -> Tensors:
    """Copy the moments of AdamW, by the number of the parameter."""
    state = optimiser.state_dict()["state"]
    return {f"{number}/{key}": value.clone() for number, moments in state.items() for key, value in moments.items()}


def _load_optimiser(optimiser: torch.optim.Optimizer, tensors: Tensors) -> None:
    """The inverse of ``_optimiser_tensors``."""
    state: dict[int, Tensors] = {}
    for name, tensor in tensors.items():
        number, key = name.split("/")
        state.setdefault(int(number), {})[key] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
