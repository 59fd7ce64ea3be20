"""Findings that are learnt after training."""

from math import inf
from typing import Annotated

from fastapi import Query, Response
from pydantic import ConfigDict, Field

from medgrape.explain.explanation import Explanation
from medgrape.geometry import Box
from medgrape.runs.checkpoint import LoadedRun, Run, SafetyRule
from medgrape.server import models
from medgrape.server.api.common import (
    ID,
    LINE,
    Asked,
    BoxAsked,
    Concept,
    Exemplar,
    FilmId,
    Identifier,
    ModelVersion,
    Plain,
    Shares,
    Told,
    Version,
    When,
)
from medgrape.server.api.films import A_DAY, PNG
from medgrape.server.api.jobs import JobTold, job_told
from medgrape.server.films import film_row
from medgrape.server.inference.decoder_pool import png
from medgrape.server.inference.model_cache import LoadedModel
from medgrape.server.problems import not_found
from medgrape.server.security.roles import Role
from medgrape.server.services import CurrentUser, ServiceContainer, Services, problem_responses, router
from medgrape.server.storage.tables import ModelRow, stamp
from medgrape.server.teaching import Lesson, curate, prepare, teach
from medgrape.vocabulary.curation import prototypes_of
from medgrape.vocabulary.new_concept import known_concepts


class ModelTold(Told):
    """A model that the server knows."""

    version: Version
    name: str = Field(examples=["tbx11k"])
    in_use: bool = Field(description="Whether films are opened with it unless somebody asks for another.")
    made_here: bool
    parent: Version | None
    what: str = Field(description="How it came about.", examples=["Learnt cavity from 1 film (1 box)."])
    added_at: When
    added_by: str = Field(examples=["server"])


class SafetyRuleTold(Told):
    """From when on the model's safety check warns."""

    calibrated: bool = Field(description="Whether it was learnt from boxes, for every finding that the model knows.")
    origin: str = Field(
        description="Where the thresholds come from, in one sentence.",
        examples=["The thresholds were learnt from boxes on films like these."],
    )
    leads: dict[str, float] = Field(
        description="By how much another finding must lead over each finding.", examples=[{"active_tb": 0.05}]
    )
    gate: float | None = Field(
        description="A leading finding is believed up to this variance; null: always.", examples=[0.0002]
    )
    unbelieved: tuple[str, ...] = Field(description="Findings that no film has taught; they never lead.", examples=[()])


class ModelCard(ModelTold):
    """All there is to say about one."""

    fingerprint: str = Field(description="Of its weights.", examples=["0f3a9c5d7e21"])
    classes: tuple[str, ...] = Field(examples=[("healthy", "sick_non_tb", "active_tb")])
    calibrated: bool = Field(description="Whether the safety check was calibrated on boxes.")
    safety: Plain | None = Field(description="Its thresholds.", examples=[{"eta": 0.05}])
    safety_rule: SafetyRuleTold
    concepts: int = Field(description="How many findings it can point at.", examples=[3])
    prototypes: int = Field(description="Of each finding, discarded ones too.", examples=[100])
    head: str = Field(description="What judges by the prototypes' answers.", examples=["gat"])
    backbone: str = Field(examples=["efficientnet_lite0"])
    input_size: int = Field(description="Side in pixels of the square that a film is stretched to.", examples=[224])
    grid: tuple[int, int] = Field(description="Rows and columns of patches on a film.", examples=[(7, 7)])
    data_set: Plain = Field(
        description="Name and checksum of what it was trained on.", examples=[{"name": "tbx11k", "fingerprint": "0f3a"}]
    )
    metrics: Plain = Field(description="Figures on validation films, from training.", examples=[{"macro_auc": 0.97}])
    changes: tuple[str, ...] = Field(
        description="What was done to it since training, the first change first.",
        examples=[("Learnt cavity from 1 film (1 box).",)],
    )


class ConceptTold(Told):
    """A finding that a model can point at."""

    name: str = Field(examples=["active_tb"])
    title: str = Field(examples=["Active tuberculosis"])
    description: str = Field(examples=["Patchy or nodular opacities in the upper lobes, often with cavities."])
    trained: bool = Field(description="Else it was learnt later.")
    judged: bool = Field(description="Whether the classes depend on it.")
    taught_by_films: bool = Field(description="False where only its description is known.")


