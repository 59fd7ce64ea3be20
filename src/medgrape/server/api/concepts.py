"""Findings of a model and their prototypes: look at them, discard and restore prototypes, teach a new finding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Path as PathParameter
from fastapi import Response
from pydantic import Field

from medgrape.concepts import Concept
from medgrape.datasets.cache import fingerprint
from medgrape.geometry import Box
from medgrape.progress import Track
from medgrape.reader import Reader
from medgrape.runs.checkpoint import Run
from medgrape.server import models
from medgrape.server.accounts import Role, User
from medgrape.server.api.common import (
    A_DAY,
    ID,
    LINE,
    PNG,
    BoxRequest,
    ConceptPath,
    Identifier,
    ModelVersion,
    RequestModel,
    ResponseModel,
    Version,
)
from medgrape.server.api.jobs import JobResponse
from medgrape.server.api.models import ModelResponse, model_response
from medgrape.server.decoder_pool import png
from medgrape.server.errors import not_found
from medgrape.server.films import film_row
from medgrape.server.room import Room
from medgrape.server.services import CurrentUser, Services, router
from medgrape.server.storage.tables import FilmRow, ModelRow
from medgrape.vocabulary.curation import prototypes_of
from medgrape.vocabulary.new_concept import known_concepts, with_concept


class ConceptResponse(ResponseModel):
    """A finding that a model can point at."""

    name: str = Field(examples=["active_tb"])
    title: str = Field(examples=["Active tuberculosis"])
    description: str = Field(examples=["Patchy or nodular opacities in the upper lobes, often with cavities."])
    trained: bool = Field(description="Whether the model was trained with it; else it was learnt later.")
    judged: bool = Field(description="Whether the classes depend on it.")
    taught_by_films: bool = Field(description="False where only its description is known.")


class PrototypeResponse(ResponseModel):
    """One prototype of a finding."""

    concept: str = Field(examples=["active_tb"])
    number: int = Field(examples=[3])
    kept: bool
    film: str | None = Field(description="The training film with the patch nearest to it.", examples=["tb-000012-00"])
    exemplar: int | None = Field(description="Where to find its picture: .../exemplars/{exemplar}.png.", examples=[7])
    patch: tuple[int, int] | None = Field(description="Row and column of that patch.", examples=[(2, 4)])
    grid: tuple[int, int] = Field(description="Rows and columns of patches on that film.", examples=[(7, 7)])
    similarity: float | None = Field(description="Of that patch to it.", examples=[0.83])
    absent: float = Field(description="Its usual score on films without the finding.", examples=[0.21])
    typical: float = Field(description="Its similarity to the mean of the finding's prototypes.", examples=[0.64])
    raises: str | None = Field(description="The class that gains most by it.", examples=["active_tb"])
    gain: float | None = Field(description="By how much.", examples=[0.12])


class CuratePrototypes(RequestModel, json_schema_extra={"examples": [{"prototypes": [3, 7]}]}):
    """Prototypes to discard, or to restore."""

    prototypes: list[int] = Field(min_length=1, max_length=1000)
    name: str | None = Field(
        default=None, min_length=1, max_length=128, pattern=LINE, description="What to call the new model."
    )


class ExampleFilm(RequestModel):
    """A film that shows the new finding, perhaps with a box around it."""

    film: Identifier
    box: BoxRequest | None = None


_LESSON = {
    "name": "cavity",
    "description": "Thick-walled lucency in the upper lobe.",
    "examples": [{"film": ID, "box": {"x1": 310, "y1": 120, "x2": 420, "y2": 260}}],
}


class TeachConcept(RequestModel, json_schema_extra={"examples": [_LESSON]}):
    """A new finding, described and shown."""

    name: str = Field(min_length=1, max_length=63, examples=["cavity"])
    description: str = Field(min_length=1, max_length=1000)
    title: str | None = Field(default=None, min_length=1, max_length=128, pattern=LINE)
    examples: list[ExampleFilm] = Field(default=[], max_length=50)
    model: Version | None = Field(default=None, description="Which model learns it; by default the one in use.")
    seed: int = Field(default=0, ge=0, le=4294967295)


@dataclass(frozen=True)
class Lesson:
    """A new finding that can be learnt: its name is free, and its films are there."""

    request: TeachConcept
    parent: ModelRow
    films: tuple[FilmRow, ...]
    examples: tuple[Path | tuple[Path, Box], ...]


def prepare(room: Room, request: TeachConcept) -> Lesson:
    """Refuse at once what cannot be learnt: a film that is not there, a name that is taken, an empty box."""
    with room.database.reading() as session:
        parent = models.model_row(session, request.model)
        films = tuple(film_row(session, example.film) for example in request.examples)
    title = request.title or request.name.replace("_", " ")
    with_concept(models.loaded(room, parent).reader.concepts, Concept(request.name, title, request.description))
    paths = [room.folder.film(film.id, film.suffix) for film in films]
    examples = tuple(
        path if example.box is None else (path, example.box.to_box())
        for path, example in zip(paths, request.examples, strict=True)
    )
    return Lesson(request, parent, films, examples)


def teach(room: Room, user: User, lesson: Lesson, track: Track) -> dict[str, Any]:
    """Learn the finding and store the new model; return the result of the job."""
    request, parent = lesson.request, lesson.parent
    learnt = models.loaded(room, parent).reader.learn(
        request.name, request.description, lesson.examples, title=request.title, seed=request.seed, track=track
    )
    list(track([None], "writing the model", 1))  # the last moment at which the job can be cancelled
    # A run knows the films it learnt from by their checksums; here also by those of the files as they were uploaded.
    run, uploaded = learnt.loaded.run, (fingerprint(film.content) for film in lesson.films)
    run = replace(run, learnt_from=tuple(dict.fromkeys((*run.learnt_from, *uploaded))))
    row = models.keep(
        room, user, Reader(replace(learnt.loaded, run=run)), parent, f"{parent.name} + {request.name}",
        "concept.taught", concept=request.name, films=[film.id for film in lesson.films],
    )  # fmt: skip
    return {"model": row.version, "concept": request.name, "what": row.what}


routes, curating = router("models", Role.READER), router("models", Role.CURATOR)
concept_routes = router("concepts", Role.CURATOR)


@routes.get("/models/{model}/concepts")
def list_concepts(model: ModelVersion, services: Services) -> tuple[ConceptResponse, ...]:
    """List the findings that a model can point at."""
    return tuple(ConceptResponse.model_validate(concept) for concept in known_concepts(_run(services, model)))


@routes.get("/models/{model}/concepts/{concept}/prototypes")
def list_prototypes(model: ModelVersion, concept: ConceptPath, services: Services) -> tuple[PrototypeResponse, ...]:
    """List the prototypes of a finding, each with the training film nearest to it."""
    run = _run(services, model)
    if concept not in run.concepts:
        raise not_found("concept", concept)
    films: Sequence[int] = run.exemplars.film[run.concepts.index(concept)].tolist()
    return tuple(
        PrototypeResponse.model_validate(
            card.to_json() | {"exemplar": None if film < 0 else film, "grid": run.exemplars.grid}
        )
        for card, film in zip(prototypes_of(run, concept), films, strict=True)
    )


@routes.get("/models/{model}/exemplars/{exemplar}.png", response_class=Response, responses=PNG)
def exemplar(
    model: ModelVersion,
    exemplar: Annotated[
        int, PathParameter(ge=0, le=2**31 - 1, examples=[7], description="Number of a training film's picture.")
    ],
    services: Services,
) -> Response:
    """Show the thumbnail of a training film that lies nearest to a prototype."""
    thumbnails = _run(services, model).exemplars.thumbnails
    if exemplar >= len(thumbnails):
        raise not_found("exemplar", str(exemplar))
    return Response(png(thumbnails[exemplar]), media_type="image/png", headers=A_DAY)


@curating.post("/models/{model}/concepts/{concept}/discard", status_code=201)
def discard_prototypes(
    model: ModelVersion, concept: ConceptPath, body: CuratePrototypes, services: Services, user: CurrentUser
) -> ModelResponse:
    """Make a model without some prototypes of a finding. Put it to use to read with it."""
    return _curated(services, user, model, concept, body, "discarded")


@curating.post("/models/{model}/concepts/{concept}/restore", status_code=201)
def restore_prototypes(
    model: ModelVersion, concept: ConceptPath, body: CuratePrototypes, services: Services, user: CurrentUser
) -> ModelResponse:
    """Make a model with discarded prototypes of a finding restored."""
    return _curated(services, user, model, concept, body, "restored")


@concept_routes.post("/concepts", status_code=202)
def teach_concept(body: TeachConcept, services: Services, user: CurrentUser) -> JobResponse:
    """Teach a model one more finding, from a sentence, from films, or both. Follow the job; its result names the model.

    The model that it starts from does not change. Open a film with the new one to see the new map; put it to use to
    keep it, or remove it.
    """
    lesson = prepare(services.room, body)
    row = services.jobs.start(user, "concept.teach", lambda track: teach(services.room, user, lesson, track))
    return JobResponse.model_validate(row)


def _curated(
    services: Services,
    user: User,
    model: str,
    concept: str,
    body: CuratePrototypes,
    how: Literal["discarded", "restored"],
) -> ModelResponse:
    with services.room.database.reading() as session:
        parent = models.model_row(session, model)
    reader = models.loaded(services.room, parent).reader
    curated = (reader.discard if how == "discarded" else reader.restore)(concept, body.prototypes)
    row = models.keep(
        services.room, user, curated, parent, body.name or f"{parent.name}, {concept} {how}", f"prototypes.{how}",
        concept=concept, prototypes=sorted(body.prototypes),
    )  # fmt: skip
    with services.room.database.reading() as session:
        return model_response(row, models.in_use(session))


def _run(services: Services, model: str) -> Run:
    with services.room.database.reading() as session:
        row = models.model_row(session, model)
    return models.loaded(services.room, row).reader.loaded.run
