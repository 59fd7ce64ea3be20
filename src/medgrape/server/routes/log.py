"""The log of all that was done: ask it, verify it, take it along."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Query
from fastapi.responses import StreamingResponse
from sqlalchemy import select

from medgrape.server.desk import Desk, Desks, Who, produces, router
from medgrape.server.schemas.common import ID
from medgrape.server.schemas.log import EventPage, VerdictTold
from medgrape.server.security.roles import Role
from medgrape.server.storage.events import Event, events_in, line_of
from medgrape.server.storage.tables import EventRow
from medgrape.server.telling import event_told

routes = router("log", Role.ADMIN)
LINES = produces("application/x-ndjson", "An event on each line, as JSON, the first one first.")
_BATCH = 500


@routes.get("/log")
def list_events(
    desk: Desk,
    actor: Annotated[str | None, Query(max_length=64, examples=["ada"], description="By whom.")] = None,
    kind: Annotated[
        str | None, Query(max_length=64, examples=["study.corrected"], description="What was done.")
    ] = None,
    film: Annotated[str | None, Query(max_length=64, examples=[ID], description="On this film.")] = None,
    study: Annotated[str | None, Query(max_length=64, examples=[ID], description="In this study.")] = None,
    since: Annotated[
        str | None, Query(max_length=32, examples=["2026-11-18"], description="Not before this time.")
    ] = None,
    until: Annotated[str | None, Query(max_length=32, examples=["2026-11-19"], description="Before this time.")] = None,
    before: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, examples=[17], description="Only events with a smaller number.")
    ] = None,
    size: Annotated[int, Query(ge=1, le=500, description="At most so many.")] = 100,
) -> EventPage:
    """Ask who did what, when, on which film, with which model; the newest first."""
    wanted = select(EventRow.__table__).order_by(EventRow.seq.desc()).limit(size + 1)
    pairs = ((EventRow.actor, actor), (EventRow.kind, kind), (EventRow.film, film), (EventRow.study, study))
    conditions = [column == value.replace("\0", "") for column, value in pairs if value is not None]
    conditions += [] if since is None else [EventRow.at >= since.replace("\0", "")]
    conditions += [] if until is None else [EventRow.at < until.replace("\0", "")]
    conditions += [] if before is None else [EventRow.seq < before]
    with desk.room.database.reading() as session:
        found = [Event(**row) for row in session.execute(wanted.where(*conditions)).mappings()]
    shown = found[:size]
    return EventPage(
        events=tuple(event_told(event) for event in shown), older=shown[-1].seq if len(found) > size else None
    )


@routes.get("/log/verification")
def verify(desk: Desk) -> VerdictTold:
    """Look at every event: is anything altered or missing?"""
    with desk.room.database.reading() as session:
        verdict = desk.room.archive.log.verify(session)
    return VerdictTold(whole=verdict.whole, events=verdict.events, head=verdict.head, faults=verdict.faults)


@routes.post("/log/export", response_class=StreamingResponse, responses=LINES)
def export(desk: Desk, who: Who) -> StreamingResponse:
    """Take the whole log along, which is itself written down. Check it with: medgrape audit-log verify FILE."""
    with desk.room.database.writing() as session:
        last = desk.room.archive.note(session, who, "log.exported").seq
    headers = {"Content-Disposition": 'attachment; filename="medgrape-log.jsonl"'}
    return StreamingResponse(_lines(desk, last), media_type="application/x-ndjson", headers=headers)


def _lines(desk: Desks, last: int) -> Iterator[str]:
    """A few at a time, so that nobody who reads slowly holds a connection to the database."""
    after = 0
    while after < last:
        with desk.room.database.reading() as session:
            found = [event for event, _ in zip(events_in(session, after=after), range(_BATCH), strict=False)]
        if not found:
            return
        yield "".join(line_of(event) for event in found if event.seq <= last)
        after = found[-1].seq
