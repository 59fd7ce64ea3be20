"""Dependencies of routes: the services, the current user, the role required; and routers that apply them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import anyio
from fastapi import APIRouter, Depends, Request

from medgrape.server.accounts import Role, User
from medgrape.server.errors import Problem, forbidden
from medgrape.server.jobs import JobRunner
from medgrape.server.oidc import Oidc
from medgrape.server.room import Room
from medgrape.server.settings import API
from medgrape.server.studies import BackgroundReader, StudyService

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class ServiceContainer:
    """The services of one worker."""

    room: Room
    studies: StudyService
    jobs: JobRunner
    background_reader: BackgroundReader
    oidc: Oidc | None
    upload_slots: anyio.CapacityLimiter
    """Limits the uploads handled at once; others wait without holding a thread."""

    def close(self) -> None:
        """End all background work."""
        self.room.closing.set()
        self.jobs.close()
        self.background_reader.close()
        self.room.close()


async def _services(request: Request) -> ServiceContainer:
    services: ServiceContainer = request.app.state.services
    return services


async def _current_user(request: Request) -> User:
    user: User | None = request.state.user
    if user is None:
        raise Problem(401, "login_needed", "Log in first, or send a bearer token.")
    return user


# These functions are async though they wait for nothing, because FastAPI would run them in a thread otherwise.
Services = Annotated[ServiceContainer, Depends(_services)]
CurrentUser = Annotated[User, Depends(_current_user)]


class RequireRole:
    """Closes a route to users without a role."""

    def __init__(self, role: Role) -> None:
        self.role = role

    async def __call__(self, user: CurrentUser) -> None:
        """Refuse users with a lower role."""
        if not user.role.covers(self.role):
            raise forbidden(f"This takes the role {self.role}; yours is {user.role}.")


_DESCRIPTIONS = {
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


def problem_responses(*more: int) -> dict[int | str, dict[str, Any]]:
    """Problems of a route for its OpenAPI description, with those that every route has."""
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemResponse"}}}
    return {status: {"description": _DESCRIPTIONS[status], "content": content} for status in sorted({*_ALWAYS, *more})}


def media_response(media: str, description: str) -> dict[int | str, dict[str, Any]]:
    """An answer that is not JSON, for a route's OpenAPI description."""
    binary = not media.startswith("text/")
    schema = {"type": "string", "format": "binary"} if binary else {"type": "string"}
    return {200: {"description": description, "content": {media: {"schema": schema}}}}


def router(tag: str, role: Role) -> APIRouter:
    """A router for routes that require a role."""
    return APIRouter(prefix=API, tags=[tag], dependencies=[Depends(RequireRole(role))], responses=problem_responses())


def open_router(tag: str) -> APIRouter:
    """A router for routes that require no role; each must still be marked with ``open_to_all``."""
    return APIRouter(prefix=API, tags=[tag], responses=problem_responses())


def open_to_all(endpoint: F) -> F:
    """Mark a route as open to anybody; all others are closed."""
    endpoint.is_open = True  # type: ignore[attr-defined]
    return endpoint
