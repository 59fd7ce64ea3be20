"""A real server in its own processes, and clients over real connections, all on this machine."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medgrape.errors import UserError

API = "/api/v1"
START = 60.0
"""Seconds until a start of the server counts as failed."""
IDLE = 15.0
"""Seconds after which a connection is replaced, because servers close idle ones."""
LOST = (OSError, http.client.HTTPException)
"""Errors that a client gets from a killed server."""


class ServerFailedError(UserError):
    """The server did not do what a benchmark needs."""


@dataclass
class Caller:
    """A client with a token and a connection."""

    port: int
    token: str
    _connection: http.client.HTTPConnection | None = field(default=None, repr=False)
    _used: float = 0.0
    guests: list["Caller"] = field(default_factory=list, repr=False)
    """Clients that this one has admitted."""

    def ask(self, method: str, path: str, payload: object = None, content: bytes | None = None) -> tuple[int, bytes]:
        """Return status and body; raise connection errors, after which the next call connects again."""
        headers = {"Authorization": f"Bearer {self.token}"}
        body = content
        if content is not None:
            headers["Content-Type"] = "multipart/form-data; boundary=film"
        elif payload is not None:
            body, headers["Content-Type"] = json.dumps(payload).encode(), "application/json"
        if self._connection is not None and time.monotonic() - self._used > IDLE:
            self._connection.close()
            self._connection = None
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            self._connection.request(method, API + path, body, headers)
            answer = self._connection.getresponse()
            self._used = time.monotonic()
            return answer.status, answer.read()
        except LOST:
            self.hang_up()
            raise

    def hang_up(self) -> None:
        """Close the connection, and those of all guests; the next call opens another."""
        for guest in self.guests:
            guest.hang_up()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, path: str) -> Any:  # noqa: ANN401 (JSON)
        """Return the body of a GET request; any status but success is an error."""
        return self._request("GET", path, None)

    def post(self, path: str, payload: object) -> Any:  # noqa: ANN401 (JSON)
        """Return the body of a POST request; any status but success is an error."""
        return self._request("POST", path, payload)

    def upload(self, film: bytes) -> str:
        """Upload a film and return its id."""
        start = b'--film\r\nContent-Disposition: form-data; name="file"; filename="film.png"\r\n\r\n'
        status, body = self.ask("POST", "/films", content=start + film + b"\r\n--film--\r\n")
        if status not in (200, 201):
            raise ServerFailedError(f"An upload was answered with {status}: {body[:200]!r}.")
        return str(json.loads(body)["film"]["id"])

    def _request(self, method: str, path: str, payload: object) -> Any:  # noqa: ANN401
        status, body = self.ask(method, path, payload)
        if not 200 <= status < 300:
            raise ServerFailedError(f"{method} {path} was answered with {status}: {body[:300]!r}.")
        return json.loads(body)


@dataclass
class ServerUnderTest:
    """A server that can be killed and started again."""

    run: Path
    room: Path
    database: str
    port: int
    workers: int = 1
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start the server; return the seconds until it can read films."""
        began = time.perf_counter()
        command = [*_MEDGRAPE, "serve", str(self.run), "--port", str(self.port), "--workers", str(self.workers)]
        with (self.room.parent / "server.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [*command, *self._where], stdout=log, stderr=log, start_new_session=True
            )
        while time.perf_counter() - began < START:
            if self._process.poll() is not None:
                break
            if self.is_ready():
                return time.perf_counter() - began
            time.sleep(0.02)
        self.kill()
        raise ServerFailedError(f"The server did not start; see {self.room.parent / 'server.log'}.")

    def is_ready(self) -> bool:
        """Return whether the server reports that it can read films."""
        caller = Caller(self.port, "-")
        try:
            return caller.ask("GET", "/ready")[0] == 200
        except LOST:
            return False
        finally:
            caller.hang_up()

    def kill(self) -> None:
        """Kill all processes of the server at once."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    @property
    def process_id(self) -> int:
        """Return the id of the process that supervises the others."""
        if self._process is None:
            raise ServerFailedError("The server is not running.")
        return self._process.pid

    def admin(self) -> str:
        """Return an administrator's token; call it before the server's first start."""
        self._command("user", "add", "alma", "--role", "admin", "--no-password")
        return self._command("token", "create", "--user", "alma", "--role", "admin").strip()

    def verified(self) -> dict[str, Any]:
        """Return the output of ``medgrape audit-log verify``."""
        return dict(json.loads(self._command("audit-log", "verify", "--json")))

    @property
    def _where(self) -> list[str]:
        return ["--room", str(self.room), *(["--database", self.database] if self.database else [])]

    def _command(self, *words: str) -> str:
        ended = subprocess.run([*_MEDGRAPE, *words, *self._where], capture_output=True, text=True, check=False)  # noqa: S603
        if ended.returncode:
            raise ServerFailedError(
                f"medgrape {' '.join(words)} failed: {ended.stderr.strip() or ended.stdout.strip()}"
            )
        return ended.stdout


_MEDGRAPE = [sys.executable, "-m", "medgrape"]


@contextmanager
def server(
    run: Path, folder: Path, database: str, *, port: int, workers: int = 1
) -> Iterator[tuple[ServerUnderTest, Caller]]:
    """Yield a running server and an administrator; kill the server afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    tested = ServerUnderTest(run, folder / "room", database, port, workers)
    admin = Caller(port, tested.admin())
    tested.start()
    try:
        yield tested, admin
    finally:
        admin.hang_up()
        tested.kill()


def new_reader(admin: Caller, name: str) -> Caller:
    """Return a reader with a new token."""
    admin.post("/users", {"name": name, "role": "reader"})
    payload = admin.post("/tokens", {"name": "bench", "role": "reader", "user": name})
    admin.guests.append(Caller(admin.port, str(payload["token"])))
    return admin.guests[-1]
