"""Where the log ended, written down in the room's folder, which no access to the database reaches."""

import json
import os
from pathlib import Path

_LINE = 128
"""Bytes of one of the two lines."""
End = tuple[int, str]
"""Number and hash of an event; 0 and nothing before the first one."""


class Anchor:
    """A file of two lines, overwritten in turn: if a crash spoils one, the other is the event before.

    Several workers write without waiting for each other. One that comes late puts an older event into its line; the
    other line then has the newer one. So the file may lag behind, and never runs ahead. It is made once, with the
    room, and never made anew: a file that somebody took away stays missed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """The file of a log without events, safe on disk."""
        with self.path.open("xb") as file:
            file.write(_line(0, "") * 2)
            file.flush()
            os.fsync(file.fileno())

    def write(self, seq: int, found: str) -> None:
        """Remember an event that is safe in the database."""
        handle = os.open(self.path, os.O_WRONLY)
        try:
            os.pwrite(handle, _line(seq, found), seq % 2 * _LINE)
        finally:
            os.close(handle)

    def read(self) -> End | None:
        """The last event that is remembered; None where the file is missing or damaged."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        ends = (_parsed(content[:_LINE]), _parsed(content[_LINE : 2 * _LINE]))
        return max((end for end in ends if end is not None), default=None)


def _line(seq: int, found: str) -> bytes:
    return (json.dumps([seq, found]).ljust(_LINE - 1) + "\n").encode()


def _parsed(line: bytes) -> End | None:
    try:
        seq, found = json.loads(line)
        return int(seq), str(found)
    except (ValueError, TypeError):
        return None
