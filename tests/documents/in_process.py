"""``medgrape`` as typed, in this process: importing torch anew for every command would take minutes over all pages."""

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
"""What the person in front of the pages types where a password is asked for."""
PACKAGE_SETTINGS = {
    "medgrape.cli.demo.CONFIG": "demo.toml",
    "medgrape.paper.reproduce.FULL": "reproduce.toml",
    "medgrape.paper.reproduce.QUICK": "reproduce-quick.toml",
}
"""Where commands find settings by themselves; here they find the cut ones."""

QUICK_FILMS = 80
"""Half of what the demo draws."""


class Terminal(io.StringIO):
    """Somebody who sits there, where nothing is piped in."""

    def isatty(self) -> bool:
        return True


def typed(words: list[str], folder: Path, stdin: int, stdout: int, stderr: int, configs: Path) -> int:
    """Run a command with a shell's own files for its input and outputs; the exit code."""
    with _as_found(), _files(stdin, stdout, stderr), _cut_settings(configs), contextlib.chdir(folder):
        sys.argv = ["medgrape", *words]
        try:
            main()
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        return 0


@contextlib.contextmanager
def _as_found() -> Iterator[None]:
    """Whatever a command leaves in the process is taken back."""
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
        stack.enter_context(mock.patch("medgrape.paper.suites.real_films.RECIPES", configs))
        yield
