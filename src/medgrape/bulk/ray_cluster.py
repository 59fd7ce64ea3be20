"""A Ray cluster as workers: one that is there, or one that is started on this machine alone."""

import importlib.util
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medgrape.bulk.film_reader import FilmReader, Job
from medgrape.bulk.listing import ListedFilm
from medgrape.bulk.local import cores
from medgrape.bulk.scheduler import Seat, SeatLostError, WorkerDiedError
from medgrape.errors import UserError, told_of_file

if TYPE_CHECKING:
    import pyarrow as pa

PATIENCE = 300.0
"""Seconds that a lost worker may take to come back, on whatever node has room."""
_OWN_STORE = 200 * 2**20
"""Bytes for objects on their way, in a cluster of our own: tables are small."""


def import_ray() -> Any:  # noqa: ANN401 (untyped)
    """Ray, which is only there where somebody installed it, and which reports to nobody."""
    if importlib.util.find_spec("ray") is None:
        raise UserError("--engine ray needs: pip install 'medgrape[cluster]'.")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    return ray


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """A session with a cluster; where no address is given, with one of this machine's cores that only it can reach."""
    if address is None:
        # Ray takes 127.0.0.1 for the machine's own address, and listens to everybody, unless it thinks itself on a Mac.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    ray = import_ray()
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address is None:
            own = {"num_cpus": cores(), "object_store_memory": _OWN_STORE, "_node_ip_address": "127.0.0.1"}
            ray.init(address="local", include_dashboard=False, **own, **quiet)
        else:
            _refuse_silence(address)
            ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError) as error:
        where = "can be started here" if address is None else f"answers at {address}"
        raise UserError(f"No Ray cluster {where}: {str(error).strip().splitlines()[0]}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _refuse_silence(address: str) -> None:
    """Where nobody listens, Ray would ask again for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10.0).close()


def cluster_cores() -> int:
    """Those of all nodes together."""
    return max(1, int(import_ray().cluster_resources().get("CPU", 1)))


class RemoteReader:
    """What runs on a node: a reader whose trouble comes back in words."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._reader: FilmReader | None = None

    def ready(self) -> str | None:
        """Load the model; what a person has to mend, if anything."""
        try:
            self._reader = FilmReader(self._job)
        except UserError as mistake:
            return str(mistake)
        except OSError as error:
            return told_of_file(error)
        return None

    def read(self, films: Sequence[ListedFilm], refused: str | None) -> "pa.Table":
        """A row for each film."""
        if self._reader is None:
            raise RuntimeError("it was never ready")
        return self._reader.read(films) if refused is None else self._reader.refuse(films, refused)


class RaySeat:
    """One actor at a time, on whichever node has a core for it."""

    def __init__(self, job: Job) -> None:
        self._job, self._ray = job, import_ray()
        # A lost actor is replaced here, not by Ray: its part has gone to another worker meanwhile.
        self._kind = self._ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(RemoteReader)
        self._actor: Any = None
        self._getting_ready: Any = None

    def launch(self) -> None:
        """Ask for an actor; the cluster starts it when it has room."""
        self.close()
        self._actor = self._kind.remote(self._job)
        self._getting_ready = self._actor.ready.remote()

    def wait(self, wanted: Callable[[], bool]) -> None:
        """Until its model is loaded; a node that is gone may leave no room for it."""
        give_up = time.monotonic() + PATIENCE
        while wanted() and self._getting_ready is not None:
            if time.monotonic() > give_up:
                raise SeatLostError
            done, _ = self._ray.wait([self._getting_ready], timeout=0.5)
            if done:
                self._settle()

    def _settle(self) -> None:
        try:
            mistake = self._ray.get(self._getting_ready)
        except self._ray.exceptions.RayActorError:
            self.launch()
            return
        self._getting_ready = None
        if mistake is not None:
            raise UserError(mistake)

    def read(self, films: Sequence[ListedFilm], refused: str | None = None) -> "pa.Table":
        """A row for each film; whatever takes the actor or its node away counts as its death."""
        gone = (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError)
        actor = self._actor
        if actor is None:
            raise WorkerDiedError
        try:
            return self._ray.get(actor.read.remote(films, refused))
        except gone as error:
            raise WorkerDiedError from error

    def close(self) -> None:
        """End the actor, whatever it does."""
        actor, self._actor = self._actor, None
        if actor is not None and self._ray.is_initialized():
            self._ray.kill(actor)


@dataclass(frozen=True)
class RayEngine:
    """An actor for each core of the cluster, or as many as somebody says."""

    workers: int
    name: str = "ray"

    @classmethod
    def of(cls, workers: int | None = None) -> "RayEngine":
        """In the session that is open."""
        return cls(workers or cluster_cores())

    def seats(self, job: Job) -> list[Seat]:
        """One for each worker; Ray gives each of them one core."""
        return [RaySeat(job) for _ in range(self.workers)]
