"""Runs other programs; a failure shows the end of their output."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from release.steps import RefusedError

LINES_SHOWN = 12


@dataclass(frozen=True)
class Finished:
    """Exit code and output of a program."""

    code: int
    out: str
    error: str

    @property
    def output_tail(self) -> str:
        """The last lines of its output."""
        return "\n".join((self.out + self.error).strip().splitlines()[-LINES_SHOWN:])


def run_program(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> Finished:
    """Run a program and return its result, also if it fails."""
    run = subprocess.run(  # noqa: S603 (constant arguments)
        [str(word) for word in command],
        cwd=folder, env=environment_without_our_paths() if environment is None else dict(environment),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Finished(run.returncode, run.stdout, run.stderr)


def run_checked(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> Finished:
    """Run a program; raise an error if it fails."""
    run = run_program(command, folder, environment)
    if run.code != 0:
        words = " ".join(Path(str(word)).name if number == 0 else str(word) for number, word in enumerate(command))
        raise RefusedError(f"{words[:120]} ended with {run.code}:\n{run.output_tail}")
    return run


def tool(name: str) -> Path:
    """Return the path of a program of this environment (extra `release`)."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise RefusedError(f"{name} is not installed: pip install -c constraints.txt -e '.[release]'.")
    return path


def environment_without_our_paths() -> dict[str, str]:
    """Return the variables of this process without those that let Python find the working copy."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
