"""The processes of a training, through Lightning Fabric: devices, start, rendezvous, and the barrier between them."""

import logging
import secrets
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

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

T = TypeVar("T")
_TIMEOUT = timedelta(minutes=30)  # For a process that starts late or hangs
_BARRIER_TIMEOUT = timedelta(days=30)  # Rank 0 may decode films for long; if it dies, the connection ends at once
_SHARED_WITHIN = 90.0  # Seconds until all machines must see a new file: network disks refresh once a minute
_POLL = 0.02
_NAME_BYTES = 16
_PRECISION = {"fp32": "32-true", "bf16": "bf16-mixed"}


@dataclass(frozen=True)
class Barrier:
    """Where the processes of a training wait for each other; the default is for a single process."""

    group: Any = None  # Process group of torch with a long timeout, beside the one for gradients

    @classmethod
    def of(cls, fabric: Fabric) -> "Barrier":
        """Create the barrier of all processes; each of them must call this."""
        return cls() if fabric.world_size == 1 else cls(dist.new_group(backend="gloo", timeout=_BARRIER_TIMEOUT))

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.group is not None:
            dist.barrier(group=self.group)

    def broadcast(self, value: T) -> T:
        """Return the value of rank 0."""
        if self.group is None:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0, group=self.group)
        return values[0]

    def wait_for_file(self, path: Path) -> None:
        """Wait until rank 0 has written a file and this process sees it."""
        self.wait()
        self.wait_until(path.exists, path)

    def wait_until(self, condition: Callable[[], bool], path: Path) -> None:
        """Wait until this process sees what rank 0 wrote to ``path``; raise if their disks are not shared."""
        end = time.monotonic() + _SHARED_WITHIN
        while self.group is not None and not condition():
            if time.monotonic() > end:
                raise TrainingError(
                    f"Rank 0 has written {path}, but process {dist.get_rank()} does not see it; put the data set and "
                    "the run on disks that all processes share."
                )
            time.sleep(0.2)


def launch(settings: TrainingSettings, work: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401 (passed on)
    """Call ``work(fabric, *arguments)`` in every process; torchrun and SLURM have started the processes already."""
    info = process_info()
    _prepare(settings.threads)
    fabric = _fabric(settings, info)
    if info is not None:
        if info.launcher == "torchrun":
            end_with_parent()
            if info.world > 1:
                join(fabric.device)
        fabric.launch()
        _prepare(settings.threads)  # Lightning has changed the number of threads
        _run_as_peer(fabric, work, arguments)
    elif settings.processes == 1:
        work(fabric, *arguments)
    else:
        _spawn(fabric, settings.threads, work, arguments)


def one_device(accelerator: str) -> Fabric:
    """Return a Fabric for work in this process alone, whoever started it."""
    return Fabric(accelerator=accelerator, devices=1, plugins=LightningEnvironment())


def alone(fabric: Fabric) -> Fabric:
    """Return a Fabric of the same device without the other processes, for stages that are too small to share."""
    if fabric.world_size == 1:
        return fabric
    strategy, precision = SingleDeviceStrategy(device=fabric.device), fabric.strategy.precision.precision
    return Fabric(strategy=strategy, precision=precision, plugins=LightningEnvironment())


def join(device: torch.device) -> None:
    """Create torch's process group for the processes of this attempt."""
    store, rank, world = next(dist.rendezvous("env://", timeout=_TIMEOUT))  # type: ignore[attr-defined]
    store = dist.PrefixStore(agree_on_name(store, rank, world).hex(), store)  # type: ignore[attr-defined]
    backend, device_id = "nccl" if device.type == "cuda" else "gloo", None if device.type == "cpu" else device
    dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=_TIMEOUT, device_id=device_id)


def agree_on_name(store: Any, rank: int, world: int) -> bytes:  # noqa: ANN401 (torch's stores have no common type)
    """Return a random name that all processes of this attempt share, and that no earlier attempt had.

    1. Rank 0 publishes a random name.
    2. Every other process answers with this name and a random name for itself.
    3. Rank 0 publishes the names of all processes that answered.
    4. A process that finds its name in this list knows that rank 0 belongs to the same attempt.

    Keys from earlier attempts are ignored.
    """
    own_name, end = secrets.token_bytes(_NAME_BYTES), time.monotonic() + _TIMEOUT.total_seconds()
    while time.monotonic() < end:
        name = _publish(store, own_name, world) if rank == 0 else _answer(store, rank, own_name)
        if name is not None:
            return name
        time.sleep(_POLL)
    raise TrainingError(
        f"Process {rank} of {world} timed out after {_TIMEOUT} waiting for the others; check that all of them started."
    )


