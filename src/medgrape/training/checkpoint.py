"""Where a stage stands, in one file that is whole or not there: learner, best learner so far, optimiser, history.

Tensors and a line of JSON in safetensors' header; nothing is ever unpickled.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from medgrape.files import write_tensors
from medgrape.training.stage import Figure

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class StageState:
    """After ``epoch`` epochs."""

    epoch: int
    learner: Tensors
    best: Tensors
    optimiser: Tensors
    figure: Figure | None
    """Of the best epoch."""
    best_epoch: int
    history: list[dict[str, Any]] = field(default_factory=list)
    finished: bool = False

    def save(self, path: Path) -> None:
        """Take the place of what is in ``path``."""
        groups = {"learner": self.learner, "optimiser": self.optimiser}
        if self.best is not self.learner:  # else the last epoch is the best, and is written once
            groups["best"] = self.best
        tensors = {f"{group}/{name}": one for group, named in groups.items() for name, one in named.items()}
        told = {
            "epoch": self.epoch,
            "figure": None if self.figure is None else asdict(self.figure),
            "best_epoch": self.best_epoch,
            "history": self.history,
            "finished": self.finished,
        }
        write_tensors(path, tensors, {"state": json.dumps(told)})

    @classmethod
    def load(cls, path: Path) -> "StageState | None":
        """What ``path`` holds, or None where there is no such file."""
        if not path.is_file():
            return None
        groups: dict[str, Tensors] = {"learner": {}, "best": {}, "optimiser": {}}
        with safe_open(path, framework="pt") as file:
            told = json.loads(file.metadata()["state"])
            for key in file.keys():  # noqa: SIM118 (not a mapping)
                group, name = key.split("/", 1)
                groups[group][name] = file.get_tensor(key)
        figure = None if told["figure"] is None else Figure(**told["figure"])
        learner = groups["learner"]
        return cls(
            told["epoch"], learner, groups["best"] or learner, groups["optimiser"], figure, told["best_epoch"],
            told["history"], told["finished"],
        )  # fmt: skip


def history(folder: Path, stages: Sequence[str]) -> list[dict[str, Any]]:
    """Every epoch that an earlier attempt in that folder has reached."""
    reached = (StageState.load(folder / f"{stage}.safetensors") for stage in stages)
    return [entry for state in reached if state is not None for entry in state.history]


def told_of_stages(states: Mapping[str, StageState]) -> dict[str, dict[str, Any]]:
    """Which epoch of each stage was chosen, by which figure."""
    return {
        stage: {"best_epoch": state.best_epoch, "epochs": state.epoch, "figure": state.figure.name,
                "score": state.figure.score, "loss": state.figure.loss}
        for stage, state in states.items() if state.figure is not None
    }  # fmt: skip


def tensors_of(module: nn.Module) -> Tensors:
    """A copy of everything in a module, buffers included."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def put_back(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """The inverse of ``tensors_of``; whatever does not fit is an error."""
    module.load_state_dict(dict(tensors), strict=True)


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> Tensors:
    """The moments that AdamW keeps for each tensor, by the tensor's place."""
    state = optimiser.state_dict()["state"]
    return {f"{place}/{key}": value.clone() for place, kept in state.items() for key, value in kept.items()}


def put_optimiser_back(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """The inverse of ``optimiser_tensors``."""
    whole = optimiser.state_dict()
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        place, key = name.split("/")
        state.setdefault(int(place), {})[key] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": whole["param_groups"]})
