"""The log of all that was done: ask it, verify it, take it along."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Query
from fastapi.responses import StreamingResponse
from pydantic import Field
from sqlalchemy import select

from medgrape.server.api.common import HASH, ID, VERSION, Plain, Told, When
from medgrape.server.security.roles import Role
from medgrape.server.services import CurrentUser, ServiceContainer, Services, media_response, router
from medgrape.server.storage.events import Event, events_in, line_of
from medgrape.server.storage.tables import EventRow


class EventTold(Told):
    """Something that was done."""

    seq: int = Field(examples=[17])
    at: When
    actor: str = Field(examples=["ada"])
    kind: str = Field(examples=["study.corrected"])
    film: str | None = Field(examples=[ID])
    study: str | None = Field(examples=[ID])
    model: str | None = Field(examples=[VERSION])
    body: Plain = Field(description="All else that is known of it.", examples=[{"reason": "seen on the earlier film"}])
    previous: str = Field(description="Hash of the event before.", examples=[HASH])
    hash: str = Field(description="Of this event and the one before.", examples=[HASH])
    seal: str = Field(description="The hash, signed with the room's key.", examples=[HASH])


class EventPage(Told):
    """Events, the newest first."""

    events: tuple[EventTold, ...]
    older: int | None = Field(
        description="Ask again with before = this for older ones; null: there are none.", examples=[17]
    )


class VerdictTold(Told):
    """Whether the log is what was written."""

    whole: bool
    events: int = Field(examples=[17])
    head: str = Field(
        description="The last hash: written down elsewhere, it proves later that nothing was removed.", examples=[HASH]
    )
    faults: tuple[str, ...] = Field(examples=[()])


def event_told(event: Event) -> EventTold:
    """An event."""
    return EventTold(
        seq=event.seq, at=event.at, actor=event.actor, kind=event.kind, film=event.film, study=event.study,
        model=event.model, body=event.payload, previous=event.previous, hash=event.hash, seal=event.seal,
    )  # fmt: skip


routes = router("log", Role.ADMIN)
LINES = media_response("application/x-ndjson", "An event on each line, as JSON, the first one first.")
_BATCH = 500


@routes.get("/log")
def list_events(
    services: Services,
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
    with services.room.database.reading() as session:
        found = [Event(**row) for row in session.execute(wanted.where(*conditions)).mappings()]
    shown = found[:size]
    return EventPage(
        events=tuple(event_told(event) for event in shown), older=shown[-1].seq if len(found) > size else None
    )


@routes.get("/log/verification")
def verify(services: Services) -> VerdictTold:
    """Look at every event: is anything altered or missing?"""
    with services.room.database.reading() as session:
        verdict = services.room.store.log.verify(session)
    return VerdictTold(whole=verdict.whole, events=verdict.events, head=verdict.head, faults=verdict.faults)


@routes.post("/log/export", response_class=StreamingResponse, responses=LINES)
def export(services: Services, user: CurrentUser) -> StreamingResponse:
    """Take the whole log along, which is itself written down. Check it with: medgrape audit-log verify FILE."""
    with services.room.database.writing() as session:
        last = services.room.store.record(session, user, "log.exported").seq
    headers = {"Content-Disposition": 'attachment; filename="medgrape-log.jsonl"'}
    return StreamingResponse(_lines(services, last), media_type="application/x-ndjson", headers=headers)


def _lines(services: ServiceContainer, last: int) -> Iterator[str]:
    """A few at a time, so that nobody who reads slowly holds a connection to the database."""
    after = 0
    while after < last:
        with services.room.database.reading() as session:
            found = [event for event, _ in zip(events_in(session, after=after), range(_BATCH), strict=False)]
        if not found:
            return
        yield "".join(line_of(event) for event in found if event.seq <= last)
        after = found[-1].seq
