"""Models: list them, choose the one in use, compare two, look into one."""

from typing import Annotated

from fastapi import Query, Response

from medgrape.explain.explanation import Explanation
from medgrape.feedback.curation import prototypes_of
from medgrape.server import model_rows, models
from medgrape.server.desk import Desk, Desks, Who, problems, router
from medgrape.server.films import film_row
from medgrape.server.problems import not_found
from medgrape.server.reading.darkroom import png
from medgrape.server.reading.shelf import Loaded
from medgrape.server.routes.films import A_DAY, PNG
from medgrape.server.routes.params import Concept, Exemplar, FilmId, ModelVersion
from medgrape.server.schemas.models import (
    ComparedConcept,
    Comparison,
    ConceptTold,
    Curate,
    ModelCard,
    ModelTold,
    PrototypeTold,
)
from medgrape.server.security.roles import Role
from medgrape.server.storage.tables import ModelRow
from medgrape.server.teaching import curate
from medgrape.server.telling import model_card, model_told
from medgrape.vocabulary.new_concept import known_concepts

routes, curating = router("models", Role.READER), router("models", Role.CURATOR)
Other = Annotated[str, Query(pattern="^[0-9a-f]{16}$", description="A model's version.")]


@routes.get("/models")
def list_models(desk: Desk) -> tuple[ModelTold, ...]:
    """List the models that the server knows, the oldest first."""
    with desk.room.database.reading() as session:
        used = model_rows.in_use(session)
        return tuple(model_told(row, used) for row in model_rows.models(session))


@routes.get("/models/{model}")
def get_model(model: ModelVersion, desk: Desk) -> ModelCard:
    """Tell all there is to say about a model."""
    with desk.room.database.reading() as session:
        row, used = model_rows.model_row(session, model), model_rows.in_use(session)
    return model_card(row, used, models.loaded(desk.room, row).reader.loaded)


@curating.post("/models/{model}/use")
def use_model(model: ModelVersion, desk: Desk, who: Who) -> ModelTold:
    """Open films with this model from now on. Studies that were opened keep theirs."""
    row = models.put_to_use(desk.room, who, model)
    desk.first_sights.catch_up()
    return model_told(row, row.version)


@curating.delete("/models/{model}", status_code=204, responses=problems(409))
def remove_model(model: ModelVersion, desk: Desk, who: Who) -> None:
    """Remove a model that was made here, is not in use, and that no film was read with."""
    models.remove(desk.room, who, model)


@routes.get("/models/{model}/concepts")
def list_concepts(model: ModelVersion, desk: Desk) -> tuple[ConceptTold, ...]:
    """List the findings that a model can point at."""
    run = _loaded(desk, model).reader.loaded.run
    return tuple(ConceptTold.model_validate(one.to_json()) for one in known_concepts(run))


@routes.get("/models/{model}/concepts/{concept}/prototypes")
def list_prototypes(model: ModelVersion, concept: Concept, desk: Desk) -> tuple[PrototypeTold, ...]:
    """List what a finding may look like, each with the training film behind it."""
    run = _loaded(desk, model).reader.loaded.run
    if concept not in run.concepts:
        raise not_found("concept", concept)
    films = run.exemplars.film[run.concepts.index(concept)]
    return tuple(
        PrototypeTold.model_validate(
            card.to_json() | {"exemplar": None if films[card.number] < 0 else int(films[card.number]),
                              "grid": run.exemplars.grid}
        )
        for card in prototypes_of(run, concept)
    )  # fmt: skip


@routes.get("/models/{model}/exemplars/{exemplar}.png", response_class=Response, responses=PNG)
def exemplar(model: ModelVersion, exemplar: Exemplar, desk: Desk) -> Response:
    """Show a training film that a prototype reminds of, small."""
    pictures = _loaded(desk, model).reader.loaded.run.exemplars.thumbnails
    if exemplar >= len(pictures):
        raise not_found("exemplar", str(exemplar))
    return Response(png(pictures[exemplar]), media_type="image/png", headers=A_DAY)


@curating.post("/models/{model}/concepts/{concept}/discard", status_code=201)
def discard_prototypes(model: ModelVersion, concept: Concept, asked: Curate, desk: Desk, who: Who) -> ModelTold:
    """Make a model that goes by the finding's other prototypes only. Put it to use to read with it."""
    return _kept(desk, curate(desk.room, who, model, concept, asked.prototypes, asked.name, "discarded"))


@curating.post("/models/{model}/concepts/{concept}/restore", status_code=201)
def restore_prototypes(model: ModelVersion, concept: Concept, asked: Curate, desk: Desk, who: Who) -> ModelTold:
    """Make a model that goes by discarded prototypes again."""
    return _kept(desk, curate(desk.room, who, model, concept, asked.prototypes, asked.name, "restored"))


@routes.get("/films/{film}/comparison")
def compare(film: FilmId, one: Other, other: Other, desk: Desk) -> Comparison:
    """Compare what two models see on a film that nobody has corrected."""
    with desk.room.database.reading() as session:
        row = film_row(session, film)
        pair = model_rows.model_row(session, one), model_rows.model_row(session, other)
    first, second = (desk.studies.first_sight(row, model) for model in pair)
    told = first.explain(), second.explain()
    names = dict.fromkeys((*first.run.concepts.names, *second.run.concepts.names))
    return Comparison(
        film=film, models=(one, other), predictions=(dict(first.prediction), dict(second.prediction)),
        concepts=tuple(_compared(name, *told) for name in names),
    )  # fmt: skip


def _compared(name: str, *told: Explanation) -> ComparedConcept:
    rows = [{one["name"]: one for one in explained.to_json()["concepts"]}.get(name, {}) for explained in told]
    first, second = rows
    return ComparedConcept(
        name=name,
        scores=(first.get("score"), second.get("score")),
        strengths=(first.get("strength"), second.get("strength")),
        peaks=(first.get("peak"), second.get("peak")),
    )


def _kept(desk: Desks, row: ModelRow) -> ModelTold:
    with desk.room.database.reading() as session:
        return model_told(row, model_rows.in_use(session))


def _loaded(desk: Desks, model: str) -> Loaded:
    with desk.room.database.reading() as session:
        row = model_rows.model_row(session, model)
    return models.loaded(desk.room, row)
