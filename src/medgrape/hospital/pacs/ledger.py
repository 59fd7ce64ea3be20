"""The state of every film that a watch has found, in an SQLite database that survives a kill at any moment."""

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
"""waiting: found, not read. refused: cannot be read, with a reason. read: done. unsent: read, its DICOM objects are
not stored yet. sent: stored, our copies are not removed yet. unsendable: read, but the server refuses the objects.
own: an object that we created."""
_FORMAT = 2
_MIN_PAUSE, _MAX_PAUSE = 30.0, 3600.0  # seconds before a retry after a temporary error
_BUSY_TIMEOUT = 30.0  # seconds to wait while another program has locked the ledger
_IN_USE = "is in use by another program; close that and start again."
_UNWRITABLE = "cannot be opened or written; check that the disk has space and that you may write there."
_DAMAGED = "is damaged; restore it from a backup, or choose another --out."
_MESSAGES = {
    sqlite3.SQLITE_BUSY: _IN_USE, sqlite3.SQLITE_LOCKED: _IN_USE, sqlite3.SQLITE_FULL: _UNWRITABLE,
    sqlite3.SQLITE_IOERR: _UNWRITABLE, sqlite3.SQLITE_READONLY: _UNWRITABLE, sqlite3.SQLITE_CANTOPEN: _UNWRITABLE,
    sqlite3.SQLITE_PERM: _UNWRITABLE, sqlite3.SQLITE_CORRUPT: _DAMAGED, sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_ERROR: _DAMAGED,
}  # fmt: skip
"""SQLite errors caused by the file. Other errors are bugs of ours and are not translated."""
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
class LedgerEntry:
    """A film that needs a next step, and what happened to it in its present state."""

    film: ListedFilm
    attempts: int  # steps begun, also by processes that were killed
    failures: int  # attempts that failed with an error that may be the film's fault
    temporary_failures: int  # attempts that failed with a temporary error of the server or of this machine
    failing_since: float  # time of the first temporary failure; 0 if there is none

    @property
    def crashes(self) -> int:
        """Number of attempts that ended the process."""
        return self.attempts - self.failures - self.temporary_failures


@contextmanager
def open_ledger(path: Path) -> Iterator["Ledger"]:
    """Open the ledger; SQLite errors that the file causes, now or inside the block, become one-line user errors."""
    try:
        with closing(Ledger(path)) as ledger:
            yield ledger
    except sqlite3.DatabaseError as error:
        message = _MESSAGES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)  # the low byte is the primary code
        if message is None:
            raise
        raise UserError(f"{path} {message}") from None


class Ledger:
    """The database, used by one process at a time."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None)
        try:
            self._database.execute("PRAGMA synchronous = FULL")
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                with self._transaction():
                    for statement in _TABLES.split(";\n"):
                        self._database.execute(statement)
                    self._database.execute(f"PRAGMA user_version = {_FORMAT}")
            elif version != _FORMAT:
                raise UserError(f"{path} was made by another version of medgrape; choose another --out.")
            self._database.execute("UPDATE films SET tried = 0 WHERE state IN ('waiting', 'unsent', 'sent')")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:  # SQLite rolls back by itself when the disk is full
                self._database.execute("ROLLBACK")
            raise

    def set_once(self, key: str, value: str) -> None:
        """Store a fact about the whole folder, unless it is already stored."""
        self._database.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (key, value))

    def get(self, key: str) -> str | None:
        """Return a fact about the whole folder."""
        row = self._database.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def is_unchanged(self, series: ListedSeries, after: float) -> bool:
        """Return whether the series was searched later than ``after`` and had the same number of images."""
        row = self._database.execute("SELECT images, looked FROM series WHERE uid = ?", (series.uid,)).fetchone()
        return (
            row is not None and series.images is not None and row[0] == series.images and after < row[1] <= time.time()
        )

    def add_films(self, series: ListedSeries, films: Iterable[ListedFilm]) -> None:
        """Add the films of a series that are new, all or none, and record that it was searched."""
        rows = [(film.uid, film.series, film.study) for film in films]
        with self._transaction():
            self._database.executemany(
                "INSERT OR IGNORE INTO films (uid, series, study, state) VALUES (?, ?, ?, 'waiting')", rows
            )
            self._database.execute(
                "INSERT OR REPLACE INTO series VALUES (?, ?, ?)", (series.uid, series.images, time.time())
            )

    def next_due(self, state: State, round_number: int) -> LedgerEntry | None:
        """Return a film in this state that was not tried in this round, the one with the fewest attempts first."""
        now = time.time()
        row = self._database.execute(
            "SELECT study, series, uid, attempts, failures, troubles, troubled FROM films WHERE state = ? "
            "AND tried < ? AND (paused <= ? OR paused > ?) ORDER BY attempts, number LIMIT 1",
            (state, round_number, now, now + _MAX_PAUSE),  # a longer pause means that the clock was set back
        ).fetchone()
        return None if row is None else LedgerEntry(ListedFilm(*row[:3]), *row[3:])

    def begin_attempt(self, film: ListedFilm, round_number: int) -> None:
        """Count an attempt before it starts, so that a film that kills the process is recognised."""
        self._database.execute(
            "UPDATE films SET attempts = attempts + 1, tried = ? WHERE uid = ?", (round_number, film.uid)
        )

    def cancel_attempt(self, film: ListedFilm) -> None:
        """Uncount an attempt that ended for a reason other than the film. The caller raises that reason."""
        with suppress(sqlite3.DatabaseError):
            self._database.execute("UPDATE films SET attempts = max(attempts - 1, 0) WHERE uid = ?", (film.uid,))

    def count_failure(self, film: ListedFilm) -> None:
        """Count an attempt that failed, perhaps because of the film."""
        self._database.execute("UPDATE films SET failures = failures + 1 WHERE uid = ?", (film.uid,))

    def pause(self, film: ListedFilm) -> None:
        """Count a temporary failure. The next attempt waits as long as failures have lasted, 30 seconds to one hour."""
        now = time.time()
        self._database.execute(
            "UPDATE films SET troubles = troubles + 1, troubled = iif(troubled = 0, :now, troubled), "
            "paused = :now + min(max(iif(troubled = 0, 0, :now - troubled), :shortest), :longest) WHERE uid = :uid",
            {"now": now, "shortest": _MIN_PAUSE, "longest": _MAX_PAUSE, "uid": film.uid},
        )

    def set_state(self, film: ListedFilm, state: State, reason: str = "", own_objects: Iterable[str] = ()) -> None:
        """Set a film's state, and record the UIDs of the objects that we created for it."""
        with self._transaction():
            self._database.execute(
                "UPDATE films SET state = ?, reason = ?, attempts = 0, failures = 0, troubles = 0, troubled = 0, "
                "paused = 0, tried = 0 WHERE uid = ?",
                (state, reason, film.uid),
            )
            self._database.executemany(
                "INSERT OR IGNORE INTO films (uid, series, study, state) VALUES (?, '', ?, 'own')",
                [(uid, film.study) for uid in own_objects],
            )

    def counts(self) -> dict[str, int]:
        """Return the number of films in each state."""
        return dict(
            self._database.execute("SELECT state, count(*) FROM films WHERE state != 'own' GROUP BY state").fetchall()
        )
