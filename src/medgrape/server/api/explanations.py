"""Explanations and maps of studies, and of films without a study."""

import io
from typing import Annotated

import numpy as np
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
    At,
    ConceptPath,
    FilmId,
    MapKind,
    MapSide,
    ResponseModel,
    StudyId,
)
from medgrape.server.api.films import FilmSizeResponse
from medgrape.server.decoder_pool import png
from medgrape.server.errors import not_found
from medgrape.server.films import film_row
from medgrape.server.models import model_row
from medgrape.server.services import CurrentUser, Services, media_response, router
from medgrape.study import Study

Figure = Annotated[float | None, Field(examples=[0.48])]
Map = Annotated[tuple[tuple[float | None, ...], ...], Field(examples=[((0.1, 0.48),)])]


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

    concept: str | None = Field(description="null: all findings.", examples=["active_tb"])
    positive: bool = Field(description="True: the finding is inside; false: it is not.")
    box: RectangleResponse = Field(description="In pixels of the original film.")


class ExemplarResponse(ResponseModel):
    """The training film nearest to a prototype."""

    film: str = Field(examples=["tb-000031-00"])
    prototype: int = Field(examples=[4])
    similarity: Figure = Field(description="Cosine similarity of the patch and the prototype.")
    picture: int = Field(description="Number for /models/{model}/exemplars/{exemplar}.png.", examples=[7])
    thumbnail_side: int = Field(description="Width and height of that picture in pixels.", examples=[112])
    patch: RectangleResponse = Field(description="In pixels of that picture.")


class ConceptEvidenceResponse(ResponseModel):
    """One finding on one film."""

    name: str = Field(examples=["active_tb"])
    title: str = Field(examples=["Active tuberculosis"])
    score: Figure = Field(description="Highest similarity to the finding anywhere on the film.")
    absent_score: Figure = Field(description="Typical score of training films without the finding.")
    present_score: Figure = Field(description="Typical score of training films with the finding.")
    strength: Figure = Field(description="The score scaled so that these typical scores are 0 and 1.")
    words: Words
    rejected: bool = Field(description="Whether a reader rejected the finding.")
    peak: PointResponse = Field(description="Where the mean map is highest.")
    mean: Map = Field(description="Mean similarity of its prototypes to each patch, in rows from the top.")
    disagreement: Map = Field(description="Variance over its prototypes at each patch, likewise.")
    moves: dict[str, float | None] | None = Field(
        description="Each class's probability minus its probability if the finding were rejected; 0 for a rejected "
        "finding, null if the classes do not depend on it.",
        examples=[{"active_tb": 0.62, "healthy": -0.51, "sick_non_tb": -0.11}],
    )
    exemplars: tuple[ExemplarResponse, ...] = Field(description="Of the at most 3 prototypes with the highest scores.")


class AttentionWeight(ResponseModel):
    """Attention weight from one finding (speaker) to another (listener)."""

    listener: str = Field(examples=["active_tb"])
    speaker: str = Field(examples=["pulmonary_tb"])
    weight: Figure


class ExplanationResponse(ResponseModel):
    """What the model saw and why, as ``medgrape read --json`` prints it."""

    notice: str = Field(examples=["Research software, not a medical device."])
    film: FilmSizeResponse
    grid: GridResponse
    warnings: tuple[str, ...] = Field(examples=[()])
    drawn: tuple[DrawnBoxResponse, ...]
    probabilities: dict[str, float | None] = Field(examples=[PREDICTION])
    concepts: tuple[ConceptEvidenceResponse, ...] = Field(description="The finding that stands out most first.")
    attention: tuple[AttentionWeight, ...] | None = Field(description="null if the head has no attention.")


film_routes, study_routes = router("films", Role.READER), router("studies", Role.READER)
RAW = media_response("application/octet-stream", "Rows by columns of float32, as NumPy's .npy.")
Model = Annotated[
    str | None, Query(pattern="^[0-9a-f]{16}$", examples=[VERSION], description="Version; default: the model in use.")
]


