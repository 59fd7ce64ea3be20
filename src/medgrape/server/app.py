"""The application of one worker: API routes, page files and the OpenAPI document."""

import gzip
import mimetypes
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import torch
from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from medgrape import __version__
from medgrape.explain.words import NOTICE
from medgrape.server import errors
from medgrape.server.api import (
    accounts,
    assessment,
    concepts,
    evaluations,
    explanations,
    exports,
    films,
    health,
    jobs,
    log,
    models,
    studies,
)  # fmt: skip
from medgrape.server.api.common import ProblemResponse
from medgrape.server.errors import Problem
from medgrape.server.jobs import JobRunner
from medgrape.server.middleware import BODY_SECONDS, Gate
from medgrape.server.models import find_model
from medgrape.server.oidc import Oidc
from medgrape.server.room import Room, logger
from medgrape.server.services import ServiceContainer, open_to_all
from medgrape.server.settings import API
from medgrape.server.storage.database import DATABASE_ERRORS
from medgrape.server.studies import BackgroundReader, StudyService

THREADS = 40  # requests that one worker handles at once; most of them wait for the disk or a lock
UPLOADS = 16  # uploads at once in one worker; others wait before their body is read
DESCRIPTION = f"""Reading chest X-rays with concepts that people can point at, correct and extend. {NOTICE}

Send a bearer token (`Authorization: Bearer mg_...`), or log in and send the session's CSRF token as `X-CSRF-Token` with
every request that changes something. Errors follow RFC 9457: `code` for programs, `detail` for people.
"""
ROUTERS = (
    accounts.anybody, accounts.session_routes, films.routes, explanations.film_routes, explanations.study_routes,
    studies.routes, exports.routes, exports.curating, models.routes, models.curating, concepts.routes,
    concepts.curating, assessment.routes, assessment.curating, evaluations.routes, concepts.concept_routes,
    jobs.routes, accounts.routes, accounts.admin, log.routes, health.anybody, health.admin,
)  # fmt: skip
PAGE_FOLDER = Path(__file__).with_name("page")  # the page as built from ui/
NOT_BUILT = (
    "<!doctype html><html lang='en'><meta charset='utf-8'><title>medgrape</title>"
    f"<h1>medgrape {__version__}</h1><p>The reading room's server is running. <strong>{NOTICE}</strong></p>"
    "<p>Its page was not built. Build it with <code>make ui</code>, then start the server again.</p>"
    f"<p>The API is under <code>{API}</code>; <a href='{API}/openapi.json'>openapi.json</a> describes it "
    "with examples.</p></html>"
)


def create_app(room: Room) -> FastAPI:
    """Create the application of one worker."""
    app = FastAPI(
        title="medgrape", version=__version__, description=DESCRIPTION, lifespan=_lifespan(room),
        docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
    )  # fmt: skip
    for router in ROUTERS:
        app.include_router(router, generate_unique_id_function=lambda route: route.name)
    for address, file in page_files().items():
        app.add_api_route(address, file.respond, include_in_schema=False, methods=["GET"], name=address)
    app.add_api_route(f"{API}/openapi.json", open_to_all(lambda: app.openapi()), include_in_schema=False)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    errors.install(app)
    app.add_middleware(Gate, room=room, open_paths=open_paths(app))
    return app


def all_routes(app: FastAPI) -> list[APIRoute]:
    """Return every route of the application."""
    routes = [*app.routes, *(route for router in ROUTERS for route in router.routes)]
    return [route for route in routes if isinstance(route, APIRoute)]


def open_paths(app: FastAPI) -> set[str]:
    """Return the paths that need no login for any method."""
    routes = all_routes(app)
    return {route.path for route in routes} - {route.path for route in routes if not hasattr(route.endpoint, "is_open")}


class PageFile:
    """A file of the page, held in memory: all of them together are about a megabyte."""

    def __init__(self, content: bytes, path: Path) -> None:
        self.content, self.gzipped = content, gzip.compress(content)
        media_type = mimetypes.guess_type(path.name)[0] or "text/plain"
        self._media_type = "text/javascript" if path.suffix == ".js" else media_type
        # Names of assets change with their content.
        caching = "public, max-age=31536000, immutable" if path.parent.name == "assets" else "no-cache"
        self._headers = {"Cache-Control": caching, "Vary": "Accept-Encoding"}

    @open_to_all
    def respond(self, request: Request) -> Response:
        """Send the file, compressed if the browser accepts it."""
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(self.content, media_type=self._media_type, headers=self._headers)
        return Response(self.gzipped, media_type=self._media_type, headers=self._headers | {"Content-Encoding": "gzip"})


def page_files(folder: Path = PAGE_FOLDER) -> dict[str, PageFile]:
    """Return every file of the page by its address, and a notice at / if the page was not built."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = {f"/{path.relative_to(folder).as_posix()}": PageFile(path.read_bytes(), path) for path in paths}
    front = files.pop("/index.html", None) or PageFile(NOT_BUILT.encode(), Path("index.html"))
    return {"/": front, **files}


def _lifespan(room: Room) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        torch.set_num_threads(1)  # the encoder's thread alone uses all cores
        tempfile.tempdir = os.fspath(room.folder.uploads)  # multipart uploads are spooled to the disk of the films
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        services = await anyio.to_thread.run_sync(_services, room, anyio.CapacityLimiter(UPLOADS))
        app.state.services = services
        yield
        tempfile.tempdir = None
        await anyio.to_thread.run_sync(services.close)

    return lifespan


def _services(room: Room, upload_slots: anyio.CapacityLimiter) -> ServiceContainer:
    """Start the services and load the model in use."""
    room.folder.drop_stale_uploads(BODY_SECONDS + room.settings.film_seconds)
    reading = StudyService(room)
    oidc = Oidc(room.settings.oidc, room.key) if room.settings.oidc.issuer else None
    services = ServiceContainer(room, reading, JobRunner(room), BackgroundReader(room, reading), oidc, upload_slots)
    try:
        find_model(room, None)
        services.background_reader.catch_up()
    except (Problem, *DATABASE_ERRORS) as error:
        logger.error("not ready yet: %s", error if isinstance(error, Problem) else type(error).__name__)
    return services


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with the ways to log in and the schema of a problem."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        components = document["components"]
        components["schemas"]["ProblemResponse"] = ProblemResponse.model_json_schema()
        components["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in": "cookie", "name": "medgrape"},
        }
        document["security"] = [{"token": []}, {"session": []}]
        for path in open_paths(app) & set(document["paths"]):
            for operation in document["paths"][path].values():
                operation["security"] = []
        app.openapi_schema = document
    return app.openapi_schema
