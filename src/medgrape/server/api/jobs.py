"""Jobs: follow them, cancel them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

import anyio.to_thread
from fastapi import Path, Request
from fastapi.responses import StreamingResponse
from pydantic import Field

from medgrape.server.api.common import ID, Identifier, Plain, ResponseModel, When
from medgrape.server.jobs import ENDED
from medgrape.server.security.roles import Person, Role
from medgrape.server.services import Desk, Who, problems, produces, router


class JobResponse(ResponseModel):
    """Work that takes longer than a request."""

    id: Identifier
    kind: str = Field(examples=["concept.teach"])
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    progress: float = Field(ge=0, le=1, examples=[0.5])
    news: str = Field(description="What is being done, or why it failed.", examples=["looking at the examples"])
    result: Plain | None = Field(examples=[{"model": "a3c1f09e5b7d2468"}])
    created_at: When


routes = router("jobs", Role.READER)
PAUSE = 0.2
"""Seconds between two looks at a job."""
LONGEST = 3600.0
JobId = Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=[ID], description="A job's id.")]
NEWS = produces("text/event-stream", "A line of JSON like a job's for every change, until it has ended.")


@routes.get("/jobs")
def list_jobs(desk: Desk, who: Who) -> tuple[JobResponse, ...]:
    """List one's jobs, or everybody's for a curator, the newest first; at most 100."""
    return tuple(JobResponse.model_validate(row) for row in desk.jobs.all_of(who))


@routes.get("/jobs/{job}")
def get_job(job: JobId, desk: Desk, who: Who) -> JobResponse:
    """Get the state of a job."""
    return JobResponse.model_validate(desk.jobs.get(who, job))


@routes.get("/jobs/{job}/news", response_class=StreamingResponse, responses=NEWS)
async def news(job: JobId, desk: Desk, who: Who, request: Request) -> StreamingResponse:
    """Follow a job by server-sent events."""
    await anyio.to_thread.run_sync(desk.jobs.get, who, job)  # refuses before the stream begins
    return StreamingResponse(_news(job, desk, who, request), media_type="text/event-stream")


async def _news(job: str, desk: Desk, who: Person, request: Request) -> AsyncIterator[str]:
    last, ends_at = "", asyncio.get_running_loop().time() + LONGEST
    while asyncio.get_running_loop().time() < ends_at and not desk.room.closing.is_set():
        row = await anyio.to_thread.run_sync(desk.jobs.get, who, job)
        data = JobResponse.model_validate(row).model_dump_json()
        if data != last:
            yield f"event: {row.state}\ndata: {data}\n\n"
            last = data
        if row.state in ENDED or await request.is_disconnected():
            return
        await asyncio.sleep(PAUSE)


@routes.post("/jobs/{job}/cancel", responses=problems(409))
def cancel(job: JobId, desk: Desk, who: Who) -> JobResponse:
    """Ask a job to stop."""
    return JobResponse.model_validate(desk.jobs.cancel(who, job))
