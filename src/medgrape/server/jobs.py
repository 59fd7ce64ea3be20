"""Background jobs. Their progress is stored in the database, so that any worker can return it."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import select, update

from medgrape.errors import UserError
from medgrape.progress import Track
from medgrape.server.accounts import Role, User, new_id
from medgrape.server.errors import Problem, forbidden, not_found, without_paths
from medgrape.server.room import Room, logger
from medgrape.server.storage.database import DATABASE_ERRORS
from medgrape.server.storage.tables import JobRow

T = TypeVar("T")
Work = Callable[[Track], dict[str, Any]]  # reports progress through the track and returns the job's result
WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
ENDED = {DONE, FAILED, CANCELLED}
SILENCE = timedelta(seconds=30)  # without a heartbeat for this time, a job has failed because its worker died
HEARTBEAT = 5.0
UPDATE_SECONDS = 0.2  # between two progress updates, each of which is a transaction
MAX_WAITING = 20


class _Cancelled(Exception):  # noqa: N818 (nothing went wrong)
    """The job was cancelled."""


class JobRunner:
    """Runs one job at a time in each worker; others wait."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._executor = ThreadPoolExecutor(1, "jobs")
        self._alive: set[str] = set()
        threading.Thread(target=self._beat, name="jobs-heartbeat", daemon=True).start()

    def start(self, user: User, kind: str, work: Work) -> JobRow:
        """Queue a job."""
        if len(self._alive) >= MAX_WAITING:
            raise Problem(429, "too_many_jobs", "Too many jobs are waiting; try again when some are done.")
        now = datetime.now(UTC)
        row = JobRow(id=new_id(), kind=kind, owner_id=user.id, state=WAITING, result=None, created_at=now, beat_at=now)
        with self._room.database.writing() as session:
            session.add(row)
        self._alive.add(row.id)
        self._executor.submit(self._run, row.id, work)
        return row

    def get(self, user: User, job: str) -> JobRow:
        """Return a job of the user, or any job for a curator. A job whose worker died becomes failed."""
        with self._room.database.reading() as session:
            row = session.get(JobRow, job)
        if row is None or not (row.owner_id == user.id or user.role.covers(Role.CURATOR)):
            raise not_found("job", job)
        if row.state not in ENDED and datetime.now(UTC) - row.beat_at > SILENCE:
            return self._end(job, FAILED, "The server stopped during this job; start it again.")
        return row

    def all_of(self, user: User) -> list[JobRow]:
        """Return the user's jobs, or all for a curator, the newest first."""
        query = select(JobRow).order_by(JobRow.created_at.desc()).limit(100)
        if not user.role.covers(Role.CURATOR):
            query = query.where(JobRow.owner_id == user.id)
        with self._room.database.reading() as session:
            rows = session.scalars(query).all()
        return [self.get(user, row.id) for row in rows]  # after the session, because get opens its own

    def cancel(self, user: User, job: str) -> JobRow:
        """Cancel a job at its next step."""
        row = self.get(user, job)
        if row.owner_id != user.id and not user.role.covers(Role.ADMIN):
            raise forbidden("Only the user who started a job, or an admin, may cancel it.")
        if row.state in ENDED:
            raise Problem(409, "job_ended", f"The job has ended already: {row.state}.")
        with self._room.database.writing() as session:
            session.get_one(JobRow, job).cancelled = True
        return self.get(user, job)

    def close(self) -> None:
        """Wait until the running job stops."""
        self._executor.shutdown(cancel_futures=True)

    def _run(self, job: str, work: Work) -> None:
        try:
            self._report(job, 0.0, "begun")
            result = work(self._track(job))
            self._end(job, DONE, "done", result)
        except _Cancelled:
            self._end(job, CANCELLED, "It was cancelled; nothing was changed.")
        except (UserError, Problem) as error:
            self._end(job, FAILED, without_paths(str(error)))
        except (OSError, *DATABASE_ERRORS):
            logger.exception("job %s failed", job)
            self._end(job, FAILED, "The server's disk is full, or its database does not answer; nothing was changed.")
        except Exception:
            logger.exception("job %s failed", job)
            self._end(job, FAILED, "Internal error; see the server's log.")
        finally:
            self._alive.discard(job)

    def _track(self, job: str) -> Track:
        """Return a track that reports progress. The number of parts is unknown, so each takes half of what is left."""
        reached = 0.0

        def track(items: Iterable[T], label: str, total: int) -> Iterator[T]:
            nonlocal reached
            start, share, reported_at = reached, (1.0 - reached) / 2, -math.inf
            for number, item in enumerate(items):
                if time.monotonic() - reported_at > UPDATE_SECONDS:
                    self._report(job, start + share * number / max(total, 1), label)
                    reported_at = time.monotonic()
                yield item
            reached = start + share
            self._report(job, reached, label)

        return track

    def _report(self, job: str, progress: float, news: str) -> None:
        """Store the progress; raise if the job was cancelled or the server stops."""
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
            logger.exception("job %s ended as %s, which could not be stored", job, state)
            raise

    def _beat(self) -> None:
        """Write heartbeats, also during long steps."""
        while not self._room.closing.wait(HEARTBEAT):
            if not self._alive:
                continue
            alive = JobRow.id.in_(tuple(self._alive)) & JobRow.state.not_in(ENDED)
            with suppress(TimeoutError, *DATABASE_ERRORS), self._room.database.writing() as session:
                session.execute(update(JobRow).where(alive).values(beat_at=datetime.now(UTC)))
