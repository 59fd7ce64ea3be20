"""What a model sees on a film that nobody corrected. No study is opened, and the log tells nothing of it."""

from typing import Annotated

from fastapi import Query, Response
from pydantic import ConfigDict, Field

from medgrape.explain.words import Words
from medgrape.server.api.common import PREDICTION, VERSION, Concept, FilmId, Kind, MapSide, Plain, Told
from medgrape.server.api.films import A_DAY, PNG, FilmSizeTold
from medgrape.server.films import film_row
from medgrape.server.models import model_row
from medgrape.server.rendering import map_picture
from medgrape.server.security.roles import Role
from medgrape.server.services import ServiceContainer, Services, router
from medgrape.study import Study

Figure = Annotated[float | None, Field(examples=[0.48])]
Map = Annotated[
    tuple[tuple[float | None, ...], ...],
    Field(description="Rows from the top, in each a number for each patch from the left.", examples=[((0.1, 0.48),)]),
]
_PATCH: Plain = {"x1": 48.0, "y1": 16.0, "x2": 64.0, "y2": 32.0}
_CONCEPT: Plain = {
    "name": "active_tb", "title": "Active tuberculosis", "score": 0.48, "absent_score": 0.21, "present_score": 0.5,
    "strength": 0.93, "words": "clearly seen", "rejected": False, "peak": {"x": 365.0, "y": 190.0},
    "mean": [[0.1, 0.48]], "disagreement": [[0.0002, 0.001]],
    "moves": {"active_tb": 0.62, "healthy": -0.51, "sick_non_tb": -0.11},
    "exemplars": [
        {"film": "tb-000031-00", "prototype": 4, "similarity": 0.83, "picture": 7, "thumbnail_side": 112,
         "patch": _PATCH}
    ],
}  # fmt: skip


class GridTold(Told):
    """Into how many patches the film is divided for the model."""

    rows: int = Field(examples=[7])
    columns: int = Field(examples=[7])


class PointTold(Told):
    """A point in pixels of the original film."""

    x: Figure
    y: Figure


class RectangleTold(Told):
    """A rectangle: x to the right, y down."""

    x1: Figure
    y1: Figure
    x2: Figure
    y2: Figure


class DrawnTold(Told):
    """A box that a person drew."""

    concept: str | None = Field(description="null: every finding.", examples=["active_tb"])
    positive: bool = Field(description="Whether it is said to be there, or not to be there.")
    box: RectangleTold = Field(description="In pixels of the original film.")


class ExemplarTold(Told):
    """A training film that a prototype reminds of."""

    film: str = Field(examples=["tb-000031-00"])
    prototype: int = Field(examples=[4])
    similarity: Figure = Field(description="Of the patch to the prototype, from -1 to 1.")
    picture: int = Field(
        description="Number of its picture, for /models/{model}/exemplars/{exemplar}.png.", examples=[7]
    )
    thumbnail_side: int = Field(description="Width and height of that picture.", examples=[112])
    patch: RectangleTold = Field(description="In pixels of that picture.")


class ConceptSeenTold(Told):
    """One finding on one film."""

    model_config = ConfigDict(json_schema_extra={"examples": [_CONCEPT]})

    name: str
    title: str
    score: Figure = Field(description="Highest agreement of the finding's prototypes anywhere on the film.")
    absent_score: Figure = Field(description="What the score typically is on training films without it.")
    present_score: Figure = Field(description="What the score typically is on training films with it.")
    strength: float | None = Field(
        description="The score where films without it have about 0 and films with it about 1; null: cannot be told."
    )
    words: Words
    rejected: bool = Field(description="Whether a person said that it is not on this film.")
    peak: PointTold = Field(description="Where it is strongest.")
    mean: Map = Field(description="Where it is seen: agreement of its prototypes at each patch, rows from the top.")
    disagreement: Map = Field(description="Where its prototypes disagree: their variance at each patch.")
    moves: dict[str, float | None] | None = Field(
        description="What it moved: each class's probability less what it would be if the finding were rejected. "
        "All 0 for a rejected one; null where the model's diagnosis does not listen to it."
    )
    exemplars: tuple[ExemplarTold, ...] = Field(description="Of the prototypes that answer most strongly, at most 3.")


class HeardTold(Told):
    """That one finding listened to another."""

    listener: str = Field(examples=["active_tb"])
    speaker: str = Field(examples=["pulmonary_tb"])
    weight: Figure


class ExplanationTold(Told):
    """What the model saw and why: the same as ``medgrape read --json`` tells."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "notice": "Research software, not a medical device.",
                    "film": {"width": 2048, "height": 2500},
                    "grid": {"rows": 1, "columns": 2},
                    "warnings": [],
                    "drawn": [],
                    "probabilities": PREDICTION,
                    "concepts": [_CONCEPT],
                    "attention": None,
                }
            ]
        }
    )

    notice: str
    film: FilmSizeTold
    grid: GridTold
    warnings: tuple[str, ...]
    drawn: tuple[DrawnTold, ...]
    probabilities: dict[str, float | None]
    concepts: tuple[ConceptSeenTold, ...] = Field(description="The one that stands out most first.")
    attention: tuple[HeardTold, ...] | None = Field(description="Who listened to whom; null where the head does not.")


routes = router("films", Role.READER)
Model = Annotated[
    str | None,
    Query(pattern="^[0-9a-f]{16}$", examples=[VERSION], description="A model's version; else the one in use."),
]


@routes.get("/films/{film}/explanation")
def film_explanation(film: FilmId, services: Services, model: Model = None) -> ExplanationTold:
    """Tell what a model sees on a film at first sight and why. No study is opened for it."""
    return ExplanationTold.model_validate(_first_sight(services, film, model).explain().to_json())


@routes.get("/films/{film}/maps/{concept}.png", response_class=Response, responses=PNG)
def film_map(
    film: FilmId, concept: Concept, services: Services, model: Model = None, kind: Kind = "mean", side: MapSide = 1024
) -> Response:
    """Show a finding's map at first sight, clear where nothing is seen, to lay over the film."""
    shown = map_picture(services.room, _first_sight(services, film, model), concept, kind, side)
    return Response(shown, media_type="image/png", headers=None if model is None else A_DAY)


def _first_sight(services: ServiceContainer, film: str, model: str | None) -> Study:
    with services.room.database.reading() as session:
        rows = film_row(session, film), model_row(session, model)
    return services.studies.first_sight(*rows)
