"""Background jobs: list, follow, cancel."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

import anyio.to_thread
from fastapi import Path, Request
from fastapi.responses import StreamingResponse
from pydantic import Field

from medgrape.server.accounts import Role, User
from medgrape.server.api.common import ID, Identifier, Plain, ResponseModel, When
from medgrape.server.jobs import ENDED
from medgrape.server.services import CurrentUser, Services, media_response, problem_responses, router


class JobResponse(ResponseModel):
    """A background job."""

    id: Identifier
    kind: str = Field(examples=["concept.teach"])
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    progress: float = Field(ge=0, le=1, examples=[0.5])
    news: str = Field(description="Present work, or why it failed.", examples=["looking at the examples"])
    result: Plain | None = Field(examples=[{"model": "a3c1f09e5b7d2468"}])
    created_at: When


routes = router("jobs", Role.READER)
POLL_SECONDS = 0.2
MAX_SECONDS = 3600.0
JobId = Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=[ID], description="A job's id.")]
NEWS = media_response("text/event-stream", "The job as JSON after every change, until it has ended.")


@routes.get("/jobs")
def list_jobs(services: Services, user: CurrentUser) -> tuple[JobResponse, ...]:
    """List your jobs, or all for a curator, the newest first; at most 100."""
    return tuple(JobResponse.model_validate(row) for row in services.jobs.all_of(user))


@routes.get("/jobs/{job}")
def get_job(job: JobId, services: Services, user: CurrentUser) -> JobResponse:
    """Get a job."""
    return JobResponse.model_validate(services.jobs.get(user, job))


@routes.get("/jobs/{job}/news", response_class=StreamingResponse, responses=NEWS)
async def news(job: JobId, services: Services, user: CurrentUser, request: Request) -> StreamingResponse:
    """Follow a job by server-sent events."""
    await anyio.to_thread.run_sync(services.jobs.get, user, job)  # raises before the stream begins
    return StreamingResponse(_news(job, services, user, request), media_type="text/event-stream")


async def _news(job: str, services: Services, user: User, request: Request) -> AsyncIterator[str]:
    last, ends_at = "", asyncio.get_running_loop().time() + MAX_SECONDS
    while asyncio.get_running_loop().time() < ends_at and not services.room.closing.is_set():
        row = await anyio.to_thread.run_sync(services.jobs.get, user, job)
        data = JobResponse.model_validate(row).model_dump_json()
        if data != last:
            yield f"event: {row.state}\ndata: {data}\n\n"
            last = data
        if row.state in ENDED or await request.is_disconnected():
            return
        await asyncio.sleep(POLL_SECONDS)


@routes.post("/jobs/{job}/cancel", responses=problem_responses(409))
def cancel(job: JobId, services: Services, user: CurrentUser) -> JobResponse:
    """Cancel a job at its next step."""
    return JobResponse.model_validate(services.jobs.cancel(user, job))
