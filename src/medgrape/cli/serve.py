"""``medgrape serve``: start the server of a reading room."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from medgrape.cli.console import note
from medgrape.cli.options import resolve_run
from medgrape.cli.room import ROOM, Database, Room, ServerConfig, import_server, load_settings

if TYPE_CHECKING:
    from medgrape.server.process import Ready


def _resolve_runs(runs: list[Path]) -> list[Path]:
    return [resolve_run(run) for run in runs]


def serve(
    run: Annotated[
        list[Path],
        Argument(
            help="Folders of runs, or ORG/NAME@REVISION. The first new one becomes active.", callback=_resolve_runs
        ),
    ],
    room: Room = ROOM,
    config: ServerConfig = None,
    host: Annotated[str | None, Option(help="Address to listen on. (default: 127.0.0.1)")] = None,
    port: Annotated[int | None, Option(help="Port to listen on; 0: any free one. (default: 8000)")] = None,
    database: Database = None,
    data: Annotated[Path | None, Option(help="Prepared data set to measure models on.")] = None,
    workers: Annotated[int | None, Option(help="Number of worker processes. (default: 2)")] = None,
    public_url: Annotated[
        str | None, Option(help="Address that users open if a proxy is in front of the server; needs users.")
    ] = None,
    tls_certificate: Annotated[Path | None, Option(help="PEM file; the server then uses HTTPS.")] = None,
    tls_key: Annotated[Path | None, Option(help="PEM file with the key of the certificate.")] = None,
) -> None:
    """Start the server of a reading room, where people open films, correct readings and compare models.

    On this machine and without users, it needs no login. To let others in, add users: medgrape user add.

    Example: medgrape serve runs/demo --data demo/data --port 8000
    """
    process = import_server()
    from medgrape.server.room import RoomFolder

    settings = load_settings(
        config, database, host=host, port=port, workers=workers, public_url=public_url, data=data,
        tls_certificate=tls_certificate, tls_key=tls_key,
    )  # fmt: skip
    ready = process.prepare(run, RoomFolder(room), settings)
    announce(ready)
    process.run(ready)


def announce(ready: "Ready") -> None:
    """Print the address of the room and who can use it."""
    settings = ready.settings
    note(f"Reading room: {ready.address}   (Ctrl-C stops it)")
    note(f"Database: {ready.database}")
    if not ready.login:
        note("No login: only for you, on this machine. To let others in, add users with: medgrape user add.")
    elif not settings.is_secure and not settings.is_local:
        note("Passwords are sent unencrypted: give --tls-certificate and --tls-key, or use a proxy with HTTPS.")
    note("Research software, not a medical device.")
