"""The server's processes: a supervisor, and workers that answer; a worker that dies is replaced."""

import json
import multiprocessing
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout
from sqlalchemy import select

from medgrape.errors import UserError
from medgrape.server.accounts import has_users
from medgrape.server.models import register
from medgrape.server.room import Room, RoomFolder, RoomStore
from medgrape.server.settings import METRICS_FOLDER, ServerSettings
from medgrape.server.storage.tables import FilmRow, ModelRow

if TYPE_CHECKING:
    from fastapi import FastAPI

ORDER = "MEDGRAPE_SERVER"
"""Environment variable that tells a worker what to serve."""
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "loggers": {
        "medgrape.server": {"handlers": ["stderr"], "level": "INFO"},
        "uvicorn": {"handlers": ["stderr"], "level": "WARNING"},
    },
}


class ServeError(UserError):
    """A server that cannot start, or must not."""


@dataclass(frozen=True)
class Ready:
    """A server that may start."""

    settings: ServerSettings
    folder: RoomFolder
    login: bool
    listening: socket.socket
    lock: FileLock
    """Keeps other servers out of the room."""
    database: str
    """Its URL without the password."""

    @property
    def address(self) -> str:
        """Where people find the server."""
        if self.settings.public_url:
            return self.settings.public_url
        host, port = self.listening.getsockname()[:2]
        name = f"[{host}]" if ":" in host else host
        return f"{'https' if self.settings.tls_certificate else 'http'}://{name}:{port}"


def prepare(runs: Sequence[Path], folder: RoomFolder, settings: ServerSettings) -> Ready:
    """Check and prepare everything; nothing is changed while another server works in the room."""
    if bool(settings.tls_certificate) != bool(settings.tls_key):
        raise ServeError("A certificate and its key go together: give both, or neither.")
    for path in filter(None, (settings.tls_certificate, settings.tls_key)):
        if not Path(path).is_file():
            raise ServeError(f"{path} is not there.")
    if settings.data:  # refused now, and not when somebody first measures a model on it
        from medgrape.datasets.dataset import Dataset  # the start need not wait for it otherwise

        Dataset.load(Path(settings.data))
    folder.prepare()
    lock = FileLock(folder.root / "serving.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ServeError(
            f"Another server works in {folder.root} already; end it first, or choose another --room."
        ) from None
    listening = _listening(settings)
    try:
        store = RoomStore.ready(folder, settings)
        with store.database.reading() as session:
            login = bool(settings.oidc.issuer) or has_users(session)
        if settings.is_shared and not login:
            raise ServeError(
                f"Listening on {settings.host} without login would let anybody in: add a user first with medgrape user "
                "add NAME --role admin, or listen on 127.0.0.1 with no proxy before it."
            )
        register(store, runs)
        _sweep(store)
        store.close()
    except BaseException:
        listening.close()
        lock.release()
        raise
    return Ready(settings, folder, login, listening, lock, str(store.database))


def run(ready: Ready) -> None:
    """Serve until the process is asked to stop."""
    from uvicorn import Config
    from uvicorn.supervisors import Multiprocess

    metrics = tempfile.mkdtemp(prefix="medgrape-figures-")
    os.environ[ORDER] = json.dumps(
        {"room": str(ready.folder.root), "login": ready.login, "settings": ready.settings.model_dump(mode="json")}
    )
    os.environ[METRICS_FOLDER] = metrics
    # Else the C library reserves memory for every thread, and a worker with forty of them grows for hours.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    settings = ready.settings
    config = Config(
        "medgrape.server.process:worker_app", factory=True, workers=settings.workers, log_config=LOGGING,
        access_log=False, server_header=False, lifespan="on", timeout_keep_alive=30, timeout_graceful_shutdown=10,
        proxy_headers=bool(settings.proxies), forwarded_allow_ips=list(settings.proxies) or None,
        ssl_certfile=settings.tls_certificate or None, ssl_keyfile=settings.tls_key or None,
        h11_max_incomplete_event_size=64 * 1024, timeout_worker_healthcheck=60, limit_concurrency=1000,
    )  # fmt: skip
    try:
        Multiprocess(config, sockets=[ready.listening]).run()
    finally:
        ready.listening.close()
        ready.lock.release()
        shutil.rmtree(metrics, ignore_errors=True)


def worker_app() -> "FastAPI":
    """The application of a worker."""
    from medgrape.server.app import create_app  # slow to import, and commands never need it

    order = json.loads(os.environ[ORDER])
    settings = ServerSettings.model_validate(order["settings"])
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=[parent.sentinel], name="parent", daemon=True).start()
    store = RoomStore.opened(RoomFolder(Path(order["room"])), settings)
    return create_app(Room(store, settings, login=order["login"]))


def _end_with(parent: int) -> None:
    """A worker whose supervisor was killed would hold the port against the next server."""
    wait([parent])
    os._exit(1)  # nothing is lost: what was acknowledged is on disk


def _sweep(store: RoomStore) -> None:
    """Delete files that the database does not know."""
    with store.database.reading() as session:
        stored = select(FilmRow.id, FilmRow.content).where(FilmRow.deleted_at.is_(None))
        films = {film: content for film, content in session.execute(stored)}  # noqa: C416 (rows are no pairs to mypy)
        models = session.scalars(select(ModelRow).where(ModelRow.removed_at.is_(None))).all()
    made_here = {model.folder for model in models if model.made_here}
    store.folder.sweep(films, set(films.values()), made_here, {model.version for model in models})


def _listening(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named because asyncio sends small answers without delay only on sockets that are TCP by name:
    # without it every answer on an open connection took 40 ms longer.
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
