"""What every route is handed: the desk it works at, and the person who asks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import anyio
from fastapi import APIRouter, Depends, Request

from medgrape.server.background_reading import FirstSights
from medgrape.server.jobs import JobDesk
from medgrape.server.problems import Problem, forbidden
from medgrape.server.room import Room
from medgrape.server.security.oidc import Oidc
from medgrape.server.security.roles import Person, Role
from medgrape.server.settings import API
from medgrape.server.studies import StudyDesk

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Desks:
    """Everything there is to work with."""

    room: Room
    studies: StudyDesk
    jobs: JobDesk
    first_sights: FirstSights
    oidc: Oidc | None
    arrivals: anyio.CapacityLimiter
    """How many uploads are worked on at once; the others wait without holding a thread."""

    def close(self) -> None:
        """End all work."""
        self.room.closing.set()
        self.jobs.close()
        self.first_sights.close()
        self.room.close()


async def _desk(request: Request) -> Desks:
    desks: Desks = request.app.state.desks
    return desks


async def _person(request: Request) -> Person:
    person: Person | None = request.state.person
    if person is None:
        raise Problem(401, "login_needed", "Log in first, or send a bearer token.")
    return person


# These wait for nothing. They are async all the same, because FastAPI sends whatever is not through a thread.
Desk = Annotated[Desks, Depends(_desk)]
Who = Annotated[Person, Depends(_person)]


class Needs:
    """A role without which a route is closed."""

    def __init__(self, role: Role) -> None:
        self.role = role

    async def __call__(self, who: Who) -> None:
        """Refuse whoever may do less."""
        if not who.role.covers(self.role):
            raise forbidden(f"This takes the role {self.role}; yours is {who.role}.")


_WORDS = {
    400: "The request cannot be understood.",
    401: "Nobody is logged in.",
    403: "The caller's role does not allow it, or another site's page asks.",
    404: "It is not there, or not for the caller to see.",
    408: "The request took too long to arrive.",
    409: "It contradicts what there is; nothing was changed.",
    413: "The request is too large.",
    421: "The server is not called so.",
    422: "What was sent does not fit; nothing was changed.",
    429: "Too many requests.",
    503: "The server cannot do it now; try again later.",
}
_ALWAYS = (400, 401, 403, 404, 408, 413, 421, 422, 429, 503)


def problems(*more: int) -> dict[int | str, dict[str, Any]]:
    """What may go wrong with a route, for its description; some things may with every one."""
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemTold"}}}
    return {status: {"description": _WORDS[status], "content": content} for status in sorted({*_ALWAYS, *more})}


def produces(media: str, description: str) -> dict[int | str, dict[str, Any]]:
    """What a route answers that is no JSON, for its description."""
    binary = not media.startswith("text/")
    schema = {"type": "string", "format": "binary"} if binary else {"type": "string"}
    return {200: {"description": description, "content": {media: {"schema": schema}}}}


def router(tag: str, role: Role) -> APIRouter:
    """Routes of one resource for one role."""
    return APIRouter(prefix=API, tags=[tag], dependencies=[Depends(Needs(role))], responses=problems())


def open_router(tag: str) -> APIRouter:
    """Routes that need no role, of which each still has to say that it is open."""
    return APIRouter(prefix=API, tags=[tag], responses=problems())


def open_to_all(endpoint: F) -> F:
    """Say that a route is open to anybody. All others are closed."""
    endpoint.is_open = True  # type: ignore[attr-defined]
    return endpoint
