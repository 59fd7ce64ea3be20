"""Options and functions of all commands that open a reading room."""

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

from typer import Option

from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.server.room import RoomStore
    from medgrape.server.settings import ServerSettings

ROOM = Path("reading-room")
COMMAND_LINE = "command line"
"""Name of the actor in the event log for everything that is done by a command."""
Room = Annotated[Path, Option(help="The room's folder: films, models and, by default, the database.")]
ServerConfig = Annotated[Path | None, Option(help="Settings file of the server (docs/reference/server.md).")]
Database = Annotated[str | None, Option(help="URL of PostgreSQL or SQLite. (default: SQLite in the room)")]


def import_server() -> ModuleType:
    """Import and return ``medgrape.server.process``; if packages are missing, the error says what to install."""
    try:
        from medgrape.server import process
    except ModuleNotFoundError as missing:
        raise UserError("The server needs: pip install 'medgrape[server]'.") from missing
    return process


def load_settings(config: Path | None, database: str | None, **options: object) -> "ServerSettings":
    """Load the settings of a file and override them with the options that are not None; paths become strings."""
    import_server()
    from medgrape.server.settings import load_server_settings

    values = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    return load_server_settings(config).overridden(database=database, **values)


def open_room(room: Path, database: str | None, config: Path | None) -> "RoomStore":
    """Open the room and its database; create them if there are none."""
    settings = load_settings(config, database)
    from medgrape.server.room import RoomFolder, RoomStore

    return RoomStore.ready(RoomFolder(room), settings)


def open_existing_room(room: Path, database: str | None, config: Path | None) -> "RoomStore":
    """Open the room and its database; a mistyped folder is an error instead of a new room."""
    check_room(room)
    return open_room(room, database, config)


def check_room(room: Path) -> None:
    """Raise an error unless the folder is a reading room."""
    if not (room / "secret.key").is_file():
        raise UserError(f"{room} is no reading room; give the folder of a server with --room.")
