"""``medgrape audit-log``: verify, export or show the event log of a reading room."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option, Typer

from medgrape.cli.console import note, print_json, table
from medgrape.cli.options import Json, outside_runs
from medgrape.cli.room import COMMAND_LINE, ROOM, Database, Room, ServerConfig, check_room, load_settings, open_room
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.server.room import RoomStore
    from medgrape.server.storage.events import Verdict

app = Typer(no_args_is_help=True, help="Verify, export or show the event log of a reading room.")


@app.command()
def verify(
    export: Annotated[Path | None, Argument(help="An exported log. (default: the log of the room)")] = None,
    room: Room = ROOM,
    database: Database = None,
    config: ServerConfig = None,
    head: Annotated[str | None, Option(help="A last hash that you noted earlier, which must be in the log.")] = None,
    as_json: Json = False,
) -> None:
    """Check that no event of the log was altered or removed. Exit code 1 if one was.

    Example: medgrape audit-log verify --room reading-room
    """
    if export is not None:
        verdict = _verify_export(export, head)
    else:
        store = _open_unverified(room, database, config)
        with store.database.reading() as session:
            verdict = store.log.verify(session, head)
    if as_json:
        report = {"whole": verdict.whole, "events": verdict.events, "head": verdict.head}
        print_json(report | {"faults": list(verdict.faults)})
    else:
        for fault in verdict.faults:
            note(f"fault: {fault}")
        outcome = "nothing altered, nothing missing" if verdict.whole else "events were altered or are missing"
        note(f"{verdict.events:,} events; {outcome}.")
        note(f"last hash: {verdict.head or '-'}")
    if not verdict.whole:
        raise Exit(1)


@app.command()
def accept(room: Room = ROOM, database: Database = None, config: ServerConfig = None) -> None:
    """Accept the present end of the log, after you have investigated what verify reported. The log records this.

    Without it, verify reports a fault at the end of the log every time. Missing events stay missing.

    Example: medgrape audit-log accept --room reading-room
    """
    store = _open_unverified(room, database, config)
    with store.database.writing() as session:
        store.record(session, COMMAND_LINE, "log.accepted")
    with store.database.reading() as session:
        store.log.accept(session)
    note("The present end of the log is accepted.")


@app.command()
def export(
    out: Annotated[Path, Argument(help="File to write, with one event as JSON on each line.")],
    room: Room = ROOM,
    database: Database = None,
    config: ServerConfig = None,
) -> None:
    """Write the whole log to a file, which medgrape audit-log verify FILE checks on any machine.

    Example: medgrape audit-log export log.jsonl
    """
    outside_runs(out)
    store = open_room(room, database, config)
    from medgrape.server.storage.events import export as export_events

    with store.database.writing() as session:
        store.record(session, COMMAND_LINE, "log.exported")
    with store.database.reading() as session:
        count = export_events(session, out)
    note(f"{count:,} events: {out}")


@app.command()
def show(
    room: Room = ROOM,
    database: Database = None,
    config: ServerConfig = None,
    last: Annotated[int, Option(min=1, max=100_000, help="Number of events to show.")] = 20,
    as_json: Json = False,
) -> None:
    """Show the latest events.

    Example: medgrape audit-log show --last 50
    """
    store = open_room(room, database, config)
    from dataclasses import asdict

    from medgrape.server.storage.events import latest

    with store.database.reading() as session:
        events = latest(session, last)
    if as_json:
        print_json([asdict(event) | {"body": event.payload} for event in events])
        return
    rows = [(e.seq, e.at[:19], e.actor, e.kind, e.film or "", e.model or "") for e in events]
    table(f"The last {len(rows)} events of {room}", ("number", "time (UTC)", "user", "event", "film", "model"), rows)


def _open_unverified(room: Path, database: str | None, config: Path | None) -> "RoomStore":
    """Open an existing room even if its log and its folder do not match."""
    settings = load_settings(config, database)
    from medgrape.server.room import RoomFolder, RoomStore
    from medgrape.server.storage.database import migrate

    check_room(room)
    store = RoomStore.opened(RoomFolder(room), settings)
    migrate(store.database)
    return store


def _verify_export(path: Path, head: str | None) -> "Verdict":
    from medgrape.server.storage.events import verify_export

    try:
        with path.open(encoding="utf-8") as file:
            return verify_export(iter(file), head)
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not an exported log.") from error
