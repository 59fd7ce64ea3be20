"""The demo, run from the empty environment, and its reading room, asked over HTTP."""

import json
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from release.bench import Bench
from release.emptiness import bare
from release.programs import done
from release.steps import RefusedError

RUN = "demo/tb-quick-model-seed0"
PATIENCE = 120.0
"""Seconds that a server may take until it listens, and until it has ended."""


def demo(bench: Bench) -> str:
    """Run the quick demo in an empty folder, with nothing but the environment in PATH."""
    bench.trial.mkdir()
    begun = time.monotonic()
    done([_medgrape(bench), "demo", "--quick", "--no-serve"], bench.trial, bare(bench))
    wanted = (f"{RUN}/manifest.json", f"{RUN}-test/report.html", f"{RUN}-evidence.png")
    if missing := [name for name in wanted if not (bench.trial / name).is_file()]:
        raise RefusedError(f"The demo ended well, but made no {', '.join(missing)}.")
    return f"films drawn, a model trained, evaluated, audited and read with, in {time.monotonic() - begun:.0f} s."


def room(bench: Bench) -> str:
    """Serve what the demo trained: the page, its program, /health and /ready."""
    with _serving(bench) as address:
        page = _got(address, "/").decode()
        scripts = re.findall(r'src="(/assets/[^"]+\.js)"', page)
        if not scripts:
            raise RefusedError("The page at / names no program of its own.")
        sizes = [len(_got(address, script)) for script in scripts]
        health = json.loads(_got(address, "/api/v1/health"))
        if health != {"status": "ok", "version": bench.version}:
            raise RefusedError(f"/api/v1/health says {health}.")
        _got(address, "/api/v1/ready")
    return f"the page (program: {sum(sizes) // 1000} kB), /health and /ready answer; Ctrl-C ends the server."


@contextmanager
def _serving(bench: Bench) -> Iterator[str]:
    """A server of the trained model at any free port of this machine, ended by Ctrl-C."""
    command = [str(_medgrape(bench)), "serve", RUN, "--room", "room", "--port", "0"]
    server = subprocess.Popen(  # noqa: S603 (our own words)
        command, cwd=bench.trial, env=bare(bench), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    giving_up = threading.Timer(PATIENCE, server.kill)
    giving_up.start()
    said: list[str] = []
    try:
        address = _address(server, said)
        listener = threading.Thread(target=lambda: said.extend(server.stdout or ()), daemon=True)
        listener.start()
        yield address
        server.send_signal(signal.SIGINT)
        code = server.wait(PATIENCE)
    finally:
        giving_up.cancel()
        server.kill()
        server.wait()
    if code != 0:
        raise RefusedError(f"The server ended with {code}: {''.join(said[-5:])}")


def _address(server: "subprocess.Popen[str]", said: list[str]) -> str:
    for line in server.stdout or ():
        said.append(line)
        if found := re.search(r"Reading room: (http://\S+)", line):
            return found[1]
    raise RefusedError(f"The server did not start: {''.join(said[-5:])}")


def _got(address: str, path: str) -> bytes:
    try:
        with urllib.request.urlopen(address + path, timeout=60) as answer:  # noqa: S310 (our own server)
            return bytes(answer.read())
    except (OSError, urllib.error.HTTPError) as error:
        raise RefusedError(f"{path} does not answer: {error}.") from error


def _medgrape(bench: Bench) -> Path:
    return bench.environment / "bin" / "medgrape"
