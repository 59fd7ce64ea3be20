"""Background jobs; their progress is stored in the database, so that any worker can report it."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import select

from medgrape.errors import UserError
from medgrape.progress import Track
from medgrape.server.accounts import Role, User, new_id
from medgrape.server.errors import Problem, forbidden, not_found, without_paths
from medgrape.server.room import Room, logger
from medgrape.server.storage.database import DATABASE_ERRORS
from medgrape.server.storage.tables import JobRow

T = TypeVar("T")
Work = Callable[[Track], dict[str, Any]]
"""Does the work, reports progress through the track, and returns the job's result."""
WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
ENDED = {DONE, FAILED, CANCELLED}
SILENCE = timedelta(seconds=30)
"""A job without a heartbeat for so long has failed: its worker died."""
HEARTBEAT = 5.0
PAUSE = 0.2
"""Seconds between two progress updates: a part may have a hundred thousand steps, and each update is a transaction."""
MAX_WAITING = 20


class _Cancelled(Exception):  # noqa: N818 (nothing went wrong)
    """The job was asked to stop."""


class JobRunner:
    """Runs one job at a time in each worker; others wait."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._executor = ThreadPoolExecutor(1, "jobs")
        self._alive: set[str] = set()
        self._heart: threading.Thread | None = None

    def start(self, user: User, kind: str, work: Work) -> JobRow:
        """Queue a job."""
        if len(self._alive) >= MAX_WAITING:
            raise Problem(429, "too_many_jobs", "Too many jobs are waiting; try again when some are done.")
        now = datetime.now(UTC)
        row = JobRow(
            id=new_id(), kind=kind, owner_id=user.id, state=WAITING, progress=0.0, news="", result=None,
            created_at=now, beat_at=now, cancelled=False,
        )  # fmt: skip
        with self._room.database.writing() as session:
            session.add(row)
        self._alive.add(row.id)
        if self._heart is None:
            self._heart = threading.Thread(target=self._beat, name="jobs-heart", daemon=True)
            self._heart.start()
        self._executor.submit(self._run, row.id, work)
        return row

    def get(self, user: User, job: str) -> JobRow:
        """A job of the user, or any job for a curator; a job whose worker died is set to failed."""
        with self._room.database.reading() as session:
            row = session.get(JobRow, job)
        if row is None or not (row.owner_id == user.id or user.role.covers(Role.CURATOR)):
            raise not_found("job", job)
        if row.state not in ENDED and datetime.now(UTC) - row.beat_at > SILENCE:
            return self._end(job, FAILED, "The server was stopped while it worked on this; start it again.")
        return row

    def all_of(self, user: User) -> list[JobRow]:
        """The user's jobs, or everybody's for a curator, the newest first."""
        query = select(JobRow).order_by(JobRow.created_at.desc()).limit(100)
        if not user.role.covers(Role.CURATOR):
            query = query.where(JobRow.owner_id == user.id)
        with self._room.database.reading() as session:
            rows = session.scalars(query).all()
        return [self.get(user, row.id) for row in rows]  # after the session: each takes a connection of its own

    def cancel(self, user: User, job: str) -> JobRow:
        """Ask a job to stop at its next step."""
        row = self.get(user, job)
        if row.owner_id != user.id and not user.role.covers(Role.ADMIN):
            raise forbidden("Only whoever started a job, or an admin, cancels it.")
        if row.state in ENDED:
            raise Problem(409, "job_ended", f"The job has ended already: {row.state}.")
        with self._room.database.writing() as session:
            session.get_one(JobRow, job).cancelled = True
        return self.get(user, job)

    def close(self) -> None:
        """Wait until the running job stops at its next step."""
        self._executor.shutdown(cancel_futures=True)

    def _run(self, job: str, work: Work) -> None:
        try:
            self._report(job, 0.0, "begun")
            result = work(self._track(job))
            self._end(job, DONE, "done", result)
        except _Cancelled:
            self._end(job, CANCELLED, "It was cancelled; nothing was changed.")
        except UserError as error:
            self._end(job, FAILED, without_paths(str(error)))
        except Problem as problem:
            self._end(job, FAILED, problem.detail)
        except (OSError, *DATABASE_ERRORS):
            logger.exception("job %s failed", job)
            self._end(job, FAILED, "The server's disk is full or its database gone; nothing was changed.")
        except Exception:
            logger.exception("job %s failed", job)
            self._end(job, FAILED, "A fault in medgrape; see its log.")
        finally:
            self._alive.discard(job)

    def _track(self, job: str) -> Track:
        """The number of parts is unknown, so each takes half of what was left; only the end is 1."""
        reached = 0.0

        def track(items: Iterable[T], label: str, total: int) -> Iterator[T]:
            nonlocal reached
            start, share, reported_at = reached, (1.0 - reached) / 2, -math.inf
            for number, item in enumerate(items):
                if time.monotonic() - reported_at > PAUSE:
                    self._report(job, start + share * number / max(total, 1), label)
                    reported_at = time.monotonic()
                yield item
            reached = start + share
            self._report(job, reached, label)

        return track

    def _report(self, job: str, progress: float, news: str) -> None:
        """Store the progress; stop the job if it was cancelled or the server ends."""
        with self._room.database.writing() as session:
            row = session.get_one(JobRow, job)
            if row.cancelled or row.state in ENDED or self._room.closing.is_set():
                raise _Cancelled
            row.state, row.progress, row.news, row.beat_at = RUNNING, progress, news, datetime.now(UTC)

    def _end(self, job: str, state: str, news: str, result: dict[str, Any] | None = None) -> JobRow:
        try:
            with self._room.database.writing() as session:
                row = session.get_one(JobRow, job)
                row.state, row.news, row.result, row.beat_at = state, news, result, datetime.now(UTC)
                row.progress = 1.0 if state == DONE else row.progress
                return row
        except DATABASE_ERRORS:
            logger.exception("job %s ended as %s, which could not be written down", job, state)
            raise

    def _beat(self) -> None:
        """Show that the worker lives even during a long step."""
        while not self._room.closing.wait(HEARTBEAT):
            for job in tuple(self._alive):
                try:
                    with self._room.database.writing() as session:
                        row = session.get(JobRow, job)
                        if row is not None and row.state not in ENDED:
                            row.beat_at = datetime.now(UTC)
                except DATABASE_ERRORS:
                    continue
