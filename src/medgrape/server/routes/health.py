"""Is it there, can it work, and how is it doing?"""

from fastapi import Response
from sqlalchemy import text

from medgrape import __version__
from medgrape.server import metrics, model_rows, models
from medgrape.server.desk import Desk, open_router, open_to_all, produces, router
from medgrape.server.problems import Problem
from medgrape.server.schemas.health import Health, Readiness
from medgrape.server.security.roles import Role

anybody, keeping = open_router("health"), router("health", Role.ADMIN)
TEXT = produces("text/plain", "Figures as Prometheus reads them.")


@anybody.get("/health")
@open_to_all
async def health() -> Health:
    """Tell that the server answers."""
    return Health(status="ok", version=__version__)


@anybody.get("/ready")
@open_to_all
def ready(desk: Desk) -> Readiness:
    """Tell that the database answers and the model in use is whole and loaded; else 503."""
    with desk.room.database.reading() as session:
        session.execute(text("SELECT 1"))
        try:
            row = model_rows.model_row(session, None)
        except Problem as missing:
            raise Problem(503, "model_unavailable", "There is no model in use; put one to use.") from missing
    models.loaded(desk.room, row)
    return Readiness(status="ready")


@keeping.get("/metrics", response_class=Response, responses=TEXT)
def figures() -> Response:
    """Tell figures to Prometheus."""
    return Response(metrics.exposed(), media_type="text/plain; version=0.0.4")
