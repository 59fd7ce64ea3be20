"""The application: routes behind the gate, and what they work with."""

import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
import torch
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from medgrape import __version__
from medgrape.explain.words import NOTICE
from medgrape.server import error_responses, page_files
from medgrape.server.api import assessment, explanations, films, health, jobs, log, models, people, session, studies
from medgrape.server.api.common import ProblemTold
from medgrape.server.api.exports import routes
from medgrape.server.background_reading import BackgroundReader
from medgrape.server.jobs import JobRunner
from medgrape.server.middleware import BODY_SECONDS, Gate
from medgrape.server.models import loaded, model_row
from medgrape.server.problems import Problem
from medgrape.server.room import Room
from medgrape.server.room_folder import logger
from medgrape.server.security.oidc import Oidc
from medgrape.server.services import ServiceContainer, open_to_all
from medgrape.server.settings import API
from medgrape.server.storage.database import DATABASE_ERRORS
from medgrape.server.studies import StudyService

THREADS = 40
"""Requests that are worked on at once in one worker; most of them wait for a disk or for their turn."""
UPLOADS = 16
"""Uploads at once in one worker; others wait before their body is read."""
DESCRIPTION = f"""Reading chest X-rays with concepts that one can point at, correct and extend. {NOTICE}

Send a bearer token (`Authorization: Bearer mg_...`), or log in and send the session's CSRF token as `X-CSRF-Token` with
everything that changes something. What goes wrong is told as RFC 9457 wants it:
`code` for programs, `detail` for people.
"""
ROUTERS = (
    session.anybody, session.routes, films.routes, explanations.routes, studies.routes,
    routes.routes, routes.room_routes,
    models.routes, models.curating, assessment.routes, assessment.curating, models.concept_routes, jobs.routes,
    people.routes, people.keeping, log.routes, health.anybody, health.keeping,
)  # fmt: skip


def create_app(room: Room) -> FastAPI:
    """An application for one worker."""
    app = FastAPI(
        title="medgrape", version=__version__, description=DESCRIPTION, lifespan=_lifespan(room),
        docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
    )  # fmt: skip
    for router in ROUTERS:
        app.include_router(router, generate_unique_id_function=_operation)
    page_files.install(app)
    app.add_api_route(f"{API}/openapi.json", open_to_all(lambda: app.openapi()), include_in_schema=False)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    error_responses.install(app)
    app.add_middleware(Gate, room=room, open_paths=open_paths(app))
    return app


def all_routes(app: FastAPI) -> list[APIRoute]:
    """Every route of the application."""
    own = [route for route in app.routes if isinstance(route, APIRoute)]
    return [*own, *(route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute))]


def open_paths(app: FastAPI) -> set[str]:
    """Addresses that say that they are open, under every method that they have."""
    closed = {route.path for route in all_routes(app) if not getattr(route.endpoint, "is_open", False)}
    return {route.path for route in all_routes(app)} - closed


def _lifespan(room: Room) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        torch.set_num_threads(1)  # the encoder's thread alone uses all cores
        tempfile.tempdir = os.fspath(room.folder.uploads)  # uploads are spooled where films are kept
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        services = await anyio.to_thread.run_sync(_services, room, anyio.CapacityLimiter(UPLOADS))
        app.state.services = services
        yield
        tempfile.tempdir = None
        await anyio.to_thread.run_sync(services.close)

    return living


def _services(room: Room, arrivals: anyio.CapacityLimiter) -> ServiceContainer:
    """Everything to work with; the model in use is loaded before anybody asks for it."""
    room.folder.drop_stale_uploads(BODY_SECONDS + room.settings.film_seconds)
    studies_service = StudyService(room)
    provider = Oidc(room.settings.oidc, room.key) if room.settings.oidc.issuer else None
    services = ServiceContainer(
        room, studies_service, JobRunner(room), BackgroundReader(room, studies_service), provider, arrivals
    )
    try:
        with room.database.reading() as opened:
            row = model_row(opened, None)
        loaded(room, row)
        services.background_reader.catch_up()
    except (Problem, *DATABASE_ERRORS) as error:
        logger.error("not ready yet: %s", error if isinstance(error, Problem) else type(error).__name__)
    return services


def _operation(route: APIRoute) -> str:
    return route.name


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with how to log in and what a problem looks like."""
    if app.openapi_schema is None:
        told = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        parts = told["components"]
        parts["schemas"]["ProblemTold"] = ProblemTold.model_json_schema()
        parts["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in": "cookie", "name": "medgrape"},
        }
        told["security"] = [{"token": []}, {"session": []}]
        for path in open_paths(app) & set(told["paths"]):
            for operation in told["paths"][path].values():
                operation["security"] = []
        app.openapi_schema = told
    return app.openapi_schema
