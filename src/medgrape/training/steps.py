"""How the batches of an epoch become steps of the weights, and how far each step goes."""

import math
from dataclasses import dataclass

import torch

from medgrape.config.training import Schedule
from medgrape.training.lesson import Lesson


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
