"""Workers on a Ray cluster: an existing one, or one that is started on this machine alone."""

import importlib.util
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medgrape.bulk.film_reader import FilmReader, WorkerConfig
from medgrape.bulk.listing import ListedFilm
from medgrape.bulk.local import cores
from medgrape.bulk.run import WorkerDiedError, WorkerSlot, WorkerSlotLostError
from medgrape.errors import UserError, os_error_message

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_WAIT = 300.0  # seconds to wait until a new worker is ready, on any node with a free core
_OWN_STORE = 200 * 2**20  # bytes for objects in transit, in a cluster that we start ourselves


def import_ray() -> Any:  # noqa: ANN401 (untyped)
    """Import Ray, an optional dependency, with its usage statistics turned off."""
    if importlib.util.find_spec("ray") is None:
        raise UserError("--engine ray needs: pip install 'medgrape[cluster]'.")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    return ray


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Open a session with a cluster; without an address, start one that only this machine can reach."""
    if address is None:
        # Unless Ray believes that this is a Mac, it replaces 127.0.0.1 by an address that the network can reach.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    ray = import_ray()
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address is None:
            own = {"num_cpus": cores(), "object_store_memory": _OWN_STORE, "_node_ip_address": "127.0.0.1"}
            ray.init(address="local", include_dashboard=False, **own, **quiet)
        else:
            host, _, port = address.removeprefix("ray://").rpartition(":")
            if port.isdecimal():  # where nobody listens, Ray would retry for minutes
                socket.create_connection((host, int(port)), timeout=10.0).close()
            ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError) as error:
        where = "can be started here" if address is None else f"answers at {address}"
        raise UserError(f"No Ray cluster {where}: {str(error).strip().splitlines()[0]}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def cluster_cores() -> int:
    """Return the number of cores of all nodes together."""
    return max(1, int(import_ray().cluster_resources().get("CPU", 1)))


class RemoteReader:
    """The actor on a node: a reader that returns errors as messages."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._reader: FilmReader | None = None

    def ready(self) -> str | None:
        """Load the model; return the message of an error that the user can correct, or None."""
        try:
            self._reader = FilmReader(self._config)
        except (UserError, OSError) as error:
            return os_error_message(error) if isinstance(error, OSError) else str(error)
        return None

    def read(self, films: Sequence[ListedFilm], refused: str | None) -> "pa.Table":
        """Return a row for each film."""
        if self._reader is None:
            raise RuntimeError("the model is not loaded")
        return self._reader.read(films, refused)


class RayWorkerSlot:
    """A worker slot for one actor at a time, on any node with a free core."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config, self._ray = config, import_ray()
        # Ray must not restart a lost actor: its part has gone to another worker meanwhile.
        self._kind = self._ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(RemoteReader)
        self._actor: Any = None
        self._loading: Any = None

    def launch(self) -> None:
        """Request an actor; the cluster starts it when a core is free."""
        self.close()
        self._actor = self._kind.remote(self._config)
        self._loading = self._actor.ready.remote()

    def wait(self, wanted: Callable[[], bool]) -> None:
        """Wait until the model is loaded; after the loss of a node there may be no core for it."""
        give_up = time.monotonic() + _MAX_WAIT
        while wanted() and self._loading is not None:
            if time.monotonic() > give_up:
                raise WorkerSlotLostError
            done, _ = self._ray.wait([self._loading], timeout=0.5)
            if not done:
                continue
            try:
                mistake = self._ray.get(self._loading)
            except self._ray.exceptions.RayActorError:
                self.launch()
                continue
            self._loading = None
            if mistake is not None:
                raise UserError(mistake)

    def read(self, films: Sequence[ListedFilm], refused: str | None = None) -> "pa.Table":
        """Return a row for each film; the loss of the actor or of its node counts as its death."""
        errors, actor = self._ray.exceptions, self._actor
        if actor is None:
            raise WorkerDiedError
        try:
            return self._ray.get(actor.read.remote(films, refused))
        except (errors.RayActorError, errors.ObjectLostError) as error:
            raise WorkerDiedError from error

    def close(self) -> None:
        """End the actor."""
        actor, self._actor = self._actor, None
        if actor is not None and self._ray.is_initialized():
            self._ray.kill(actor)


@dataclass(frozen=True)
class RayEngine:
    """Actors on the cluster."""

    workers: int
    name: str = "ray"

    def slots(self, config: WorkerConfig) -> list[WorkerSlot]:
        """Return a slot for each worker, which has one core."""
        return [RayWorkerSlot(config) for _ in range(self.workers)]
