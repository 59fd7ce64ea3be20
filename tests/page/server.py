"""A server process with the page, users of every role, and films."""

import functools
import http.client
import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.server_under_test import ServerUnderTest
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import draw
from medgrape.server.accounts import Role, add_user, create_token, hash_password
from medgrape.server.room import RoomFolder, RoomStore
from medgrape.server.settings import ServerSettings

PASSWORD = "correct horse battery"  # noqa: S105
PEOPLE = {"rita": Role.READER, "rolf": Role.READER, "cora": Role.CURATOR, "alma": Role.ADMIN}
SIDE = 240
"""Width and height of a film in pixels."""
NO_RATE_LIMIT = "[rate]\nper_second = 10000.0\nburst = 100000\nlogins_per_minute = 10000\n"


@dataclass(frozen=True)
class Caller:
    """A user who sends requests without the page. Each opens a connection, because the server may have been killed."""

    server: "PageServer"
    token: str

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        return self._send(method, path, None if body is None else json.dumps(body).encode(), headers)

    def get(self, path: str) -> Any:
        return self._json("GET", path)

    def post(self, path: str, body: object = None) -> Any:
        return self._json("POST", path, body)

    def upload(self, content: bytes) -> str:
        """Upload a film; return its id."""
        start = b'--film\r\nContent-Disposition: form-data; name="file"; filename="film.png"\r\n\r\n'
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "multipart/form-data; boundary=film"}
        status, body = self._send("POST", "/films", start + content + b"\r\n--film--\r\n", headers)
        assert status in (200, 201), body
        return json.loads(body)["film"]["id"]

    def _json(self, method: str, path: str, body: object = None) -> Any:
        status, answer = self.ask(method, path, body)
        assert 200 <= status < 300, f"{method} {path}: {status} {answer[:300]!r}"
        return json.loads(answer)

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)) as connection:
            connection.request(method, f"/api/v1{path}", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()


@dataclass
class PageServer:
    """A server that can be killed and started again at the same address."""

    run: Path
    data: Path
    folder: Path
    callers: dict[str, Caller] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    port: int = 0
    _process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server, at its former address if it had one."""
        config = self.folder / "server.toml"
        config.write_text(NO_RATE_LIMIT)
        where = ["--room", str(self.folder / "room"), "--port", str(self.port), "--workers", "1"]
        command = [sys.executable, "-m", "medgrape", "serve", str(self.run), "--data", str(self.data), *where]
        with (self.folder / "server.log").open("a") as log:
            self._process = subprocess.Popen(
                [*command, "--config", str(config)], stdout=subprocess.PIPE, stderr=log, text=True,
                start_new_session=True,
            )  # fmt: skip
        line = self._process.stdout.readline()
        assert "http://127.0.0.1:" in line, f"The server did not start; see {self.folder / 'server.log'}."
        self.port = int(line.split()[2].rpartition(":")[2])
        under_test = ServerUnderTest(self.run, self.folder / "room", "", self.port)
        ends = time.monotonic() + 60
        while not under_test.is_ready():
            assert self._process.poll() is None, f"The server ended; see {self.folder / 'server.log'}."
            assert time.monotonic() < ends, f"The server reads no films; see {self.folder / 'server.log'}."
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill all processes of the server at once, like a power cut."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()
        self._process = None

    def set_up(self) -> None:
        """Add the users, then start the server."""
        archive = RoomStore.ready(RoomFolder(self.folder / "room"), ServerSettings())
        secret, tokens = hash_password(PASSWORD), {}
        with archive.database.writing() as session:
            for name, role in PEOPLE.items():
                user = add_user(session, name, role, None)
                user.password = secret
                tokens[name] = str(create_token(session, user, "test", role, 1))
        archive.close()
        self.start()
        self.callers = {name: Caller(self, token) for name, token in tokens.items()}

    def add_user(self, name: str, role: str = "reader") -> None:
        """Add a user that no other test uses."""
        alma = self.callers["alma"]
        alma.post("/users", {"name": name, "role": role, "password": PASSWORD})
        token = alma.post("/tokens", {"name": "test", "role": role, "user": name})["token"]
        self.callers[name] = Caller(self, token)

    def cookie(self, name: str) -> str:
        """Return the session cookie of a user, after a login."""
        if name not in self.cookies:
            with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
                login = json.dumps({"name": name, "password": PASSWORD})
                connection.request("POST", "/api/v1/session", login, {"Content-Type": "application/json"})
                answer = connection.getresponse()
            self.cookies[name] = answer.headers["Set-Cookie"].partition(";")[0].partition("=")[2]
        return self.cookies[name]

    def film(self, seed: int) -> str:
        """Upload a film as rita; return its id."""
        return self.callers["rita"].upload(png(seed))

    def model_in_use(self) -> str:
        return next(model["version"] for model in self.callers["cora"].get("/models") if model["in_use"])

    def models(self) -> set[str]:
        return {model["version"] for model in self.callers["cora"].get("/models")}


@functools.cache
def pixels(seed: int):
    """A drawn film; every seed gives another."""
    (drawing,) = plan("tb", 1, seed=seed)
    return draw(drawing, SIDE).pixels


@functools.cache
def png(seed: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels(seed)).save(out, "PNG")
    return out.getvalue()
