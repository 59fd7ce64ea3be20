"""Where training runs: one device or many, one machine or many, through Lightning Fabric."""

import logging
import secrets
import tempfile
import time
import warnings
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning_fabric.strategies.single_device import SingleDeviceStrategy
from torch.multiprocessing.spawn import ProcessExitedException

from medgrape.config import TrainingSettings
from medgrape.errors import UserError, os_error_message
from medgrape.training.films import TrainingError
from medgrape.training.launchers import PeerExitedError, ProcessInfo, end_with_parent, process_info

_PATIENCE = timedelta(minutes=30)
"""For a process that is late, and later on for one that hangs."""
_GLANCE = 0.02
_NAME = 16
"""Bytes."""


def join(device: torch.device) -> None:
    """Let this process and the others of its attempt be a group of torch's."""
    store, rank, world = next(dist.rendezvous("env://", timeout=_PATIENCE))  # type: ignore[attr-defined]
    attempt = agreed(store, rank, world)
    dist.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        store=dist.PrefixStore(attempt.hex(), store),  # type: ignore[attr-defined]
        rank=rank,
        world_size=world,
        timeout=_PATIENCE,
        device_id=None if device.type == "cpu" else device,
    )


def agreed(store: Any, rank: int, world: int) -> bytes:  # noqa: ANN401 (torch's, which has no common type)
    """A name that all processes of this attempt have heard from its first process, and no other process.

    The first one calls out a name of its own, each other one answers with that and a name of its own, and the first one
    repeats what it heard. Whoever hears its own name knows that the first one is alive; words of the dead are never
    answered.
    """
    mine, end = secrets.token_bytes(_NAME), time.monotonic() + _PATIENCE.total_seconds()
    while time.monotonic() < end:
        name = _called(store, mine, world) if rank == 0 else _answered(store, rank, mine)
        if name is not None:
            return name
        time.sleep(_GLANCE)
    raise TrainingError(f"Process {rank} of {world} has waited for the others in vain.")


def _called(store: Any, mine: bytes, world: int) -> bytes | None:  # noqa: ANN401
    store.set("call", mine)
    answers = [f"answer {rank}" for rank in range(1, world)]
    if not store.check(answers):
        return None
    heard = [store.get(answer) for answer in answers]
    if any(not answer.startswith(mine) for answer in heard):
        return None
    store.set("heard", b"".join([mine, *(answer[_NAME:] for answer in heard)]))
    return mine


def _answered(store: Any, rank: int, mine: bytes) -> bytes | None:  # noqa: ANN401
    if not store.check(["call"]):
        return None
    store.set(f"answer {rank}", store.get("call") + mine)
    heard = store.get("heard") if store.check(["heard"]) else b""
    return heard[:_NAME] if heard[rank * _NAME :][:_NAME] == mine else None


_PRECISION = {"fp32": "32-true", "bf16": "bf16-mixed"}


def launch(settings: TrainingSettings, work: Callable[..., None], *given: Any) -> None:  # noqa: ANN401 (passed on)
    """Call ``work(fabric, *given)`` in every process; under torchrun and SLURM the processes are there already."""
    here = process_info()
    _prepare(settings.threads)
    fabric = _fabric(settings, here)
    if here is not None:
        _gather(fabric, here)
        _prepare(settings.threads)  # Lightning has had an opinion of its own
        _share(fabric, work, given)
    elif settings.processes == 1:
        work(fabric, *given)
    else:
        _spawn(fabric, settings.threads, work, given)


def one_device(accelerator: str) -> Fabric:
    """For work that nobody shares, whoever started this process."""
    return Fabric(accelerator=accelerator, devices=1, plugins=LightningEnvironment())


def alone(fabric: Fabric) -> Fabric:
    """The same device without the other processes: for stages that are too small to share."""
    if fabric.world_size == 1:
        return fabric
    strategy, precision = SingleDeviceStrategy(device=fabric.device), fabric.strategy.precision.precision
    return Fabric(strategy=strategy, precision=precision, plugins=LightningEnvironment())


def _gather(fabric: Fabric, here: ProcessInfo) -> None:
    """Let the processes that others have started know of each other."""
    if here.launcher == "torchrun":
        end_with_parent()
        if here.world > 1:
            join(fabric.device)
    fabric.launch()


def _share(fabric: Fabric, work: Callable[..., None], given: tuple[Any, ...]) -> None:
    """The work of one of several processes; that another one has ended is told in a sentence."""
    try:
        work(fabric, *given)
    except RuntimeError as error:
        if fabric.world_size > 1 and _tells_of_another(error):
            raise PeerExitedError from error
        raise
    if dist.is_initialized():
        dist.destroy_process_group()


def _tells_of_another(error: RuntimeError) -> bool:
    return isinstance(error, dist.DistError) or "gloo" in str(error)  # gloo has no error of its own


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
            if isinstance(error, ProcessExitedException):  # it was killed, and could not say so
                raise PeerExitedError from error
            raise


def _in_process(fabric: Fabric, threads: int, work: Callable[..., None], given: tuple[Any, ...], said: Path) -> None:
    _prepare(threads)
    try:
        _share(fabric, work, given)
    except (UserError, OSError) as mistake:
        if not (isinstance(mistake, PeerExitedError) and said.exists()):  # the one that ended has told why
            said.write_text(os_error_message(mistake) if isinstance(mistake, OSError) else str(mistake), "utf-8")
        raise


def _prepare(threads: int) -> None:
    """Threads of this process; and nothing is printed that is meant for people who write Lightning or torch."""
    if threads:
        torch.set_num_threads(threads)
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")


class _Slurm(SLURMEnvironment):
    """Fabric's, counted by srun's step: Fabric itself refuses ``srun -n`` without ``--ntasks-per-node``."""

    def __init__(self, here: ProcessInfo) -> None:
        self._here = here
        super().__init__(auto_requeue=False)

    @staticmethod
    def _validate_srun_variables() -> None:
        """``ProcessInfo.even`` has asked what matters."""

    def validate_settings(self, num_devices: int, num_nodes: int) -> None:
        """They come from the same step."""

    def world_size(self) -> int:
        return self._here.world


def _environment(here: ProcessInfo | None) -> ClusterEnvironment:
    """Said to Fabric, which would take any process in an allocation of SLURM for one of many."""
    if here is None:
        return LightningEnvironment()
    return TorchElasticEnvironment() if here.launcher == "torchrun" else _Slurm(here)


def _fabric(settings: TrainingSettings, here: ProcessInfo | None) -> Fabric:
    devices, nodes, strategy = settings.processes, 1, "auto" if settings.processes == 1 else "ddp_spawn"
    if here is not None:
        if not here.even:
            raise TrainingError(f"{here.world} processes on {here.nodes} machines: every machine must have as many.")
        devices, nodes, strategy = here.per_node, here.nodes, "auto" if here.world == 1 else "ddp"
    try:
        return Fabric(
            accelerator=settings.device,
            precision=_PRECISION[settings.precision],  # type: ignore[arg-type]
            devices=devices,
            num_nodes=nodes,
            strategy=strategy,
            plugins=_environment(here),
        )
    except Exception as error:  # Lightning has its own word for each missing device
        raise TrainingError(f"training.device = {settings.device!r} cannot be used here: {error}") from error
