"""Where training runs: one device or many, through Lightning Fabric."""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.single_device import SingleDeviceStrategy

from medgrape.config import TrainingSettings
from medgrape.errors import UserError, told_of_file
from medgrape.training.films import TrainingError

_PRECISION = {"fp32": "32-true", "bf16": "bf16-mixed"}


def launch(settings: TrainingSettings, work: Callable[..., None], *given: Any) -> None:  # noqa: ANN401 (passed on)
    """Call ``work(fabric, *given)`` in every process; under torchrun the processes are there already."""
    _set_threads(settings.threads)
    fabric = _fabric(settings)
    if _by_torchrun():
        fabric.launch()
        work(fabric, *given)
    elif settings.processes == 1:
        work(fabric, *given)
    else:
        _spawn(fabric, settings.threads, work, given)


def alone(fabric: Fabric) -> Fabric:
    """The same device without the other processes: for stages that are too small to share."""
    if fabric.world_size == 1:
        return fabric
    return Fabric(strategy=SingleDeviceStrategy(device=fabric.device))


def _spawn(fabric: Fabric, threads: int, work: Callable[..., None], given: tuple[Any, ...]) -> None:
    """Processes of our own; what a person can mend comes back from them as a sentence, not as their traceback."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        try:
            # One object: Lightning would look into bare arguments, and passes no frozen dataclass on.
            fabric.launch(partial(_in_process, threads=threads, work=work, given=given, said=said))
        except Exception as error:
            if said.is_file():
                raise TrainingError(said.read_text("utf-8")) from error
            raise


def _in_process(fabric: Fabric, threads: int, work: Callable[..., None], given: tuple[Any, ...], said: Path) -> None:
    _set_threads(threads)
    try:
        work(fabric, *given)
    except (UserError, OSError) as mistake:
        said.write_text(told_of_file(mistake) if isinstance(mistake, OSError) else str(mistake), "utf-8")
        raise


def _set_threads(threads: int) -> None:
    if threads:
        torch.set_num_threads(threads)


def _by_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def _fabric(settings: TrainingSettings) -> Fabric:
    options: dict[str, Any] = {"devices": settings.processes, "strategy": "auto"}
    if settings.processes > 1:
        options["strategy"] = "ddp_spawn"
    if _by_torchrun():
        local, world = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
        options = {"devices": local, "num_nodes": world // local, "strategy": "ddp"}
    try:
        return Fabric(accelerator=settings.device, precision=_PRECISION[settings.precision], **options)  # type: ignore[arg-type]
    except Exception as error:  # Lightning has its own word for each missing device
        raise TrainingError(f"training.device = {settings.device!r} cannot be used here: {error}") from error