class PrototypeTold(Told):
    """One of the things that a finding may look like."""

    concept: str = Field(examples=["active_tb"])
    number: int = Field(examples=[3])
    kept: bool
    film: str | None = Field(description="The training film with the patch nearest to it.", examples=["tb-000012-00"])
    exemplar: int | None = Field(description="Where to find its picture: .../exemplars/{exemplar}.png.", examples=[7])
    patch: tuple[int, int] | None = Field(description="Row and column of that patch.", examples=[(2, 4)])
    grid: tuple[int, int] = Field(description="Rows and columns of patches on that film.", examples=[(7, 7)])
    similarity: float | None = Field(description="Of that patch to it.", examples=[0.83])
    absent: float = Field(description="Its usual score on films without the finding.", examples=[0.21])
    typical: float = Field(description="How much it is like the finding's other prototypes.", examples=[0.64])
    raises: str | None = Field(description="The class that gains most by it.", examples=["active_tb"])
    gain: float | None = Field(description="By how much it does.", examples=[0.12])


class Curate(Asked):
    """Discard prototypes, or restore them."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"prototypes": [3, 7]}]})

    prototypes: list[int] = Field(min_length=1, max_length=1000)
    name: str | None = Field(
        default=None, min_length=1, max_length=128, pattern=LINE, description="What to call the new model."
    )


class ExampleAsked(Asked):
    """A film that shows the new finding, perhaps with a box around it."""

    film: Identifier
    box: BoxAsked | None = None


class TeachConcept(Asked):
    """Teach a model one more finding."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "name": "cavity",
                    "description": "Thick-walled lucency in the upper lobe.",
                    "examples": [{"film": ID, "box": {"x1": 310, "y1": 120, "x2": 420, "y2": 260}}],
                }
            ]
        },
    )

    name: str = Field(min_length=1, max_length=63, examples=["cavity"])
    description: str = Field(min_length=1, max_length=1000)
    title: str | None = Field(default=None, min_length=1, max_length=128, pattern=LINE)
    examples: list[ExampleAsked] = Field(default=[], max_length=50)
    model: Version | None = Field(default=None, description="Which model learns it; the one in use unless told.")
    seed: int = Field(default=0, ge=0, le=4294967295)


class ComparedConcept(Told):
    """One finding as two models see it; null where a model does not know it."""

    name: str = Field(examples=["active_tb"])
    scores: tuple[float | None, float | None] = Field(examples=[(0.72, 0.68)])
    strengths: tuple[float | None, float | None] = Field(examples=[(2.1, 1.8)])
    peaks: tuple[Plain | None, Plain | None] = Field(
        description="Where each sees it most, in film pixels.", examples=[({"x": 365, "y": 190}, None)]
    )


class Comparison(Told):
    """Two models on one film that nobody has corrected."""

    film: Identifier
    models: tuple[Version, Version]
    predictions: tuple[Shares, Shares]
    concepts: tuple[ComparedConcept, ...]


def model_told(row: ModelRow, in_use: str | None) -> ModelTold:
    """A model."""
    return ModelTold(
        version=row.version, name=row.name, in_use=row.version == in_use, made_here=row.made_here, parent=row.parent,
        what=row.what, added_at=stamp(row.added_at), added_by=row.added_by,
    )  # fmt: skip


def model_card(row: ModelRow, in_use: str | None, found: LoadedRun) -> ModelCard:
    """All there is to say about a model."""
    run = found.run
    return ModelCard(
        **model_told(row, in_use).model_dump(),
        fingerprint=found.manifest.fingerprint,
        classes=run.classes,
        calibrated=run.safety is not None,
        safety=None if run.safety is None else run.safety.to_json(),
        safety_rule=_rule_told(run),
        concepts=len(run.concepts),
        prototypes=run.config.model.prototypes,
        head=run.config.model.head,
        backbone=run.config.backbone.name,
        input_size=run.config.preprocessing.size,
        grid=run.exemplars.grid,
        data_set=dict(found.manifest.dataset),
        metrics=run.metrics,
        changes=tuple(change.what for change in run.changes),
    )


def _rule_told(run: Run) -> SafetyRuleTold:
    rule = SafetyRule.of(run)
    return SafetyRuleTold(
        calibrated=rule.calibrated,
        origin=rule.origin,
        leads={name: rule.lead(name) for name in run.concepts.names},
        gate=None if rule.gate == inf else rule.gate,
        unbelieved=tuple(name for name in run.concepts.names if name in rule.unbelieved),
    )


routes, curating = router("models", Role.READER), router("models", Role.CURATOR)
Other = Annotated[str, Query(pattern="^[0-9a-f]{16}$", description="A model's version.")]


