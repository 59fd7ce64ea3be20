"""All commands of ``medgrape``, and the handling of errors: one message and an exit code."""

import os
import signal
import sys
from typing import Annotated

from typer import Exit, Option, Typer, echo

from medgrape import __version__
from medgrape.cli.atlas import app as atlas
from medgrape.cli.audit import audit
from medgrape.cli.audit_log import app as audit_log
from medgrape.cli.calibrate import calibrate
from medgrape.cli.concept import app as concept
from medgrape.cli.console import print_error
from medgrape.cli.data import app as data
from medgrape.cli.demo import demo
from medgrape.cli.evaluate import evaluate
from medgrape.cli.exchange import boxes, readings
from medgrape.cli.export import export
from medgrape.cli.film import film
from medgrape.cli.help_types import use_plain_types
from medgrape.cli.hub import app as hub
from medgrape.cli.pacs import app as pacs
from medgrape.cli.parts import parts
from medgrape.cli.predict import predict
from medgrape.cli.rank_zero import BAD_INPUT, INTERRUPTED
from medgrape.cli.read import read
from medgrape.cli.reproduce import reproduce
from medgrape.cli.serve import serve
from medgrape.cli.train import train
from medgrape.cli.user import tokens, users
from medgrape.errors import UserError, os_error_message

_INTERNAL_ERROR = 70
use_plain_types()
app = Typer(
    name="medgrape",
    help="Read chest X-rays with concepts (findings) that can be localised, corrected and extended.\n\n"
    "To begin, run medgrape demo. Research software, not a medical device.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_START, _TRAIN, _CHANGE, _READ, _SERVER = (
    "Start here", "Train and evaluate", "Change and publish a model", "Read films", "Reading room"
)  # fmt: skip
for _panel, _command in (
    (_START, demo), (_TRAIN, train), (_TRAIN, evaluate), (_TRAIN, audit), (_TRAIN, calibrate), (_TRAIN, reproduce),
    (_CHANGE, export), (_READ, read), (_READ, predict), (_READ, film), (_SERVER, serve), (_TRAIN, parts),
):  # fmt: skip
    app.command(rich_help_panel=_panel)(_command)
for _panel, _name, _group in (
    (_TRAIN, "data", data), (_TRAIN, "boxes", boxes), (_READ, "readings", readings), (_CHANGE, "atlas", atlas),
    (_CHANGE, "concept", concept), (_CHANGE, "hub", hub), (_READ, "pacs", pacs), (_SERVER, "user", users),
    (_SERVER, "token", tokens), (_SERVER, "audit-log", audit_log),
):  # fmt: skip
    app.add_typer(_group, name=_name, rich_help_panel=_panel)


def _show_version(wanted: bool) -> None:
    if wanted:
        echo(f"medgrape {__version__}")
        raise Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of ``medgrape`` itself."""


def _stop(_signal: int, _frame: object) -> None:
    """Handle SIGTERM like Ctrl-C, so that both clean up."""
    raise KeyboardInterrupt


def main() -> None:
    """Run the ``medgrape`` command."""
    run(app)


def run(commands: Typer) -> None:
    """Run a command line; after an error, print one message and exit with its code."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        commands()
    except BrokenPipeError:  # the reader of the output closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("MEDGRAPE_DEBUG"):
            raise
        message, code = _message_and_code(error)
        print_error(message)
        sys.exit(code)


def _message_and_code(error: BaseException) -> tuple[str, int]:
    if isinstance(error, UserError):
        return str(error), BAD_INPUT
    if isinstance(error, KeyboardInterrupt):
        return "Stopped.", INTERRUPTED
    if isinstance(error, OSError):
        return os_error_message(error), BAD_INPUT
    message = f"This is a fault in medgrape ({type(error).__name__}: {error}). MEDGRAPE_DEBUG=1 shows the traceback."
    return message, _INTERNAL_ERROR