@film_routes.get("/films/{film}/explanation")
def film_explanation(film: FilmId, services: Services, model: Model = None) -> ExplanationResponse:
    """Explain what a model sees on an uncorrected film. Opens no study and writes no event."""
    return ExplanationResponse.model_validate(_uncorrected_study(services, film, model).explain().to_json())


@film_routes.get("/films/{film}/maps/{concept}.png", response_class=Response, responses=PNG)
def film_map(
    film: FilmId, concept: ConceptPath, services: Services, model: Model = None, kind: MapKind = "mean",
    side: MapSide = 1024,
) -> Response:  # fmt: skip
    """Draw a finding's map on an uncorrected film, transparent where nothing is seen, to lay over the film."""
    picture = _draw_map(services, _uncorrected_study(services, film, model), concept, kind, side)
    return Response(picture, media_type="image/png", headers=None if model is None else A_DAY)


@study_routes.get("/studies/{study}/explanation")
def explanation(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> ExplanationResponse:
    """Explain the reading: findings with maps, their nearest training films, and the attention of the head."""
    return ExplanationResponse.model_validate(services.studies.get(user, study, at).study.explain().to_json())


@study_routes.get("/studies/{study}/evidence.png", response_class=Response, responses=PNG)
def evidence(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> Response:
    """Draw the evidence as one picture, like medgrape read --save."""
    from medgrape.explain.render import draw  # matplotlib and its fonts are slow to import

    explained = services.studies.get(user, study, at).study.explain()
    with services.room.decoder_pool.render_slots:
        picture = png(np.asarray(draw(explained)))
    return Response(picture, media_type="image/png", headers=_caching(at))


@study_routes.get("/studies/{study}/maps/{concept}.png", response_class=Response, responses=PNG)
def map_picture(
    study: StudyId, concept: ConceptPath, services: Services, user: CurrentUser, kind: MapKind = "mean",
    side: MapSide = 1024, at: At = None,
) -> Response:  # fmt: skip
    """Draw a finding's map, transparent where nothing is seen, to lay over the film."""
    picture = _draw_map(services, services.studies.get(user, study, at).study, concept, kind, side)
    return Response(picture, media_type="image/png", headers=_caching(at))


@study_routes.get("/studies/{study}/maps/{concept}.npy", response_class=Response, responses=RAW)
def raw_map(
    study: StudyId, concept: ConceptPath, services: Services, user: CurrentUser, kind: MapKind = "mean", at: At = None
) -> Response:
    """Get a finding's map as numbers, one per patch."""
    evidence = services.studies.get(user, study, at).study.evidence
    if concept not in evidence.concepts:
        raise not_found("concept", concept)
    maps = evidence.mean if kind == "mean" else evidence.disagreement
    out = io.BytesIO()
    np.save(out, maps[evidence.concepts.index(concept)].numpy(), allow_pickle=False)
    return Response(out.getvalue(), media_type="application/octet-stream", headers=_caching(at))


def _uncorrected_study(services: Services, film: str, model: str | None) -> Study:
    with services.room.database.reading() as session:
        rows = film_row(session, film), model_row(session, model)
    return services.studies.uncorrected(*rows)


def _draw_map(services: Services, study: Study, concept: str, kind: str, side: int) -> bytes:
    from medgrape.explain.maps import map_overlay  # matplotlib is slow to import

    explained = study.explain()
    evidence = next((evidence for evidence in explained.concepts if evidence.concept.name == concept), None)
    if evidence is None:
        raise not_found("concept", concept)
    film = explained.film
    scale = side / max(film.width, film.height)
    size = FilmSize(max(round(film.width * scale), 1), max(round(film.height * scale), 1))
    with services.room.decoder_pool.render_slots:
        return png(map_overlay(evidence, size, kind, explained.concepts))


def _caching(at: int | None) -> dict[str, str] | None:
    """Let browsers cache a past step; the present study may change."""
    return None if at is None else A_DAY
