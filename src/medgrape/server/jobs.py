"""Work that takes longer than a request: its progress stands in the database, where any worker can tell of it."""

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
from medgrape.server.problems import Problem, forbidden, not_found, without_paths
from medgrape.server.room import Room
from medgrape.server.room_folder import logger
from medgrape.server.security.credentials import new_id
from medgrape.server.security.roles import Role, User
from medgrape.server.storage.database import DATABASE_ERRORS
from medgrape.server.storage.tables import JobRow

T = TypeVar("T")
Work = Callable[[Track], dict[str, Any]]
"""Does the work, tells its progress by the track that it is given, and returns what came of it."""
WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
ENDED = {DONE, FAILED, CANCELLED}
SILENCE = timedelta(seconds=30)
"""After so long without a sign of life, whoever did the job is taken for dead."""
BEAT = 5.0
PAUSE = 0.2
"""Seconds between two pieces of news of one part: it may have a hundred thousand steps, and each is written down."""
MOST_WAITING = 20


class _Cancelled(Exception):  # noqa: N818 (nothing went wrong)
    """Somebody asked the job to stop."""


class JobRunner:
    """One job at a time in each worker; others wait."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._hands = ThreadPoolExecutor(1, "jobs")
        self._alive: set[str] = set()
        self._heart: threading.Thread | None = None

    def start(self, user: User, kind: str, work: Work) -> JobRow:
        """Take a job on."""
        if len(self._alive) >= MOST_WAITING:
            raise Problem(429, "too_many_jobs", "Too many jobs are waiting; try again when some are done.")
        now = datetime.now(UTC)
        row = JobRow(
            id=new_id(), kind=kind, owner_id=user.id, state=WAITING, progress=0.0, news="", result=None,
            created_at=now, beat_at=now, cancelled=False,
        )  # fmt: skip
        with self._room.database.writing() as session:
            session.add(row)
        self._alive.add(row.id)
        self._beat_from_now_on()
        self._hands.submit(self._do, row.id, work)
        return row

    def get(self, user: User, job: str) -> JobRow:
        """A job of one's own, or any for a curator; one whose worker died is told as failed."""
        with self._room.database.reading() as session:
            row = session.get(JobRow, job)
        if row is None or not (row.owner_id == user.id or user.role.covers(Role.CURATOR)):
            raise not_found("job", job)
        if row.state not in ENDED and datetime.now(UTC) - row.beat_at > SILENCE:
            return self._ended(job, FAILED, "The server was stopped while it worked on this; start it again.")
        return row

    def all_of(self, user: User) -> list[JobRow]:
        """One's own jobs, or everybody's for a curator, the newest first."""
        wanted = select(JobRow).order_by(JobRow.created_at.desc()).limit(100)
        if not user.role.covers(Role.CURATOR):
            wanted = wanted.where(JobRow.owner_id == user.id)
        with self._room.database.reading() as session:
            rows = session.scalars(wanted).all()
        return [self.get(user, row.id) for row in rows]  # not inside: each takes a connection of its own

    def cancel(self, user: User, job: str) -> JobRow:
        """Ask a job to stop; it does at its next step."""
        row = self.get(user, job)
        if row.owner_id != user.id and not user.role.covers(Role.ADMIN):
            raise forbidden("Only whoever started a job, or an admin, cancels it.")
        if row.state in ENDED:
            raise Problem(409, "job_ended", f"The job has ended already: {row.state}.")
        with self._room.database.writing() as session:
            session.get_one(JobRow, job).cancelled = True
        return self.get(user, job)

    def close(self) -> None:
        """Stop at the next step, and wait until it is there."""
        self._hands.shutdown(cancel_futures=True)

    def _do(self, job: str, work: Work) -> None:
        try:
            self._told(job, 0.0, "begun")
            result = work(self._track(job))
            self._ended(job, DONE, "done", result)
        except _Cancelled:
            self._ended(job, CANCELLED, "It was cancelled; nothing was changed.")
        except UserError as refusal:
            self._ended(job, FAILED, without_paths(str(refusal)))
        except Problem as problem:
            self._ended(job, FAILED, problem.detail)
        except Exception as error:
            logger.exception("job %s failed", job)
            told = "The server's disk is full or its database gone; nothing was changed."
            self._ended(
                job,
                FAILED,
                told if isinstance(error, (OSError, *DATABASE_ERRORS)) else "A fault in medgrape; see its log.",
            )
        finally:
            self._alive.discard(job)

    def _track(self, job: str) -> Track:
        """Nobody knows how many parts a job has, so each takes half of what was left; only the end is 1."""
        reached = 0.0

        def track(items: Iterable[T], label: str, total: int) -> Iterator[T]:
            nonlocal reached
            begun, share, told_at = reached, (1.0 - reached) / 2, -math.inf
            for number, item in enumerate(items):
                if time.monotonic() - told_at > PAUSE:
                    self._told(job, begun + share * number / max(total, 1), label)
                    told_at = time.monotonic()
                yield item
            reached = begun + share
            self._told(job, reached, label)

        return track

    def _told(self, job: str, progress: float, news: str) -> None:
        """Write progress down, and stop if somebody asked for it or the server ends."""
        with self._room.database.writing() as session:
            row = session.get_one(JobRow, job)
            if row.cancelled or row.state in ENDED or self._room.closing.is_set():
                raise _Cancelled
            row.state, row.progress, row.news, row.beat_at = RUNNING, progress, news, datetime.now(UTC)

    def _ended(self, job: str, state: str, news: str, result: dict[str, Any] | None = None) -> JobRow:
        try:
            with self._room.database.writing() as session:
                row = session.get_one(JobRow, job)
                row.state, row.news, row.result, row.beat_at = state, news, result, datetime.now(UTC)
                row.progress = 1.0 if state == DONE else row.progress
                return row
        except DATABASE_ERRORS:
            logger.exception("job %s ended as %s, which could not be written down", job, state)
            raise

    def _beat_from_now_on(self) -> None:
        if self._heart is None:
            self._heart = threading.Thread(target=self._beat, name="jobs-heart", daemon=True)
            self._heart.start()

    def _beat(self) -> None:
        """A long step gives no news; this tells that the worker lives."""
        while not self._room.closing.wait(BEAT):
            for job in tuple(self._alive):
                try:
                    with self._room.database.writing() as session:
                        row = session.get(JobRow, job)
                        if row is not None and row.state not in ENDED:
                            row.beat_at = datetime.now(UTC)
                except DATABASE_ERRORS:
                    continue
