"""``medgrape audit-log``: what was done on a server, and is the record whole?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import note, print_json, table
from medgrape.cli.options import Json, outside_runs
from medgrape.cli.serve import ROOM, DatabaseOption, RoomOption, SettingsFile, archive, refuse_no_room, settings_with
from medgrape.cli.user import COMMAND
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.server.room import RoomStore
    from medgrape.server.storage.events import Verdict

app = typer.Typer(no_args_is_help=True, help="What was done on a server: verify, export, show, accept.")
BROKEN = 1
"""Exit code where something is altered or missing."""


@app.command()
def verify(
    export: Annotated[Path | None, typer.Argument(help="An exported log; else the room's own.")] = None,
    room: RoomOption = ROOM,
    database: DatabaseOption = None,
    config: SettingsFile = None,
    head: Annotated[
        str | None, typer.Option(help="The last hash as you wrote it down earlier; it must be there.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Look at every event: is anything altered or missing? Exit code 1 if so.

    Example: medgrape audit-log verify --room reading-room
    """
    verdict = _exported(export, head) if export is not None else _own(room, database, config, head)
    if as_json:
        told = {"whole": verdict.whole, "events": verdict.events, "head": verdict.head}
        print_json(told | {"faults": list(verdict.faults)})
    else:
        for fault in verdict.faults:
            note(f"fault: {fault}")
        outcome = "nothing altered, nothing missing" if verdict.whole else "the log is NOT whole"
        note(f"{verdict.events:,} events; {outcome}.")
        note(f"last hash: {verdict.head or '-'}")
    if not verdict.whole:
        raise typer.Exit(BROKEN)


@app.command()
def accept(room: RoomOption = ROOM, database: DatabaseOption = None, config: SettingsFile = None) -> None:
    """Remember the log's end as it is now, after you looked into what verify said of it; that is written down, too.

    Until then a fault of the log's end is told by every verify. Events that are missing stay missing.

    Example: medgrape audit-log accept --room reading-room
    """
    opened = _opened(room, database, config)
    with opened.database.writing() as session:
        opened.record(session, COMMAND, "log.accepted")
    with opened.database.reading() as session:
        opened.log.accept(session)
    note("The log's end is remembered as it is now.")


@app.command()
def export(
    out: Annotated[Path, typer.Argument(help="File for an event on each line, as JSON.")],
    room: RoomOption = ROOM,
    database: DatabaseOption = None,
    config: SettingsFile = None,
) -> None:
    """Write the whole log into a file, which medgrape audit-log verify FILE can check anywhere.

    Example: medgrape audit-log export log.jsonl
    """
    outside_runs(out)
    opened = archive(room, database, config)
    from medgrape.server.storage.events import export as export_events

    with opened.database.writing() as session:
        opened.record(session, COMMAND, "log.exported")
    with opened.database.reading() as session:
        count = export_events(session, out)
    note(f"{count:,} events: {out}")


@app.command()
def show(
    room: RoomOption = ROOM,
    database: DatabaseOption = None,
    config: SettingsFile = None,
    last: Annotated[int, typer.Option(min=1, max=100_000, help="How many, the newest ones.")] = 20,
    as_json: Json = False,
) -> None:
    """Show what was done last.

    Example: medgrape audit-log show --last 50
    """
    opened = archive(room, database, config)
    from dataclasses import asdict

    from medgrape.server.storage.events import latest

    with opened.database.reading() as session:
        events = latest(session, last)
    if as_json:
        print_json([asdict(event) | {"body": event.payload} for event in events])
        return
    rows = [
        (event.seq, event.at[:19], event.actor, event.kind, event.film or "", event.model or "") for event in events
    ]
    table(f"The last {len(rows)} events of {room}", ("number", "when (UTC)", "who", "what", "film", "model"), rows)


def _own(room: Path, database: str | None, config: Path | None, head: str | None) -> "Verdict":
    opened = _opened(room, database, config)
    with opened.database.reading() as session:
        return opened.log.verify(session, head)


def _opened(room: Path, database: str | None, config: Path | None) -> "RoomStore":
    """A room that is there, whatever is wrong with its log."""
    settings = settings_with(config, database)
    from medgrape.server.room import RoomFolder, RoomStore
    from medgrape.server.storage.database import migrate

    refuse_no_room(room)
    opened = RoomStore.opened(RoomFolder(room), settings)
    migrate(opened.database)
    return opened


def _exported(path: Path, head: str | None) -> "Verdict":
    from medgrape.server.storage.events import verify_export

    try:
        with path.open(encoding="utf-8") as file:
            return verify_export(iter(file), head)
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no exported log.") from error
