"""``medgrape serve``: the reading room's server."""

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import note
from medgrape.cli.options import found_runs
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.server.process import Ready
    from medgrape.server.room import RoomStore
    from medgrape.server.settings import ServerSettings

ROOM = Path("reading-room")
RoomOption = Annotated[
    Path, typer.Option("--room", help="Folder in which the server keeps films, models and, by default, its database.")
]
DatabaseOption = Annotated[
    str | None, typer.Option("--database", help="URL of a PostgreSQL or SQLite database. [default: SQLite in the room]")
]
SettingsFile = Annotated[
    Path | None, typer.Option("--config", help="Settings in TOML; options given here win over it.")
]
NEEDED = "The server needs: pip install 'medgrape[server]'."


def serve(
    run: Annotated[
        list[Path],
        typer.Argument(
            help="Runs to read with, here or ORG/NAME@COMMIT on a model hub; the first new one is put to use.",
            callback=found_runs,
        ),
    ],
    room: RoomOption = ROOM,
    config: SettingsFile = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0: any that is free. [default: 8000]")] = None,
    database: DatabaseOption = None,
    data: Annotated[
        Path | None, typer.Option(help="A prepared data set to measure models on, such as the one they learnt from.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that answer. [default: 2]")] = None,
    public_url: Annotated[str | None, typer.Option(help="Where people find it, when a proxy stands before it.")] = None,
    tls_certificate: Annotated[Path | None, typer.Option(help="PEM file; with it the server speaks HTTPS.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file.")] = None,
) -> None:
    """Serve the reading room: films, studies, models and the log, over HTTP.

    On this machine alone and while there are no users, nobody has to log in. For others: medgrape user add.

    Example: medgrape serve runs/demo --data demo/data --port 8000
    """
    process = server_process()
    from medgrape.server.room import RoomFolder

    settings = settings_with(
        config, database, host=host, port=port, workers=workers, public_url=public_url,
        data=None if data is None else str(data),
        tls_certificate=None if tls_certificate is None else str(tls_certificate),
        tls_key=None if tls_key is None else str(tls_key),
    )  # fmt: skip
    ready = process.prepare(run, RoomFolder(room), settings)
    announce(ready)
    process.run(ready)


def announce(ready: "Ready") -> None:
    """Say where the room is, and who may come in."""
    settings = ready.settings
    note(f"Reading room: {ready.address}   (Ctrl-C ends it)")
    note(f"Database: {ready.database}")
    if not ready.login:
        note("No login: for one person at this machine. To let others in, add users with: medgrape user add.")
    elif not settings.is_secure and not settings.is_local:
        note("Passwords travel unencrypted: give --tls-certificate and --tls-key, or put a proxy before it.")
    note("Research software, not a medical device.")


def settings_with(config: Path | None, database: str | None, **given: object) -> "ServerSettings":
    """The file's settings with every option that was really given put on top."""
    server_process()
    from medgrape.server.settings import load_server_settings

    return load_server_settings(config).overridden(database=database, **given)


def archive(room: Path, database: str | None, config: Path | None) -> "RoomStore":
    """The room's database, with the tables that this version knows."""
    settings = settings_with(config, database)
    from medgrape.server.room import RoomFolder, RoomStore

    return RoomStore.ready(RoomFolder(room), settings)


def refuse_no_room(room: Path) -> None:
    """Whoever only looks at a room makes none by a mistyped name."""
    if not (room / "secret.key").is_file():
        raise UserError(f"{room} is no room; name the folder of a server with --room.")


def server_process() -> ModuleType:
    """The server's processes, or a sentence that says how to get them."""
    try:
        from medgrape.server import process
    except ModuleNotFoundError as missing:
        raise UserError(NEEDED) from missing
    return process
