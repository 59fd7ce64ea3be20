"""Servers that a page starts: on free ports, checked for health, stopped at the end of the page."""

import re
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

START_TIMEOUT = 120.0
_PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+|(?<=localhost:)\d+|(?<=--port )\d+")
DEFAULT_PORT = "8000"


@dataclass
class Ports:
    """Maps every port that a page names to a free port of this machine."""

    _ports: dict[str, str] = field(default_factory=dict)

    def free(self, named: str) -> str:
        """Return the free port for a port that the page names."""
        if named not in self._ports:
            with socket.create_server(("127.0.0.1", 0)) as listening:
                self._ports[named] = str(listening.getsockname()[1])
        return self._ports[named]

    def replace_in(self, text: str) -> str:
        """Return the text of a block with its ports replaced."""
        return _PORT.sub(lambda port: self.free(port.group()), text)


@dataclass
class Running:
    """A running server."""

    process: "subprocess.Popen[bytes]"
    port: str
    room: str


@dataclass
class Servers:
    """The servers of one page."""

    work: Path
    ports: Ports = field(default_factory=Ports)
    running: list[Running] = field(default_factory=list)

    def runs_until_stopped(self, words: list[str]) -> bool:
        """Whether a command starts a server."""
        if words[:1] == ["demo"]:
            return "--no-serve" not in words and "--help" not in words
        return words[:1] == ["serve"] and "--help" not in words

    def start(self, words: list[str], folder: Path, err: TextIO) -> int:
        """Start a server and wait until it is healthy; stop another one in the same room or at the same port before."""
        words = ["127.0.0.1" if word == "0.0.0.0" else word for word in words]  # noqa: S104 (replaced)
        port = _value(words, "--port") or self.ports.free(DEFAULT_PORT)
        room = str((folder / (_value(words, "--room") or "reading-room")).resolve())
        for other in [server for server in self.running if server.room == room or server.port == port]:
            self._stop(other)
        extra = [] if "--port" in words else ["--port", port]
        extra += ["--workers", "1"] if words[0] == "serve" and "--workers" not in words else []
        log = self.work / f"server-{len(list(self.work.glob('server-*')))}.log"
        with log.open("wb") as out:
            command = [sys.executable, "-m", "medgrape", *words, *extra]
            process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.running.append(Running(process, port, room))
        if self._is_healthy(process, port, secure="--tls-certificate" in words):
            return 0
        self._stop(self.running[-1])
        err.write(f"The server did not answer:\n{log.read_text('utf-8', 'replace')}")
        return process.returncode or 1

    def stop_all(self) -> None:
        """Stop all servers."""
        for server in list(self.running):
            self._stop(server)

    def _stop(self, server: Running) -> None:
        self.running.remove(server)
        server.process.terminate()
        try:
            server.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.process.kill()
            server.process.wait()

    def _is_healthy(self, process: "subprocess.Popen[bytes]", port: str, *, secure: bool) -> bool:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        address = f"{'https' if secure else 'http'}://127.0.0.1:{port}/api/v1/health"
        ends_at = time.monotonic() + START_TIMEOUT
        while time.monotonic() < ends_at and process.poll() is None:
            try:
                with urllib.request.urlopen(address, timeout=5, context=context if secure else None) as answer:  # noqa: S310
                    return bool(answer.status == 200)
            except OSError:
                time.sleep(0.1)
        return False


def _value(words: list[str], option: str) -> str | None:
    return words[words.index(option) + 1] if option in words else None
