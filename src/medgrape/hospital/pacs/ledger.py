"""What a watcher knows of every film that it saw: one row each, in a database that survives a kill at any moment."""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from medgrape.errors import UserError
from medgrape.hospital.pacs.query import ListedFilm, ListedSeries

State = Literal["waiting", "refused", "read", "unsent", "sent", "unsendable", "own"]
"""waiting: found, not read. refused: cannot be read, with its reason. read: done. unsent: read, its DICOM objects still
to be stored. sent: stored, our copies still to be removed. unsendable: read, but the server does not take the objects.
own: an object that we made ourselves."""
_FORMAT = 2
_SHORTEST_PAUSE, _LONGEST_PAUSE = 30.0, 3600.0
"""Seconds before something that failed, for a reason that may pass, is tried again."""
_BUSY = 30.0
"""Seconds for which another program may be at work in the ledger: a backup, or somebody who looks into it."""
_IN_USE = "is in use by another program; close that and start again."
_UNWRITABLE = (
    "cannot be opened or written (is the disk full, or the folder somebody else's?); mend that and start again."
)
_DAMAGED = "is damaged; restore it from a backup, or choose another --out."
_TROUBLES = {
    sqlite3.SQLITE_BUSY: _IN_USE, sqlite3.SQLITE_LOCKED: _IN_USE, sqlite3.SQLITE_FULL: _UNWRITABLE,
    sqlite3.SQLITE_IOERR: _UNWRITABLE, sqlite3.SQLITE_READONLY: _UNWRITABLE, sqlite3.SQLITE_CANTOPEN: _UNWRITABLE,
    sqlite3.SQLITE_PERM: _UNWRITABLE, sqlite3.SQLITE_CORRUPT: _DAMAGED, sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_ERROR: _DAMAGED,
}  # fmt: skip
"""What SQLite has against a file, in words; anything else is our own fault."""
_TABLES = """
CREATE TABLE films (
    number INTEGER PRIMARY KEY, uid TEXT NOT NULL UNIQUE, series TEXT NOT NULL, study TEXT NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', attempts INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0, troubles INTEGER NOT NULL DEFAULT 0, troubled REAL NOT NULL DEFAULT 0,
    paused REAL NOT NULL DEFAULT 0, tried INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX to_do ON films (state, attempts, number);
CREATE TABLE series (uid TEXT PRIMARY KEY, images INTEGER, looked REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Entry:
    """A film that something is still to be done with."""

    film: ListedFilm
    attempts: int
    """How often it was begun, also by watchers that died over it."""
    failures: int
    """How often that ended with an answer of the server that was no film, or no thanks."""
    troubles: int
    """How often it ended with trouble that may pass, the server's or this machine's."""
    troubled: float
    """When the first of these came; 0: there was none."""

    @property
    def deaths(self) -> int:
        """How often nobody came back to say what became of it."""
        return self.attempts - self.failures - self.troubles


@contextmanager
def opened(path: Path) -> Iterator["Ledger"]:
    """The ledger in a file; what goes wrong with that file, now or later, is one sentence."""
    try:
        with closing(Ledger(path)) as ledger:
            yield ledger
    except sqlite3.DatabaseError as error:
        words = _TROUBLES.get(
            getattr(error, "sqlite_errorcode", 0) & 0xFF
        )  # the rest of the number says more than we do
        if words is None:
            raise
        raise UserError(f"{path} {words}") from None


class Ledger:
    """Held by one process at a time."""

    def __init__(self, path: Path) -> None:
        self._rows = sqlite3.connect(path, timeout=_BUSY, isolation_level=None)
        found = self._set_up()
        if found != _FORMAT:
            self.close()
            raise UserError(f"{path} is of another version of medgrape; choose another --out.")

    def close(self) -> None:
        """Nothing is lost without it."""
        self._rows.close()

    def _set_up(self) -> int:
        """The version of what is there, which is made where nothing is."""
        try:
            self._rows.execute("PRAGMA synchronous = FULL")
            (found,) = self._rows.execute("PRAGMA user_version").fetchone()
            if found == 0:
                with self._transaction():
                    for statement in _TABLES.split(";\n"):
                        self._rows.execute(statement)
                    self._rows.execute(f"PRAGMA user_version = {_FORMAT}")
            if found in (0, _FORMAT):
                self._rows.execute("UPDATE films SET tried = 0 WHERE state IN ('waiting', 'unsent', 'sent')")
        except sqlite3.DatabaseError:
            self.close()
            raise
        return found or _FORMAT

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._rows.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._rows.execute("COMMIT")
        except BaseException:
            if self._rows.in_transaction:  # a full disk has ended it already
                self._rows.execute("ROLLBACK")
            raise

    def remember(self, key: str, value: str) -> None:
        """Something about the whole, said once."""
        self._rows.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (key, value))

    def remembered(self, key: str) -> str | None:
        """What was said of the whole."""
        row = self._rows.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def is_unchanged(self, series: ListedSeries, after: float) -> bool:
        """Whether a series has as many images as when it was looked into, later than ``after``."""
        row = self._rows.execute("SELECT images, looked FROM series WHERE uid = ?", (series.uid,)).fetchone()
        return (
            row is not None and series.images is not None and row[0] == series.images and after < row[1] <= time.time()
        )

    def note(self, series: ListedSeries, found: Iterable[ListedFilm]) -> int:
        """How many films of a series are new; all of them are remembered, or none."""
        rows = [(film.uid, film.series, film.study) for film in found]
        with self._transaction():
            before = self._rows.total_changes
            self._rows.executemany(
                "INSERT OR IGNORE INTO films (uid, series, study, state) VALUES (?, ?, ?, 'waiting')", rows
            )
            new = self._rows.total_changes - before
            self._rows.execute(
                "INSERT OR REPLACE INTO series VALUES (?, ?, ?)", (series.uid, series.images, time.time())
            )
        return new

    def due(self, state: State, number: int) -> Entry | None:
        """A film in this state that was not yet tried in round ``number``; those begun least often come first."""
        now = time.time()
        row = self._rows.execute(
            "SELECT study, series, uid, attempts, failures, troubles, troubled FROM films WHERE state = ? "
            "AND tried < ? AND (paused <= ? OR paused > ?) ORDER BY attempts, number LIMIT 1",
            (state, number, now, now + _LONGEST_PAUSE),  # a longer pause is a clock that was set back
        ).fetchone()
        return None if row is None else Entry(ListedFilm(*row[:3]), *row[3:])

    def begin(self, film: ListedFilm, number: int) -> None:
        """Written down before anything is done with it, so that a film which kills its readers is known by that."""
        self._rows.execute("UPDATE films SET attempts = attempts + 1, tried = ? WHERE uid = ?", (number, film.uid))

    def acquit(self, film: ListedFilm) -> None:
        """The attempt ended for a reason that is not the film's: it does not count. That reason is what to tell of."""
        with suppress(sqlite3.DatabaseError):
            self._rows.execute("UPDATE films SET attempts = max(attempts - 1, 0) WHERE uid = ?", (film.uid,))

    def postpone(self, film: ListedFilm) -> None:
        """It did not work out, and the film may be at fault."""
        self._rows.execute("UPDATE films SET failures = failures + 1 WHERE uid = ?", (film.uid,))

    def pause(self, film: ListedFilm) -> None:
        """It did not work out, for a reason that may pass: wait as long as that has lasted, but an hour at most."""
        now = time.time()
        self._rows.execute(
            "UPDATE films SET troubles = troubles + 1, troubled = iif(troubled = 0, :now, troubled), "
            "paused = :now + min(max(iif(troubled = 0, 0, :now - troubled), :shortest), :longest) WHERE uid = :uid",
            {"now": now, "shortest": _SHORTEST_PAUSE, "longest": _LONGEST_PAUSE, "uid": film.uid},
        )

    def settle(self, film: ListedFilm, state: State, reason: str = "", own: Iterable[str] = ()) -> None:
        """What became of it, and which objects we made of it."""
        with self._transaction():
            self._rows.execute(
                "UPDATE films SET state = ?, reason = ?, attempts = 0, failures = 0, troubles = 0, troubled = 0, "
                "paused = 0, tried = 0 WHERE uid = ?",
                (state, reason, film.uid),
            )
            self._rows.executemany(
                "INSERT OR IGNORE INTO films (uid, series, study, state) VALUES (?, '', ?, 'own')",
                [(uid, film.study) for uid in own],
            )

    def counts(self) -> dict[str, int]:
        """State to films."""
        return dict(self._rows.execute("SELECT state, count(*) FROM films WHERE state != 'own' GROUP BY state"))
