"""What a model sees on a film that nobody corrected. No study is opened, and nothing is written to the log."""

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from medgrape.explain.words import Words
from medgrape.geometry import FilmSize
from medgrape.server.accounts import Role
from medgrape.server.api.common import (
    A_DAY,
    PNG,
    PREDICTION,
    VERSION,
    ConceptPath,
    FilmId,
    MapKind,
    MapSide,
    ResponseModel,
)
from medgrape.server.api.films import FilmSizeResponse
from medgrape.server.decoder_pool import png
from medgrape.server.errors import not_found
from medgrape.server.films import film_row
from medgrape.server.models import model_row
from medgrape.server.room import Room
from medgrape.server.services import Services, router
from medgrape.study import Study

Figure = Annotated[float | None, Field(examples=[0.48])]
Map = Annotated[
    tuple[tuple[float | None, ...], ...],
    Field(description="Rows from the top, in each a number for each patch from the left.", examples=[((0.1, 0.48),)]),
]


class GridResponse(ResponseModel):
    """Number of patches into which the film is divided for the model."""

    rows: int = Field(examples=[7])
    columns: int = Field(examples=[7])


class PointResponse(ResponseModel):
    """A point in pixels of the original film."""

    x: Figure
    y: Figure


class RectangleResponse(ResponseModel):
    """A rectangle: x to the right, y down."""

    x1: Figure
    y1: Figure
    x2: Figure
    y2: Figure


class DrawnBoxResponse(ResponseModel):
    """A box that a person drew."""

    concept: str | None = Field(description="null: every finding.", examples=["active_tb"])
    positive: bool = Field(description="Whether the finding is inside, or is not.")
    box: RectangleResponse = Field(description="In pixels of the original film.")


class ExemplarResponse(ResponseModel):
    """The training film nearest to a prototype."""

    film: str = Field(examples=["tb-000031-00"])
    prototype: int = Field(examples=[4])
    similarity: Figure = Field(description="Of the patch to the prototype, from -1 to 1.")
    picture: int = Field(description="For /models/{model}/exemplars/{exemplar}.png.", examples=[7])
    thumbnail_side: int = Field(description="Width and height of that picture.", examples=[112])
    patch: RectangleResponse = Field(description="In pixels of that picture.")


class ConceptEvidenceResponse(ResponseModel):
    """One finding on one film."""

    name: str = Field(examples=["active_tb"])
    title: str = Field(examples=["Active tuberculosis"])
    score: Figure = Field(description="Highest agreement of the finding's prototypes anywhere on the film.")
    absent_score: Figure = Field(description="What the score typically is on training films without it.")
    present_score: Figure = Field(description="What the score typically is on training films with it.")
    strength: Figure = Field(description="The score scaled to about 0 on films without it and 1 on films with it.")
    words: Words
    rejected: bool = Field(description="Whether a person said that it is not on this film.")
    peak: PointResponse = Field(description="Where it is strongest.")
    mean: Map = Field(description="Where it is seen: mean similarity of its prototypes at each patch.")
    disagreement: Map = Field(description="Where its prototypes disagree: their variance at each patch.")
    moves: dict[str, float | None] | None = Field(
        description="What it moved: each class's probability less what it would be if the finding were rejected. "
        "All 0 for a rejected one; null where the classes do not depend on it.",
        examples=[{"active_tb": 0.62, "healthy": -0.51, "sick_non_tb": -0.11}],
    )
    exemplars: tuple[ExemplarResponse, ...] = Field(description="Of the prototypes with the highest scores, at most 3.")


class AttentionWeight(ResponseModel):
    """How much one finding listened to another."""

    listener: str = Field(examples=["active_tb"])
    speaker: str = Field(examples=["pulmonary_tb"])
    weight: Figure


class ExplanationResponse(ResponseModel):
    """What the model saw and why: the same as ``medgrape read --json`` prints."""

    notice: str = Field(examples=["Research software, not a medical device."])
    film: FilmSizeResponse
    grid: GridResponse
    warnings: tuple[str, ...] = Field(examples=[()])
    drawn: tuple[DrawnBoxResponse, ...]
    probabilities: dict[str, float | None] = Field(examples=[PREDICTION])
    concepts: tuple[ConceptEvidenceResponse, ...] = Field(description="The one that stands out most first.")
    attention: tuple[AttentionWeight, ...] | None = Field(description="null where the head has no attention.")


def draw_map(room: Room, study: Study, concept: str, kind: str, side: int) -> bytes:
    """Draw a finding's map as PNG, clear where nothing is seen."""
    from medgrape.explain.maps import map_overlay  # matplotlib is slow to import

    explained = study.explain()
    evidence = next((seen for seen in explained.concepts if seen.concept.name == concept), None)
    if evidence is None:
        raise not_found("concept", concept)
    scale = side / max(explained.film.width, explained.film.height)
    size = FilmSize(max(round(explained.film.width * scale), 1), max(round(explained.film.height * scale), 1))
    with room.decoder_pool.render_slots:
        return png(map_overlay(evidence, size, kind, explained.concepts))


routes = router("films", Role.READER)
Model = Annotated[
    str | None,
    Query(pattern="^[0-9a-f]{16}$", examples=[VERSION], description="A model's version; by default the one in use."),
]


@routes.get("/films/{film}/explanation")
def film_explanation(film: FilmId, services: Services, model: Model = None) -> ExplanationResponse:
    """Explain what a model sees on a film at first sight. No study is opened for it."""
    return ExplanationResponse.model_validate(_first_sight(services, film, model).explain().to_json())


@routes.get("/films/{film}/maps/{concept}.png", response_class=Response, responses=PNG)
def film_map(
    film: FilmId,
    concept: ConceptPath,
    services: Services,
    model: Model = None,
    kind: MapKind = "mean",
    side: MapSide = 1024,
) -> Response:
    """Show a finding's map at first sight, clear where nothing is seen, to lay over the film."""
    picture = draw_map(services.room, _first_sight(services, film, model), concept, kind, side)
    return Response(picture, media_type="image/png", headers=None if model is None else A_DAY)


def _first_sight(services: Services, film: str, model: str | None) -> Study:
    with services.room.database.reading() as session:
        rows = film_row(session, film), model_row(session, model)
    return services.studies.first_sight(*rows)