@routes.get("/models")
def list_models(services: Services) -> tuple[ModelTold, ...]:
    """List the models that the server knows, the oldest first."""
    with services.room.database.reading() as session:
        used = models.in_use(session)
        return tuple(model_told(row, used) for row in models.models(session))


@routes.get("/models/{model}")
def get_model(model: ModelVersion, services: Services) -> ModelCard:
    """Tell all there is to say about a model."""
    with services.room.database.reading() as session:
        row, used = models.model_row(session, model), models.in_use(session)
    return model_card(row, used, models.loaded(services.room, row).reader.loaded)


@curating.post("/models/{model}/use")
def use_model(model: ModelVersion, services: Services, user: CurrentUser) -> ModelTold:
    """Open films with this model from now on. Studies that were opened keep theirs."""
    row = models.put_to_use(services.room, user, model)
    services.background_reader.catch_up()
    return model_told(row, row.version)


@curating.delete("/models/{model}", status_code=204, responses=problem_responses(409))
def remove_model(model: ModelVersion, services: Services, user: CurrentUser) -> None:
    """Remove a model that was made here, is not in use, and that no film was read with."""
    models.remove(services.room, user, model)


@routes.get("/models/{model}/concepts")
def list_concepts(model: ModelVersion, services: Services) -> tuple[ConceptTold, ...]:
    """List the findings that a model can point at."""
    run = _loaded(services, model).reader.loaded.run
    return tuple(ConceptTold.model_validate(one.to_json()) for one in known_concepts(run))


@routes.get("/models/{model}/concepts/{concept}/prototypes")
def list_prototypes(model: ModelVersion, concept: Concept, services: Services) -> tuple[PrototypeTold, ...]:
    """List what a finding may look like, each with the training film behind it."""
    run = _loaded(services, model).reader.loaded.run
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
def exemplar(model: ModelVersion, exemplar: Exemplar, services: Services) -> Response:
    """Show a training film that a prototype reminds of, small."""
    pictures = _loaded(services, model).reader.loaded.run.exemplars.thumbnails
    if exemplar >= len(pictures):
        raise not_found("exemplar", str(exemplar))
    return Response(png(pictures[exemplar]), media_type="image/png", headers=A_DAY)


@curating.post("/models/{model}/concepts/{concept}/discard", status_code=201)
def discard_prototypes(
    model: ModelVersion, concept: Concept, asked: Curate, services: Services, user: CurrentUser
) -> ModelTold:
    """Make a model that goes by the finding's other prototypes only. Put it to use to read with it."""
    return _kept(services, curate(services.room, user, model, concept, asked.prototypes, asked.name, "discarded"))


@curating.post("/models/{model}/concepts/{concept}/restore", status_code=201)
def restore_prototypes(
    model: ModelVersion, concept: Concept, asked: Curate, services: Services, user: CurrentUser
) -> ModelTold:
    """Make a model that goes by discarded prototypes again."""
    return _kept(services, curate(services.room, user, model, concept, asked.prototypes, asked.name, "restored"))


@routes.get("/films/{film}/comparison")
def compare(film: FilmId, one: Other, other: Other, services: Services) -> Comparison:
    """Compare what two models see on a film that nobody has corrected."""
    with services.room.database.reading() as session:
        row = film_row(session, film)
        pair = models.model_row(session, one), models.model_row(session, other)
    first, second = (services.studies.first_sight(row, model) for model in pair)
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


def _kept(services: ServiceContainer, row: ModelRow) -> ModelTold:
    with services.room.database.reading() as session:
        return model_told(row, models.in_use(session))


def _loaded(services: ServiceContainer, model: str) -> LoadedModel:
    with services.room.database.reading() as session:
        row = models.model_row(session, model)
    return models.loaded(services.room, row)


concept_routes = router("concepts", Role.CURATOR)


@concept_routes.post("/concepts", status_code=202)
def teach_concept(asked: TeachConcept, services: Services, user: CurrentUser) -> JobTold:
    """Teach a model one more finding, from a sentence, from films, or both. Follow the job; its result names the model.

    The model that it starts from stays as it is. Open a film with the new one to see the new map; put it to use to
    keep it, or remove it.
    """
    examples = tuple(
        (one.film, None if one.box is None else Box(one.box.x1, one.box.y1, one.box.x2, one.box.y2))
        for one in asked.examples
    )
    lesson = Lesson(asked.name, asked.description, asked.title, examples, asked.seed)
    prepared = prepare(services.room, lesson, asked.model)
    return job_told(
        services.jobs.start(user, "concept.teach", lambda track: teach(services.room, user, prepared, track))
    )
