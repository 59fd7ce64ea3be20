"""Dependencies of routes (services, current user, required role), routers, and descriptions for OpenAPI."""

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
    upload_slots: anyio.CapacityLimiter  # limits concurrent uploads; others wait without a thread

    def close(self) -> None:
        """Stop all background work."""
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


# These functions are async because FastAPI runs other functions in a thread.
Services = Annotated[ServiceContainer, Depends(_services)]
CurrentUser = Annotated[User, Depends(_current_user)]


class RequireRole:
    """Dependency that refuses users without a role."""

    def __init__(self, role: Role) -> None:
        self.role = role

    async def __call__(self, user: CurrentUser) -> None:
        """Refuse users with a lower role."""
        if not user.role.covers(self.role):
            raise forbidden(f"This takes the role {self.role}; yours is {user.role}.")


_DESCRIPTIONS = {
    400: "The request cannot be understood.",
    401: "Nobody is logged in.",
    403: "The caller's role does not allow it, or the request comes from another site's page.",
    404: "It does not exist, or the caller may not see it.",
    408: "The request took too long to arrive.",
    409: "It conflicts with the present state; nothing was changed.",
    413: "The request is too large.",
    421: "The host name is not the server's.",
    422: "The request is invalid; nothing was changed.",
    429: "Too many requests.",
    503: "The server cannot answer now; try again later.",
}
_ALWAYS = (400, 401, 403, 404, 408, 413, 421, 422, 429, 503)


def problem_responses(*more: int) -> dict[int | str, dict[str, Any]]:
    """Describe the error responses of a route for OpenAPI: those of every route, and ``more``."""
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemResponse"}}}
    return {status: {"description": _DESCRIPTIONS[status], "content": content} for status in sorted({*_ALWAYS, *more})}


def media_response(media: str, description: str) -> dict[int | str, dict[str, Any]]:
    """Describe a response that is not JSON for OpenAPI."""
    binary = not media.startswith("text/")
    schema = {"type": "string", "format": "binary"} if binary else {"type": "string"}
    return {200: {"description": description, "content": {media: {"schema": schema}}}}


def router(tag: str, role: Role | None) -> APIRouter:
    """Create a router for routes that require a role, or none; then each must still be marked with ``open_to_all``."""
    dependencies = [] if role is None else [Depends(RequireRole(role))]
    return APIRouter(prefix=API, tags=[tag], dependencies=dependencies, responses=problem_responses())


def open_to_all(endpoint: F) -> F:
    """Mark a route as open without login; all others are closed."""
    endpoint.is_open = True  # type: ignore[attr-defined]
    return endpoint
