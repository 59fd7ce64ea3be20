"""What a model sees on a film that nobody corrected. No study is opened, and the log tells nothing of it."""

from typing import Annotated

from fastapi import Query, Response

from medgrape.feedback.study import Study
from medgrape.server.desk import Desk, Desks, router
from medgrape.server.films import film_row
from medgrape.server.model_rows import model_row
from medgrape.server.routes.films import A_DAY, PNG
from medgrape.server.routes.params import Concept, FilmId, Kind, MapSide
from medgrape.server.schemas.common import VERSION
from medgrape.server.schemas.explanations import ExplanationTold
from medgrape.server.security.roles import Role
from medgrape.server.showing import map_picture

routes = router("films", Role.READER)
Model = Annotated[
    str | None,
    Query(pattern="^[0-9a-f]{16}$", examples=[VERSION], description="A model's version; else the one in use."),
]


@routes.get("/films/{film}/explanation")
def film_explanation(film: FilmId, desk: Desk, model: Model = None) -> ExplanationTold:
    """Tell what a model sees on a film at first sight and why. No study is opened for it."""
    return ExplanationTold.model_validate(_first_sight(desk, film, model).explain().to_json())


@routes.get("/films/{film}/maps/{concept}.png", response_class=Response, responses=PNG)
def film_map(
    film: FilmId, concept: Concept, desk: Desk, model: Model = None, kind: Kind = "mean", side: MapSide = 1024
) -> Response:
    """Show a finding's map at first sight, clear where nothing is seen, to lay over the film."""
    shown = map_picture(desk.room, _first_sight(desk, film, model), concept, kind, side)
    return Response(shown, media_type="image/png", headers=None if model is None else A_DAY)


def _first_sight(desk: Desks, film: str, model: str | None) -> Study:
    with desk.room.database.reading() as session:
        rows = film_row(session, film), model_row(session, model)
    return desk.studies.first_sight(*rows)
