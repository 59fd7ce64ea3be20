"""Servers that a page starts: on ports that are free, asked whether they are well, ended with the page."""

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

START = 120.0
"""Seconds that a server may take to start."""
_PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+|(?<=localhost:)\d+|(?<=--port )\d+")
DEFAULT = "8000"


@dataclass
class Ports:
    """For every port that a page names, one that is free here."""

    _given: dict[str, str] = field(default_factory=dict)

    def free(self, named: str) -> str:
        """The port that is used for one that is named."""
        if named not in self._given:
            with socket.create_server(("127.0.0.1", 0)) as found:
                self._given[named] = str(found.getsockname()[1])
        return self._given[named]

    def put_into(self, text: str) -> str:
        """A block with the ports that are used."""
        return _PORT.sub(lambda found: self.free(found.group()), text)


@dataclass
class Running:
    """A server that was started."""

    process: "subprocess.Popen[bytes]"
    port: str
    room: str


@dataclass
class Servers:
    """All that a page has running."""

    desk: Path
    ports: Ports = field(default_factory=Ports)
    running: list[Running] = field(default_factory=list)

    def lasting(self, words: list[str]) -> bool:
        """Whether a command runs until somebody ends it."""
        if words[:1] == ["demo"]:
            return "--no-serve" not in words and "--help" not in words
        return words[:1] == ["serve"] and "--help" not in words

    def start(self, words: list[str], folder: Path, err: TextIO) -> int:
        """Start one and wait until it says that it is well; one before it in the same room or at the same port ends."""
        words = ["127.0.0.1" if word == "0.0.0.0" else word for word in words]  # noqa: S104 (it is taken out)
        port = _told(words, "--port") or self.ports.free(DEFAULT)
        room = str((folder / (_told(words, "--room") or "reading-room")).resolve())
        for other in [one for one in self.running if one.room == room or one.port == port]:
            self._end(other)
        extra = [] if "--port" in words else ["--port", port]
        extra += ["--workers", "1"] if words[0] == "serve" and "--workers" not in words else []
        log = self.desk / f"server-{len(list(self.desk.glob('server-*')))}.log"
        with log.open("wb") as out:
            command = [sys.executable, "-m", "medgrape", *words, *extra]
            process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.running.append(Running(process, port, room))
        if self._well(process, port, secure="--tls-certificate" in words):
            return 0
        self._end(self.running[-1])
        err.write(f"The server did not answer:\n{log.read_text('utf-8', 'replace')}")
        return process.returncode or 1

    def end_all(self) -> None:
        """None outlives its page."""
        for one in list(self.running):
            self._end(one)

    def _end(self, one: Running) -> None:
        self.running.remove(one)
        one.process.terminate()
        try:
            one.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            one.process.kill()
            one.process.wait()

    def _well(self, process: "subprocess.Popen[bytes]", port: str, *, secure: bool) -> bool:
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        address = f"{'https' if secure else 'http'}://127.0.0.1:{port}/api/v1/health"
        ends_at = time.monotonic() + START
        while time.monotonic() < ends_at and process.poll() is None:
            try:
                with urllib.request.urlopen(address, timeout=5, context=trusting if secure else None) as answer:  # noqa: S310
                    return bool(answer.status == 200)
            except OSError:
                time.sleep(0.1)
        return False


def _told(words: list[str], option: str) -> str | None:
    return words[words.index(option) + 1] if option in words else None
