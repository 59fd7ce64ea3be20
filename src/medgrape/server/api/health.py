"""Is it there, can it work, and how is it doing?"""

from typing import Literal

from fastapi import Response
from pydantic import Field
from sqlalchemy import text

from medgrape import __version__
from medgrape.server import metrics, models
from medgrape.server.api.common import Told
from medgrape.server.problems import Problem
from medgrape.server.security.roles import Role
from medgrape.server.services import Services, media_response, open_router, open_to_all, router


class Health(Told):
    """It answers."""

    status: Literal["ok"]
    version: str = Field(examples=["0.1.0"])


class Readiness(Told):
    """It can read films."""

    status: Literal["ready"]


anybody, keeping = open_router("health"), router("health", Role.ADMIN)
TEXT = media_response("text/plain", "Figures as Prometheus reads them.")


@anybody.get("/health")
@open_to_all
async def health() -> Health:
    """Tell that the server answers."""
    return Health(status="ok", version=__version__)


@anybody.get("/ready")
@open_to_all
def ready(services: Services) -> Readiness:
    """Tell that the database answers and the model in use is whole and loaded; else 503."""
    with services.room.database.reading() as session:
        session.execute(text("SELECT 1"))
        try:
            row = models.model_row(session, None)
        except Problem as missing:
            raise Problem(503, "model_unavailable", "There is no model in use; put one to use.") from missing
    models.loaded(services.room, row)
    return Readiness(status="ready")


@keeping.get("/metrics", response_class=Response, responses=TEXT)
def figures() -> Response:
    """Tell figures to Prometheus."""
    return Response(metrics.exposed(), media_type="text/plain; version=0.0.4")
