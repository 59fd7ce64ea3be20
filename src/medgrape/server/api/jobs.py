"""Jobs: follow them, cancel them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Literal, cast

import anyio.to_thread
from fastapi import Request
from fastapi.responses import StreamingResponse
from pydantic import Field

from medgrape.server.api.common import Identifier, JobId, Plain, Told, When
from medgrape.server.jobs import ENDED
from medgrape.server.security.roles import Person, Role
from medgrape.server.services import Desk, Desks, Who, problems, produces, router
from medgrape.server.storage.tables import JobRow, stamp

State = Literal["waiting", "running", "done", "failed", "cancelled"]


class JobTold(Told):
    """Work that takes longer than a request."""

    id: Identifier
    kind: str = Field(examples=["concept.teach"])
    state: State
    progress: float = Field(ge=0, le=1, examples=[0.5])
    news: str = Field(description="What is being done, or why it failed.", examples=["looking at the examples"])
    result: Plain | None = Field(examples=[{"model": "a3c1f09e5b7d2468"}])
    created_at: When


def job_told(row: JobRow) -> JobTold:
    """A job."""
    return JobTold(
        id=row.id, kind=row.kind, state=cast(State, row.state), progress=row.progress, news=row.news, result=row.result,
        created_at=stamp(row.created_at),
    )  # fmt: skip


routes = router("jobs", Role.READER)
PAUSE = 0.2
"""Seconds between two looks at a job."""
LONGEST = 3600.0
NEWS = produces("text/event-stream", "A line of JSON like a job's for every change, until it has ended.")


@routes.get("/jobs")
def list_jobs(desk: Desk, who: Who) -> tuple[JobTold, ...]:
    """List one's jobs, or everybody's for a curator, the newest first; at most 100."""
    return tuple(job_told(row) for row in desk.jobs.all_of(who))


@routes.get("/jobs/{job}")
def get_job(job: JobId, desk: Desk, who: Who) -> JobTold:
    """Tell how far a job is."""
    return job_told(desk.jobs.get(who, job))


@routes.get("/jobs/{job}/news", response_class=StreamingResponse, responses=NEWS)
async def news(job: JobId, desk: Desk, who: Who, request: Request) -> StreamingResponse:
    """Follow a job by server-sent events."""
    await anyio.to_thread.run_sync(desk.jobs.get, who, job)  # refuses before the stream begins
    return StreamingResponse(_news(job, desk, who, request), media_type="text/event-stream")


async def _news(job: str, desk: Desks, who: Person, request: Request) -> AsyncIterator[str]:
    last, ends_at = "", asyncio.get_running_loop().time() + LONGEST
    while asyncio.get_running_loop().time() < ends_at and not desk.room.closing.is_set():
        row = await anyio.to_thread.run_sync(desk.jobs.get, who, job)
        told = job_told(row).model_dump_json()
        if told != last:
            yield f"event: {row.state}\ndata: {told}\n\n"
            last = told
        if row.state in ENDED or await request.is_disconnected():
            return
        await asyncio.sleep(PAUSE)


@routes.post("/jobs/{job}/cancel", responses=problems(409))
def cancel(job: JobId, desk: Desk, who: Who) -> JobTold:
    """Ask a job to stop."""
    return job_told(desk.jobs.cancel(who, job))
