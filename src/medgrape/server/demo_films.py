"""A room with films in it before anybody comes: what a demo opens with."""

from collections.abc import Sequence
from pathlib import Path

from medgrape.progress import Track, quietly
from medgrape.server import films
from medgrape.server.process import Ready
from medgrape.server.room import Room
from medgrape.server.room_folder import RoomStore
from medgrape.server.security.accounts import local_user


def furnish(ready: Ready, paths: Sequence[Path], track: Track = quietly) -> list[str]:
    """Take films in, as if the person at this machine had uploaded them; their ids. Those that are there already stay.

    Only while no worker is at work: ``ready`` holds the room's lock.
    """
    room = Room(RoomStore.opened(ready.folder, ready.settings), ready.settings, login=ready.login)
    try:
        with room.database.writing() as session:
            user = local_user(session)
        return [films.take_in(room, user, path).film.id for path in track(paths, "hanging films", len(paths))]
    finally:
        room.close()
