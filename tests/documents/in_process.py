"""Runs ``medgrape`` in this process, as importing torch for every command would take minutes over all pages."""

import contextlib
import getpass
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from medgrape.cli.app import main

PASSWORD = "correct horse battery"  # noqa: S105
"""Answer to every password prompt."""
PACKAGE_SETTINGS = {
    "medgrape.cli.demo.CONFIG": "demo.toml",
    "medgrape.paper.reproduce.FULL": "reproduce.toml",
    "medgrape.paper.reproduce.QUICK": "reproduce-quick.toml",
}
"""Settings that commands load by default, replaced by the shortened ones."""

QUICK_FILMS = 80  # half of the demo's


class Terminal(io.StringIO):
    """Standard input that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def run_in_process(words: list[str], folder: Path, stdin: int, stdout: int, stderr: int, configs: Path) -> int:
    """Run a command with the shell's files for input and output; return the exit code."""
    with _restoring(), _files(stdin, stdout, stderr), _cut_settings(configs), contextlib.chdir(folder):
        sys.argv = ["medgrape", *words]
        try:
            main()
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        return 0


@contextlib.contextmanager
def _restoring() -> Iterator[None]:
    """Restore arguments, environment and signal handler after a command."""
    words, environment, on_term = sys.argv, dict(os.environ), signal.getsignal(signal.SIGTERM)
    try:
        with warnings.catch_warnings():
            yield
    finally:
        sys.argv = words
        os.environ.clear()
        os.environ.update(environment)
        signal.signal(signal.SIGTERM, on_term)


@contextlib.contextmanager
def _files(stdin: int, stdout: int, stderr: int) -> Iterator[None]:
    with (
        os.fdopen(stdin, "r", encoding="utf-8") as given,
        os.fdopen(stdout, "w", encoding="utf-8") as out,
        os.fdopen(stderr, "w", encoding="utf-8") as err,
        mock.patch.object(sys, "stdin", given if _piped(stdin) else Terminal()),
        mock.patch.object(getpass, "getpass", return_value=PASSWORD),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        yield


def _piped(stdin: int) -> bool:
    return not os.path.samestat(os.fstat(stdin), Path(os.devnull).stat())


@contextlib.contextmanager
def _cut_settings(configs: Path) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch("medgrape.cli.demo.QUICK_FILMS", QUICK_FILMS))
        for where, file in PACKAGE_SETTINGS.items():
            stack.enter_context(mock.patch(where, configs / file))
        stack.enter_context(mock.patch("medgrape.paper.real_films.RECIPES", configs))
        yield
