"""Runs the demo in the empty environment, and requests pages of its reading room."""

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

from release.installation import clean_env
from release.programs import run_checked
from release.steps import RefusedError
from release.workspace import Workspace

RUN = "demo/tb-quick-model-seed0"
TIMEOUT = 120.0
"""Seconds for the start and for the end of the server."""


def demo(workspace: Workspace) -> str:
    """Run the quick demo in an empty folder, with only the environment in PATH."""
    workspace.trial.mkdir()
    begun = time.monotonic()
    run_checked([_medgrape(workspace), "demo", "--quick", "--no-serve"], workspace.trial, clean_env(workspace))
    wanted = (f"{RUN}/manifest.json", f"{RUN}-test/report.html", f"{RUN}-evidence.png")
    if missing := [name for name in wanted if not (workspace.trial / name).is_file()]:
        raise RefusedError(f"The demo passed, but did not write {', '.join(missing)}.")
    return f"films drawn, a model trained, evaluated, audited and used, in {time.monotonic() - begun:.0f} s."


def room(workspace: Workspace) -> str:
    """Serve the model of the demo, and request the page, its scripts, /health and /ready."""
    with _serving(workspace) as address:
        page = _get(address, "/").decode()
        scripts = re.findall(r'src="(/assets/[^"]+\.js)"', page)
        if not scripts:
            raise RefusedError("The page at / has no script.")
        sizes = [len(_get(address, script)) for script in scripts]
        health = json.loads(_get(address, "/api/v1/health"))
        if health != {"status": "ok", "version": workspace.version}:
            raise RefusedError(f"/api/v1/health says {health}.")
        _get(address, "/api/v1/ready")
    return f"the page (scripts: {sum(sizes) // 1000} kB), /health and /ready answer; Ctrl-C ends the server."


@contextmanager
def _serving(workspace: Workspace) -> Iterator[str]:
    """Serve the trained model at a free port, and stop it by Ctrl-C."""
    command = [str(_medgrape(workspace)), "serve", RUN, "--room", "room", "--port", "0"]
    server = subprocess.Popen(  # noqa: S603 (constant arguments)
        command,
        cwd=workspace.trial,
        env=clean_env(workspace),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    watchdog = threading.Timer(TIMEOUT, server.kill)
    watchdog.start()
    output: list[str] = []
    try:
        address = _address(server, output)
        listener = threading.Thread(target=lambda: output.extend(server.stdout or ()), daemon=True)
        listener.start()
        yield address
        server.send_signal(signal.SIGINT)
        code = server.wait(TIMEOUT)
    finally:
        watchdog.cancel()
        server.kill()
        server.wait()
    if code != 0:
        raise RefusedError(f"The server ended with {code}: {''.join(output[-5:])}")


def _address(server: "subprocess.Popen[str]", output: list[str]) -> str:
    for line in server.stdout or ():
        output.append(line)
        if found := re.search(r"Reading room: (http://\S+)", line):
            return found[1]
    raise RefusedError(f"The server did not start: {''.join(output[-5:])}")


def _get(address: str, path: str) -> bytes:
    try:
        with urllib.request.urlopen(address + path, timeout=60) as answer:  # noqa: S310 (our own server)
            return bytes(answer.read())
    except (OSError, urllib.error.HTTPError) as error:
        raise RefusedError(f"{path} does not answer: {error}.") from error


def _medgrape(workspace: Workspace) -> Path:
    return workspace.environment / "bin" / "medgrape"
