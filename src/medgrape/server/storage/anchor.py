"""Where the log ended, written down in the room's folder, which no access to the database reaches."""

import json
import os
from pathlib import Path

_LINE = 128
"""Bytes of one of the two lines."""


class Anchor:
    """A file of two lines, overwritten in turn: if a crash spoils one, the other is the event before.

    Several workers write without waiting for each other. One that comes late puts an older event into its line; the
    other line then has the newer one. So the file may lag behind, and never runs ahead.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def write(self, seq: int, found: str) -> None:
        """Remember an event that is safe in the database."""
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
        line = json.dumps([seq, found]).ljust(_LINE - 1) + "\n"
        os.pwrite(self._file, line.encode(), seq % 2 * _LINE)

    def read(self) -> tuple[int, str]:
        """The last event that is remembered; 0 where there is none."""
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return 0, ""
        return max((_parsed(line) for line in lines), default=(0, ""))

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _parsed(line: bytes) -> tuple[int, str]:
    try:
        seq, found = json.loads(line)
        return int(seq), str(found)
    except (ValueError, TypeError):
        return 0, ""