def _publish(store: Any, own_name: bytes, world: int) -> bytes | None:  # noqa: ANN401
    store.set("call", own_name)
    keys = [f"answer {rank}" for rank in range(1, world)]
    answers = [store.get(key) for key in keys] if store.check(keys) else [b""]
    if not all(answer.startswith(own_name) for answer in answers):
        return None
    store.set("heard", b"".join([own_name, *(answer[_NAME_BYTES:] for answer in answers)]))
    return own_name


def _answer(store: Any, rank: int, own_name: bytes) -> bytes | None:  # noqa: ANN401
    if not store.check(["call"]):
        return None
    store.set(f"answer {rank}", store.get("call") + own_name)
    names = store.get("heard") if store.check(["heard"]) else b""
    return names[:_NAME_BYTES] if names[rank * _NAME_BYTES :][:_NAME_BYTES] == own_name else None


def _run_as_peer(fabric: Fabric, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Run one of several processes; raise ``PeerExitedError`` when the connection to another one is lost."""
    try:
        work(fabric, *arguments)
    except RuntimeError as error:
        is_lost = isinstance(error, dist.DistError) or "gloo" in str(error)  # gloo raises plain RuntimeErrors
        if fabric.world_size > 1 and is_lost:
            raise PeerExitedError from error
        raise
    if dist.is_initialized():
        dist.destroy_process_group()


def _spawn(fabric: Fabric, threads: int, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Start processes; their errors for users come back as messages in a file, without traceback."""
    with tempfile.TemporaryDirectory() as folder:
        message = Path(folder) / "message"
        try:
            # A partial, because Lightning would look into plain arguments and does not accept frozen dataclasses.
            fabric.launch(partial(_in_process, threads=threads, work=work, arguments=arguments, message=message))
        except Exception as error:
            if message.is_file():
                raise TrainingError(message.read_text("utf-8")) from error
            if isinstance(error, ProcessExitedException):  # it was killed and could not write a message
                raise PeerExitedError from error
            raise


def _in_process(
    fabric: Fabric, threads: int, work: Callable[..., None], arguments: tuple[Any, ...], message: Path
) -> None:
    _prepare(threads)
    try:
        _run_as_peer(fabric, work, arguments)
    except (UserError, OSError) as error:
        if not (isinstance(error, PeerExitedError) and message.exists()):  # the other process has told the reason
            message.write_text(os_error_message(error) if isinstance(error, OSError) else str(error), "utf-8")
        raise


def _prepare(threads: int) -> None:
    """Set the threads of this process, and silence messages for developers of Lightning and torch."""
    if threads:
        torch.set_num_threads(threads)
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")


class _Slurm(SLURMEnvironment):
    """Fabric's SLURM environment with the size of srun's step: Fabric refuses srun without --ntasks-per-node."""

    def __init__(self, info: ProcessInfo) -> None:
        self._here = info
        super().__init__(auto_requeue=False)

    @staticmethod
    def _validate_srun_variables() -> None:
        """``ProcessInfo.is_even`` has checked them."""

    def validate_settings(self, num_devices: int, num_nodes: int) -> None:
        """Do nothing: the settings come from the same step."""

    def world_size(self) -> int:
        return self._here.world


def _fabric(settings: TrainingSettings, info: ProcessInfo | None) -> Fabric:
    devices, nodes, strategy = settings.processes, 1, "auto" if settings.processes == 1 else "ddp_spawn"
    environment: ClusterEnvironment = LightningEnvironment()  # by default Fabric joins any SLURM allocation
    if info is not None:
        if not info.is_even:
            raise TrainingError(
                f"{info.world} processes on {info.nodes} machines: every machine must have the same number."
            )
        devices, nodes, strategy = info.per_node, info.nodes, "auto" if info.world == 1 else "ddp"
        environment = TorchElasticEnvironment() if info.launcher == "torchrun" else _Slurm(info)
    precision: Any = _PRECISION[settings.precision]
    try:
        return Fabric(
            accelerator=settings.device, precision=precision, devices=devices, num_nodes=nodes, strategy=strategy,
            plugins=environment,
        )  # fmt: skip
    except Exception as error:  # Lightning raises another error for each missing device
        raise TrainingError(f"training.device = {settings.device!r} cannot be used: {error}") from error
