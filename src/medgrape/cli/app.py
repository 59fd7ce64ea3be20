"""All commands under one name, and the one place where errors become words and exit codes."""

import os
import signal
import sys
from typing import Annotated

import typer

from medgrape import __version__
from medgrape.cli.atlas import app as atlas
from medgrape.cli.audit import audit
from medgrape.cli.audit_log import app as audit_log
from medgrape.cli.boxes import app as boxes
from medgrape.cli.calibrate import calibrate
from medgrape.cli.concept import app as concept
from medgrape.cli.console import complain
from medgrape.cli.data import app as data
from medgrape.cli.demo import demo
from medgrape.cli.evaluate import evaluate
from medgrape.cli.export import export
from medgrape.cli.film import film
from medgrape.cli.hub import app as hub
from medgrape.cli.pacs import app as pacs
from medgrape.cli.pacs import watch as pacs_watch
from medgrape.cli.parts import parts
from medgrape.cli.predict import predict
from medgrape.cli.rank_zero import BAD_INPUT, INTERRUPTED
from medgrape.cli.read import read
from medgrape.cli.readings import app as readings
from medgrape.cli.reproduce import reproduce
from medgrape.cli.serve import serve
from medgrape.cli.train import train
from medgrape.cli.user import tokens, users
from medgrape.errors import UserError, os_error_message

BUG = 70
app = typer.Typer(
    name="medgrape",
    help="Read chest X-rays with concepts that one can point at, correct and extend. Research software, not a medical "
    "device.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(film)
app.command()(train)
app.command()(evaluate)
app.command()(audit)
app.command()(calibrate)
app.command()(read)
app.command()(export)
app.command()(predict)
app.command()(reproduce)
app.command()(parts)
app.command()(serve)
app.add_typer(data, name="data")
app.add_typer(boxes, name="boxes")
app.add_typer(readings, name="readings")
app.add_typer(atlas, name="atlas")
app.add_typer(concept, name="concept")
app.add_typer(hub, name="hub")
pacs.command("watch")(pacs_watch)
app.add_typer(pacs, name="pacs")
app.add_typer(users, name="user")
app.add_typer(tokens, name="token")
app.add_typer(audit_log, name="audit-log")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"medgrape {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Options of no single command."""


def _stop(_signal: int, _frame: object) -> None:
    """Handle SIGTERM like Ctrl-C, so that both clean up."""
    raise KeyboardInterrupt


def main() -> None:
    """Run the ``medgrape`` command."""
    run(app)


def run(commands: typer.Typer) -> None:
    """Run a command line; an error ends it with one sentence and an exit code."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        commands()
    except BrokenPipeError:  # whoever read our output closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("MEDGRAPE_DEBUG"):
            raise
        sentence, code = _told(error)
        complain(sentence)
        sys.exit(code)


def _told(error: BaseException) -> tuple[str, int]:
    """What to say about an error, and the exit code."""
    if isinstance(error, UserError):
        return str(error), BAD_INPUT
    if isinstance(error, KeyboardInterrupt):
        return "Stopped.", INTERRUPTED
    if isinstance(error, OSError):
        return os_error_message(error), BAD_INPUT
    return f"This is a fault in medgrape ({type(error).__name__}: {error}). MEDGRAPE_DEBUG=1 shows where.", BUG
