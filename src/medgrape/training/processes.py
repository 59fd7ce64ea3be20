"""Where training runs: one device or many, through Lightning Fabric."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies import SingleDeviceStrategy

from medgrape.config import TrainingSettings
from medgrape.training.films import TrainingError

_PRECISION = {"fp32": "32-true", "bf16": "bf16-mixed"}


def launch(settings: TrainingSettings, work: Callable[..., None], *given: Any) -> None:  # noqa: ANN401 (passed on)
    """Call ``work(fabric, *given)`` in every process; under torchrun the processes are there already."""
    if settings.threads:
        torch.set_num_threads(settings.threads)
    fabric = _fabric(settings)
    if settings.processes == 1 and not _by_torchrun():
        work(fabric, *given)
    elif _by_torchrun():
        fabric.launch()
        work(fabric, *given)
    else:
        # One object: Lightning would look into bare arguments, and passes no frozen dataclass on.
        fabric.launch(partial(_in_process, threads=settings.threads, work=work, given=given))


def alone(fabric: Fabric) -> Fabric:
    """The same device without the other processes: for stages that are too small to share."""
    if fabric.world_size == 1:
        return fabric
    return Fabric(strategy=SingleDeviceStrategy(device=fabric.device))


def _in_process(fabric: Fabric, threads: int, work: Callable[..., None], given: tuple[Any, ...]) -> None:
    if threads:
        torch.set_num_threads(threads)
    work(fabric, *given)


def _by_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def _fabric(settings: TrainingSettings) -> Fabric:
    many = settings.processes > 1 or _by_torchrun()
    strategy = "auto" if not many else "ddp" if _by_torchrun() else "ddp_spawn"
    options: dict[str, Any] = {"precision": _PRECISION[settings.precision], "devices": settings.processes}
    try:
        return Fabric(accelerator=settings.device, strategy=strategy, **options)
    except Exception as error:  # Lightning has its own word for each missing device
        raise TrainingError(f"training.device = {settings.device!r} cannot be used here: {error}") from error
