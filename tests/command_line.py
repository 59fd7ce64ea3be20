"""Runs ``medgrape`` in this process, as a new process takes three seconds to import torch."""

import contextlib
import io
import os
import signal
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from medgrape.cli.app import main


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command, as ``subprocess.run`` returns them."""

    returncode: int
    stdout: str
    stderr: str


def medgrape(*words: object, cwd: Path | None = None, stdin: str = "") -> CommandResult:
    """Run a command in a folder with a text as standard input."""
    out, err = io.StringIO(), io.StringIO()
    on_term, folder = signal.getsignal(signal.SIGTERM), Path.cwd() if cwd is None else cwd
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            contextlib.chdir(folder),
            mock.patch.object(sys, "argv", ["medgrape", *map(str, words)]),
            mock.patch.object(sys, "stdin", io.StringIO(stdin)),
            mock.patch.dict(os.environ),
            warnings.catch_warnings(),
        ):
            code = _exit_code()
    finally:
        signal.signal(signal.SIGTERM, on_term)
    return CommandResult(code, out.getvalue(), err.getvalue())


def _exit_code() -> int:
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
