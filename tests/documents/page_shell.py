"""A shell in which ``medgrape`` runs in this process, servers run in the background, and make only prints its plan.

Everything else in a block is run by bash, so pipes, variables and loops work as written.
"""

import json
import os
import re
import select
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from background_servers import Servers
from document_blocks import ROOT
from in_process import run_in_process

TIMEOUT = 280.0
OPTIONAL = {"curl", "jq", "sqlite3"}
"""System programs that pages use and some machines lack; .ci/run installs them."""
_CLIENT = """#!{python} -SE
import json, os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({address!r})
socket.send_fds(line, [json.dumps([{name!r}, os.getcwd(), *sys.argv[1:]]).encode()], [0, 1, 2])
sys.exit(int(line.recv(16) or b"70"))
"""
_BEFORE = """set -a; [ -f {state} ] && . {state} 2>/dev/null; set -E -o pipefail; set +a
cd "${{PAGE_FOLDER:-.}}"
trap 'code=$?; PAGE_FOLDER=$PWD; export -p > {state}; exit $code' EXIT
trap 'code=$?; echo "[line $((LINENO - {skipped})): $BASH_COMMAND]" >&2; exit $code' ERR
set -a
"""


@dataclass
class Ended:
    """Exit code and output of a block."""

    code: int
    output: str


@dataclass
class Shell:
    """One shell for all blocks of a page; variables and the current folder are kept between blocks."""

    folder: Path
    work: Path
    """Folder for files of the shell itself."""
    servers: Servers
    configs: Path
    _address: Path = field(init=False)

    def __post_init__(self) -> None:
        self._address = self.work / "s"
        (self.work / "bin").mkdir(parents=True)
        for name in ("medgrape", "make"):
            program = self.work / "bin" / name
            program.write_text(_CLIENT.format(python=sys.executable, address=str(self._address), name=name))
            program.chmod(0o755)
        (self.work / ".curlrc").write_text("fail-with-body\n")  # status 400 or above is a failure

    def run(self, text: str) -> Ended:
        """Run a block to its end, or to the first command that fails."""
        before = _BEFORE.format(state=self.work / "state", skipped=_BEFORE.count("\n"))
        script, output = self.work / "script", self.work / "output"
        script.write_text(before + self.servers.ports.replace_in(text))
        with socket.socket(socket.AF_UNIX) as listening, output.open("wb") as out:
            self._address.unlink(missing_ok=True)
            listening.bind(str(self._address))
            listening.listen()
            bash = subprocess.Popen(
                ["bash", str(script)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=self._environment(), start_new_session=True,
            )  # fmt: skip
            try:
                self._answer(listening, bash)
            finally:
                bash.kill()
                bash.wait()
        return Ended(bash.returncode, output.read_text("utf-8", "replace"))

    def _environment(self) -> dict[str, str]:
        path = [str(self.work / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        sources = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        return os.environ | {"PATH": ":".join(path), "CURL_HOME": str(self.work), "PYTHONPATH": sources}

    def _answer(self, listening: socket.socket, bash: "subprocess.Popen[bytes]") -> None:
        """Serve the commands of the block until it has ended."""
        watched = os.pidfd_open(bash.pid)
        try:
            while True:
                ready, _, _ = select.select([listening, watched], [], [], TIMEOUT)
                if listening in ready:
                    self._serve_one(listening)
                else:
                    return
        finally:
            os.close(watched)

    def _serve_one(self, listening: socket.socket) -> None:
        line, _ = listening.accept()
        with line:
            request, files, _, _ = socket.recv_fds(line, 1 << 20, 3)
            name, folder, *words = json.loads(request)
            line.sendall(str(self._run_command(name, Path(folder), words, files)).encode())

    def _run_command(self, name: str, folder: Path, words: list[str], files: list[int]) -> int:
        if name == "medgrape" and not self.servers.runs_until_stopped(words):
            return run_in_process(words, folder, *files, self.configs)
        with os.fdopen(files[0]), os.fdopen(files[1], "w") as out, os.fdopen(files[2], "w") as err:
            if name == "medgrape":
                return self.servers.start(words, folder, err)
            plan = ["/usr/bin/env", "make", "--dry-run", "--always-make", "--directory", str(ROOT), *words]
            return subprocess.run(plan, stdout=out, stderr=err, check=False).returncode


def missing_program(ended: Ended) -> str | None:
    """Return the program that bash did not find, even if the block continued without it."""
    match = re.search(r"line \d+: (\S+): command not found", ended.output)
    return match.group(1) if match else None


def may_be_missing(program: str) -> bool:
    """Whether a page may be skipped if the program is missing; never in CI."""
    return program in OPTIONAL and not os.environ.get("CI")
