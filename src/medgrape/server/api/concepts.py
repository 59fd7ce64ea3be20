"""Findings of a model and their prototypes: list, discard and restore prototypes, teach a new finding."""

from dataclasses import replace
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
from medgrape.server import models
from medgrape.server.accounts import Role, User
from medgrape.server.api.common import (
    A_DAY,
    BOX,
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
from medgrape.server.storage.tables import FilmRow
from medgrape.vocabulary.curation import prototypes_of
from medgrape.vocabulary.new_concept import known_concepts, with_concept


class ConceptResponse(ResponseModel):
    """A finding of a model."""

    name: str = Field(examples=["active_tb"])
    title: str = Field(examples=["Active tuberculosis"])
    description: str = Field(examples=["Patchy or nodular opacities in the upper lobes, often with cavities."])
    trained: bool = Field(description="False: it was taught after training.")
    judged: bool = Field(description="Whether the class probabilities depend on it.")
    taught_by_films: bool = Field(description="False: the model knows its description only.")


class PrototypeResponse(ResponseModel):
    """One prototype of a finding."""

    concept: str = Field(examples=["active_tb"])
    number: int = Field(examples=[3])
    kept: bool
    film: str | None = Field(description="Training film with the nearest patch.", examples=["tb-000012-00"])
    exemplar: int | None = Field(description="Number of its picture, for .../exemplars/{exemplar}.png.", examples=[7])
    patch: tuple[int, int] | None = Field(description="Row and column of that patch.", examples=[(2, 4)])
    grid: tuple[int, int] = Field(description="Rows and columns of patches on that film.", examples=[(7, 7)])
    similarity: float | None = Field(description="Similarity of that patch and the prototype.", examples=[0.83])
    absent: float = Field(description="Typical score on films without the finding.", examples=[0.21])
    typical: float = Field(description="Similarity to the mean of the finding's prototypes.", examples=[0.64])
    raises: str | None = Field(description="The class whose probability it raises most.", examples=["active_tb"])
    gain: float | None = Field(description="By how much it raises that probability.", examples=[0.12])


class CuratePrototypes(RequestModel, json_schema_extra={"examples": [{"prototypes": [3, 7]}]}):
    """Prototypes to discard, or to restore."""

    prototypes: list[int] = Field(min_length=1, max_length=1000)
    name: str | None = Field(None, min_length=1, max_length=128, pattern=LINE, description="Name of the new model.")


class ExampleFilm(RequestModel):
    """A film with the new finding, with or without a box around it."""

    film: Identifier
    box: BoxRequest | None = None


_EXAMPLE = {"film": ID, "box": BOX}
_LESSON = {"name": "cavity", "description": "Thick-walled lucency in the upper lobe.", "examples": [_EXAMPLE]}


class TeachConcept(RequestModel, json_schema_extra={"examples": [_LESSON]}):
    """A new finding: its description and example films."""

    name: str = Field(min_length=1, max_length=63, examples=["cavity"])
    description: str = Field(min_length=1, max_length=1000)
    title: str | None = Field(default=None, min_length=1, max_length=128, pattern=LINE)
    examples: list[ExampleFilm] = Field(default=[], max_length=50)
    model: Version | None = Field(default=None, description="Model to start from; default: the model in use.")
    seed: int = Field(default=0, ge=0, le=4294967295)


def teach(
    room: Room, user: User, request: TeachConcept, films: list[FilmRow], examples: list[Path | tuple[Path, Box]],
    track: Track,
) -> dict[str, Any]:  # fmt: skip
    """Teach the finding and store the new model; return the result of the job."""
    parent, reader = models.find_model(room, request.model)
    learnt = reader.learn(
        request.name, request.description, examples, title=request.title, seed=request.seed, track=track
    )
    list(track([None], "writing the model", 1))  # last chance to cancel the job
    # The run lists its training films by checksum: those of the stored files, and here also of the uploaded files.
    run, uploaded = learnt.loaded.run, (fingerprint(film.content) for film in films)
    run = replace(run, learnt_from=tuple(dict.fromkeys((*run.learnt_from, *uploaded))))
    row = models.store_model(
        room, user, Reader(replace(learnt.loaded, run=run)), parent, f"{parent.name} + {request.name}",
        "concept.taught", {"concept": request.name, "films": [film.id for film in films]},
    )  # fmt: skip
    return {"model": row.version, "concept": request.name, "what": row.what}


routes, curating = router("models", Role.READER), router("models", Role.CURATOR)
concept_routes = router("concepts", Role.CURATOR)


@routes.get("/models/{model}/concepts")
def list_concepts(model: ModelVersion, services: Services) -> tuple[ConceptResponse, ...]:
    """List the findings of a model."""
    return tuple(
        ConceptResponse.model_validate(concept)
        for concept in known_concepts(models.find_model(services.room, model)[1].loaded.run)
    )


@routes.get("/models/{model}/concepts/{concept}/prototypes")
def list_prototypes(model: ModelVersion, concept: ConceptPath, services: Services) -> tuple[PrototypeResponse, ...]:
    """List the prototypes of a finding with their nearest training films."""
    run = models.find_model(services.room, model)[1].loaded.run
    if concept not in run.concepts:
        raise not_found("concept", concept)
    films: list[int] = run.exemplars.film[run.concepts.index(concept)].tolist()
    about = [{"exemplar": None if film < 0 else film, "grid": run.exemplars.grid} for film in films]
    cards = [card.to_json() for card in prototypes_of(run, concept)]
    return tuple(PrototypeResponse.model_validate(card | more) for card, more in zip(cards, about, strict=True))


@routes.get("/models/{model}/exemplars/{exemplar}.png", response_class=Response, responses=PNG)
def exemplar(
    model: ModelVersion,
    exemplar: Annotated[int, PathParameter(ge=0, le=2**31 - 1, examples=[7], description="Number of the picture.")],
    services: Services,
) -> Response:
    """Show a thumbnail of the training film nearest to a prototype."""
    thumbnails = models.find_model(services.room, model)[1].loaded.run.exemplars.thumbnails
    if exemplar >= len(thumbnails):
        raise not_found("exemplar", str(exemplar))
    return Response(png(thumbnails[exemplar]), media_type="image/png", headers=A_DAY)


@curating.post("/models/{model}/concepts/{concept}/discard", status_code=201)
def discard_prototypes(
    model: ModelVersion, concept: ConceptPath, body: CuratePrototypes, services: Services, user: CurrentUser
) -> ModelResponse:
    """Make a model without some prototypes of a finding. Put it to use to read films with it."""
    return _curate(services, user, model, concept, body, "discarded")


@curating.post("/models/{model}/concepts/{concept}/restore", status_code=201)
def restore_prototypes(
    model: ModelVersion, concept: ConceptPath, body: CuratePrototypes, services: Services, user: CurrentUser
) -> ModelResponse:
    """Make a model with discarded prototypes of a finding restored."""
    return _curate(services, user, model, concept, body, "restored")


@concept_routes.post("/concepts", status_code=202)
def teach_concept(body: TeachConcept, services: Services, user: CurrentUser) -> JobResponse:
    """Teach a finding from a description, from films, or both. The result of the job names the new model.

    The model that it starts from does not change. Open a film with the new model to see its map; then put it to use,
    or remove it.
    """
    room = services.room
    parent, reader = models.find_model(room, body.model)
    with_concept(reader.concepts, Concept(body.name, body.title or body.name.replace("_", " "), body.description))
    with room.database.reading() as session:
        films = [film_row(session, example.film) for example in body.examples]
    paths = [room.folder.film(film.id, film.suffix) for film in films]
    boxes = [None if example.box is None else example.box.to_box() for example in body.examples]
    examples = [path if box is None else (path, box) for path, box in zip(paths, boxes, strict=True)]
    request = body.model_copy(update={"model": parent.version})  # another model may be put to use meanwhile
    row = services.jobs.start(user, "concept.teach", lambda track: teach(room, user, request, films, examples, track))
    return JobResponse.model_validate(row)


def _curate(
    services: Services, user: User, model: str, concept: str, body: CuratePrototypes,
    change: Literal["discarded", "restored"],
) -> ModelResponse:  # fmt: skip
    parent, reader = models.find_model(services.room, model)
    curated = (reader.discard if change == "discarded" else reader.restore)(concept, body.prototypes)
    row = models.store_model(
        services.room, user, curated, parent, body.name or f"{parent.name}, {concept} {change}", f"prototypes.{change}",
        {"concept": concept, "prototypes": sorted(body.prototypes)},
    )  # fmt: skip
    with services.room.database.reading() as session:
        return model_response(row, models.in_use(session))
