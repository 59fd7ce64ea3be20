"""Health, readiness and metrics of the server."""

from typing import Literal

from fastapi import Response
from pydantic import Field

from medgrape import __version__
from medgrape.server import models
from medgrape.server.accounts import Role
from medgrape.server.api.common import ResponseModel
from medgrape.server.errors import Problem
from medgrape.server.middleware import metrics_text
from medgrape.server.services import Services, media_response, open_to_all, router


class HealthResponse(ResponseModel):
    """The server runs."""

    status: Literal["ok"]
    version: str = Field(examples=["0.1.0"])


class ReadinessResponse(ResponseModel):
    """The server can read films."""

    status: Literal["ready"]


anybody, admin = router("health", None), router("health", Role.ADMIN)
TEXT = media_response("text/plain", "Metrics in the text format of Prometheus.")


@anybody.get("/health")
@open_to_all
async def health() -> HealthResponse:
    """Return 200 if the server runs."""
    return HealthResponse(status="ok", version=__version__)


@anybody.get("/ready")
@open_to_all
def ready(services: Services) -> ReadinessResponse:
    """Return 200 if the database answers and the model in use is loaded and unaltered, else 503."""
    with services.room.database.reading() as session:
        if models.in_use(session) is None:
            raise Problem(503, "model_unavailable", "No model is in use; put one to use.")
    models.find_model(services.room, None)
    return ReadinessResponse(status="ready")


@admin.get("/metrics", response_class=Response, responses=TEXT)
def figures() -> Response:
    """Get metrics for Prometheus."""
    return Response(metrics_text(), media_type="text/plain; version=0.0.4")
