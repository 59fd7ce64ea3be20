"""The event log: search, verify, export."""

from collections.abc import Callable, Iterator
from itertools import islice
from operator import eq, ge, lt
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field, Json
from sqlalchemy import select

from medgrape.server.accounts import Role
from medgrape.server.api.common import HASH, ID, VERSION, ResponseModel, When
from medgrape.server.films import Text
from medgrape.server.services import CurrentUser, Services, media_response, router
from medgrape.server.storage.events import events_in, line_of
from medgrape.server.storage.tables import EventRow


class EventResponse(ResponseModel):
    """An event of the log."""

    seq: int = Field(examples=[17])
    at: When
    actor: str = Field(examples=["ada"])
    kind: str = Field(examples=["study.corrected"])
    film: str | None = Field(examples=[ID])
    study: str | None = Field(examples=[ID])
    model: str | None = Field(examples=[VERSION])
    body: Json[dict[str, Any]] = Field(description="Other data.", examples=[{"reason": "seen on the earlier film"}])
    previous: str = Field(description="Hash of the event before.", examples=[HASH])
    hash: str = Field(description="Hash of this event and the hash before.", examples=[HASH])
    seal: str = Field(description="HMAC of the hash with the room's key.", examples=[HASH])


class EventPage(ResponseModel):
    """Events, the newest first."""

    events: tuple[EventResponse, ...]
    older: int | None = Field(description="The ``before`` of the next page; null: there is none.", examples=[17])


class VerificationResponse(ResponseModel):
    """Result of the verification."""

    whole: bool
    events: int = Field(examples=[17])
    head: str = Field(description="The last hash, to compare with a later one.", examples=[HASH])
    faults: tuple[str, ...] = Field(examples=[()])


class EventQuery(BaseModel):
    """Which events to list."""

    actor: Text | None = Field(None, max_length=64, examples=["ada"], description="User.")
    kind: Text | None = Field(None, max_length=64, examples=["study.corrected"], description="Kind of event.")
    film: Text | None = Field(None, max_length=64, examples=[ID], description="Id of a film.")
    study: Text | None = Field(None, max_length=64, examples=[ID], description="Id of a study.")
    since: Text | None = Field(None, max_length=32, examples=["2026-11-18"], description="From this time on.")
    until: Text | None = Field(None, max_length=32, examples=["2026-11-19"], description="Before this time.")
    before: int | None = Field(None, ge=1, le=2**31 - 1, examples=[17], description="Only smaller numbers.")
    size: int = Field(100, ge=1, le=500, description="Largest number of events.")


routes = router("log", Role.ADMIN)
LINES = media_response("application/x-ndjson", "An event on each line, as JSON, the first one first.")


@routes.get("/log")
def list_events(services: Services, query: Annotated[EventQuery, Query()]) -> EventPage:
    """List events, the newest first."""
    wanted = select(EventRow.__table__).order_by(EventRow.seq.desc()).limit(query.size + 1)
    bounds: tuple[tuple[Any, Callable[[Any, Any], Any], object], ...] = (
        (EventRow.actor, eq, query.actor), (EventRow.kind, eq, query.kind), (EventRow.film, eq, query.film),
        (EventRow.study, eq, query.study), (EventRow.at, ge, query.since), (EventRow.at, lt, query.until),
        (EventRow.seq, lt, query.before),
    )  # fmt: skip
    wanted = wanted.where(*(compare(column, value) for column, compare, value in bounds if value is not None))
    with services.room.database.reading() as session:
        events = [EventResponse(**row) for row in session.execute(wanted).mappings()]
    page = tuple(events[: query.size])
    return EventPage(events=page, older=page[-1].seq if len(events) > query.size else None)


@routes.get("/log/verification")
def verify(services: Services) -> VerificationResponse:
    """Verify that no event is altered or missing."""
    with services.room.database.reading() as session:
        return VerificationResponse.model_validate(services.room.store.log.verify(session))


@routes.post("/log/export", response_class=StreamingResponse, responses=LINES)
def export(services: Services, user: CurrentUser) -> StreamingResponse:
    """Export the whole log, which adds an event. Check the file with: medgrape audit-log verify FILE."""
    with services.room.database.writing() as session:
        last = services.room.store.record(session, user, "log.exported").seq
    headers = {"Content-Disposition": 'attachment; filename="medgrape-log.jsonl"'}
    return StreamingResponse(_lines(services, last), media_type="application/x-ndjson", headers=headers)


def _lines(services: Services, last: int) -> Iterator[str]:
    """Yield batches, so that a slow client does not hold a connection to the database."""
    after = 0
    while after < last:
        with services.room.database.reading() as session:
            batch = list(islice(events_in(session, after=after), 500))
        if not batch:
            return
        yield "".join(line_of(event) for event in batch if event.seq <= last)
        after = batch[-1].seq
