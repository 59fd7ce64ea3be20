"""Other programs, run to their end: what they said, or a refusal with their last words."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from release.steps import RefusedError

TOLD = 12
"""How many last lines of a program that failed are shown."""


@dataclass(frozen=True)
class Ended:
    """A program that has ended."""

    code: int
    out: str
    error: str

    @property
    def last_words(self) -> str:
        """The end of what it said."""
        return "\n".join((self.out + self.error).strip().splitlines()[-TOLD:])


def ended(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> Ended:
    """A program run to its end, however it ends."""
    run = subprocess.run(  # noqa: S603 (our own words)
        [str(word) for word in command],
        cwd=folder, env=without_our_paths() if environment is None else dict(environment),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Ended(run.returncode, run.stdout, run.stderr)


def done(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> Ended:
    """A program that must end well."""
    run = ended(command, folder, environment)
    if run.code != 0:
        words = " ".join(Path(str(word)).name if number == 0 else str(word) for number, word in enumerate(command))
        raise RefusedError(f"{words[:120]} ended with {run.code}:\n{run.last_words}")
    return run


def tool(name: str) -> Path:
    """A program of the environment that this one runs in (extra `release`)."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise RefusedError(f"{name} is not installed: pip install -c constraints.txt -e '.[release]'.")
    return path


def without_our_paths() -> dict[str, str]:
    """This environment, but for what would lead Python to the working copy."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
