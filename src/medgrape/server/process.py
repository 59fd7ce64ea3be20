"""Start the server: a supervisor process, and worker processes that it replaces when they die."""

import json
import logging
import multiprocessing
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from medgrape.errors import UserError
from medgrape.server.accounts import has_users
from medgrape.server.models import register
from medgrape.server.room import Room, RoomFolder, RoomStore, logger
from medgrape.server.settings import METRICS_FOLDER, ServerSettings

if TYPE_CHECKING:
    from fastapi import FastAPI

WORKER_SETTINGS = "MEDGRAPE_SERVER"  # environment variable with what a worker needs to start


class ServeError(UserError):
    """The server cannot start."""


@dataclass(frozen=True)
class Ready:
    """A server that was checked and can start."""

    settings: ServerSettings
    folder: RoomFolder
    login: bool
    listening: socket.socket
    lock: FileLock  # keeps other servers out of the room
    database: str  # its URL without the password

    @property
    def address(self) -> str:
        """The URL of the server for its users."""
        if self.settings.public_url:
            return self.settings.public_url
        host, port = self.listening.getsockname()[:2]
        name = f"[{host}]" if ":" in host else host
        return f"{'https' if self.settings.tls_certificate else 'http'}://{name}:{port}"


def prepare(runs: Sequence[Path], folder: RoomFolder, settings: ServerSettings) -> Ready:
    """Check the settings, lock the room, listen on the port, open the database and register the runs."""
    if bool(settings.tls_certificate) != bool(settings.tls_key):
        raise ServeError("A certificate and its key go together: give both, or neither.")
    for path in filter(None, (settings.tls_certificate, settings.tls_key)):
        if not Path(path).is_file():
            raise ServeError(f"{path} does not exist.")
    if settings.data:  # a broken data set is refused now, not when a model is first measured on it
        from medgrape.datasets.dataset import Dataset  # slow to import

        Dataset.load(Path(settings.data))
    folder.prepare()
    lock = FileLock(folder.root / "serving.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ServeError(f"Another server uses {folder.root}; stop it first, or choose another --room.") from None
    with ExitStack() as cleanup:
        cleanup.callback(lock.release)
        listening = _listen(settings)
        cleanup.callback(listening.close)
        store = RoomStore.ready(folder, settings)
        with store.database.reading() as session:
            login = bool(settings.oidc.issuer) or has_users(session)
        if settings.is_shared and not login:
            raise ServeError(
                f"Anybody who reaches {settings.host} could use the server without login: add a user first with "
                "medgrape user add NAME --role admin, or listen on 127.0.0.1 without a proxy."
            )
        register(store, runs)
        store.delete_unknown_files()
        store.close()
        cleanup.pop_all()
    return Ready(settings, folder, login, listening, lock, str(store.database))


def run(ready: Ready) -> None:
    """Serve until the process receives a signal to stop."""
    from uvicorn import Config
    from uvicorn.supervisors import Multiprocess

    _configure_logging()
    metrics = tempfile.mkdtemp(prefix="medgrape-figures-")
    os.environ[WORKER_SETTINGS] = json.dumps(
        {"room": str(ready.folder.root), "login": ready.login, "settings": ready.settings.model_dump(mode="json")}
    )
    os.environ[METRICS_FOLDER] = metrics
    # Limits the memory that the C library reserves per thread; a worker with forty threads would grow for hours.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    settings = ready.settings
    config = Config(
        "medgrape.server.process:worker_app", factory=True, workers=settings.workers, log_config=None,
        log_level="warning", access_log=False, server_header=False, lifespan="on", timeout_keep_alive=30,
        timeout_graceful_shutdown=10, timeout_worker_healthcheck=60, limit_concurrency=1000,
        proxy_headers=bool(settings.proxies), forwarded_allow_ips=list(settings.proxies) or None,
        ssl_certfile=settings.tls_certificate or None, ssl_keyfile=settings.tls_key or None,
        h11_max_incomplete_event_size=64 * 1024,
    )  # fmt: skip
    try:
        Multiprocess(config, sockets=[ready.listening]).run()
    finally:
        ready.listening.close()
        ready.lock.release()
        shutil.rmtree(metrics, ignore_errors=True)


def worker_app() -> "FastAPI":
    """Create the application of a worker; uvicorn calls this in the worker's process."""
    from medgrape.server.app import create_app  # slow to import, and commands never need it

    _configure_logging()
    order = json.loads(os.environ[WORKER_SETTINGS])
    settings = ServerSettings.model_validate(order["settings"])
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with, args=[parent.sentinel], name="parent", daemon=True).start()
    store = RoomStore.opened(RoomFolder(Path(order["room"])), settings)
    return create_app(Room(store, settings, login=order["login"]))


def _exit_with(parent: int) -> None:
    """Exit when the supervisor is killed: the worker would keep the port from the next server."""
    wait([parent])
    os._exit(1)  # no data is lost: acknowledged changes are on disk


def _configure_logging() -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logger.setLevel(logging.INFO)


def _listen(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With the protocol given, asyncio sets TCP_NODELAY; without it, responses on an open connection took 40 ms more.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise ServeError(
            f"Cannot listen on {settings.host}:{settings.port} ({error.strerror}); choose another --host or --port."
        ) from error
    listening.set_inheritable(True)
    return listening
