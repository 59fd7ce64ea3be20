"""A shell in which ``medgrape`` is answered by this process, servers are left running, and make only tells its plan.

Whatever else stands in a block is run by bash as it is written, so that pipes, variables and loops are what they are.
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

from document_blocks import ROOT
from in_process import typed
from left_running import Servers

PATIENCE = 280.0
OPTIONAL = {"curl", "jq", "sqlite3"}
"""Programs of the system that pages use and not every machine has; .ci/run installs them."""
_ASKING = """#!{python} -SE
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
    """How a block ended, and everything it said."""

    code: int
    said: str


@dataclass
class Shell:
    """One shell for all blocks of a page: variables and the folder stay as a block left them."""

    folder: Path
    desk: Path
    """For what belongs to the shell and not to the page."""
    servers: Servers
    configs: Path
    _address: Path = field(init=False)

    def __post_init__(self) -> None:
        self._address = self.desk / "s"
        (self.desk / "bin").mkdir(parents=True)
        for name in ("medgrape", "make"):
            program = self.desk / "bin" / name
            program.write_text(_ASKING.format(python=sys.executable, address=str(self._address), name=name))
            program.chmod(0o755)
        (self.desk / ".curlrc").write_text("fail-with-body\n")  # an answer of 400 or above is a failure

    def run(self, text: str) -> Ended:
        """A block, to its end or to its first command that fails."""
        before = _BEFORE.format(state=self.desk / "state", skipped=_BEFORE.count("\n"))
        script, said = self.desk / "script", self.desk / "said"
        script.write_text(before + self.servers.ports.put_into(text))
        with socket.socket(socket.AF_UNIX) as listening, said.open("wb") as out:
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
        return Ended(bash.returncode, said.read_text("utf-8", "replace"))

    def _environment(self) -> dict[str, str]:
        path = [str(self.desk / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        sources = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        return os.environ | {"PATH": ":".join(path), "CURL_HOME": str(self.desk), "PYTHONPATH": sources}

    def _answer(self, listening: socket.socket, bash: "subprocess.Popen[bytes]") -> None:
        """Do what commands of the block ask for, until it has ended."""
        watched = os.pidfd_open(bash.pid)
        try:
            while True:
                asked, _, _ = select.select([listening, watched], [], [], PATIENCE)
                if listening in asked:
                    self._do(listening)
                else:
                    return
        finally:
            os.close(watched)

    def _do(self, listening: socket.socket) -> None:
        line, _ = listening.accept()
        with line:
            told, files, _, _ = socket.recv_fds(line, 1 << 20, 3)
            name, folder, *words = json.loads(told)
            line.sendall(str(self._called(name, Path(folder), words, files)).encode())

    def _called(self, name: str, folder: Path, words: list[str], files: list[int]) -> int:
        if name == "medgrape" and not self.servers.lasting(words):
            return typed(words, folder, *files, self.configs)
        with os.fdopen(files[0]), os.fdopen(files[1], "w") as out, os.fdopen(files[2], "w") as err:
            if name == "medgrape":
                return self.servers.start(words, folder, err)
            plan = ["/usr/bin/env", "make", "--dry-run", "--always-make", "--directory", str(ROOT), *words]
            return subprocess.run(plan, stdout=out, stderr=err, check=False).returncode


def missing_program(ended: Ended) -> str | None:
    """The program that bash looked for and did not find, also where the block went on without it."""
    found = re.search(r"line \d+: (\S+): command not found", ended.said)
    return found.group(1) if found else None


def may_be_missing(program: str) -> bool:
    """Whether a page may be left untried for its lack: never where every change is tested."""
    return program in OPTIONAL and not os.environ.get("CI")
