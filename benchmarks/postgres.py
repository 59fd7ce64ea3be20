"""A temporary PostgreSQL server on loopback, in a folder that is removed afterwards."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medgrape.errors import UserError

PLACES = "/usr/lib/postgresql/*/bin"
ACCOUNT = "postgres"
_TEMPORARY = tempfile.gettempdir()  # as it is before a server of this process puts its own folder there
"""PostgreSQL refuses to run as root; then it runs as this user."""


class NoPostgresError(UserError):
    """This machine has no PostgreSQL."""


class TemporaryPostgres:
    """A cluster that can be stopped, killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._programs, self._folder, self._databases = programs(), folder, 0
        if self._programs is None:
            raise NoPostgresError(
                "There is no PostgreSQL here; install it, on Debian with: apt-get install postgresql."
            )
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        if os.geteuid() == 0:
            shutil.chown(folder, ACCOUNT)
        self._run("initdb", "-D", str(folder / "data"), "-U", ACCOUNT, "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c max_connections=100"
        self._run(
            "pg_ctl", "start", "-w", "-D", str(self._folder / "data"), "-l", str(self._folder / "log"), "-o", options
        )

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; ``immediate`` stops it as a crash does."""
        self._run("pg_ctl", "stop", "-w", "-m", mode, "-D", str(self._folder / "data"))

    def new_database(self) -> str:
        """Return the URL of an empty database."""
        self._databases += 1
        name = f"room{self._databases}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", ACCOUNT, name)
        return f"postgresql://{ACCOUNT}@127.0.0.1:{self.port}/{name}"

    def _run(self, program: str, *words: str) -> None:
        command = [str((self._programs or Path()) / program), *words]
        ended = subprocess.run(command, **_account(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)  # noqa: S603
        if ended.returncode:
            raise NoPostgresError(f"PostgreSQL's {program} failed: {ended.stderr.decode(errors='replace').strip()}")


@contextmanager
def temporary_postgres() -> Iterator[TemporaryPostgres]:
    """Yield a running cluster and remove it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="medgrape-postgres-", dir=_TEMPORARY))
    try:
        cluster = TemporaryPostgres(folder)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs, or None."""
    found = shutil.which("initdb")
    places = [*sorted(Path("/").glob(PLACES.lstrip("/"))), *([] if found is None else [Path(found).resolve().parent])]
    whole = [place for place in places if all((place / name).exists() for name in ("initdb", "pg_ctl", "createdb"))]
    return whole[-1] if whole else None


def _account() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam(ACCOUNT)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": [], "cwd": "/"}
