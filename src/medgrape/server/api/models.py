"""Models: list, describe, put to use, remove, compare two on a film."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from medgrape.runs.checkpoint import SafetyRule
from medgrape.server import models
from medgrape.server.accounts import Role
from medgrape.server.api.common import (
    FilmId,
    Identifier,
    ModelVersion,
    Plain,
    Probabilities,
    ResponseModel,
    VarianceGate,
    Version,
    When,
)
from medgrape.server.films import film_row
from medgrape.server.services import CurrentUser, Services, problem_responses, router
from medgrape.server.storage.tables import ModelRow


class ModelResponse(ResponseModel):
    """A model that the server knows."""

    version: Version
    name: str = Field(examples=["tbx11k"])
    in_use: bool = Field(description="Whether it reads films unless a request names another.")
    made_here: bool
    parent: Version | None
    what: str = Field(description="How it was made.", examples=["Learnt cavity from 1 film (1 box)."])
    added_at: When
    added_by: str = Field(examples=["server"])


class SafetyRuleResponse(ResponseModel):
    """Thresholds of the model's safety check."""

    calibrated: bool = Field(description="Whether the thresholds were learnt from boxes for all findings.")
    origin: str = Field(description="Origin of the thresholds.", examples=["Calibrated on 120 validation boxes."])
    leads: dict[str, float] = Field(description="Largest lead without a warning.", examples=[{"active_tb": 0.05}])
    gate: VarianceGate
    unbelieved: tuple[str, ...] = Field(description="Findings without training films; they never lead.", examples=[()])


class ModelCard(ModelResponse):
    """A model, how it is built, and what it was trained on."""

    fingerprint: str = Field(description="Hash of its weights.", examples=["0f3a9c5d7e21"])
    classes: tuple[str, ...] = Field(examples=[("healthy", "sick_non_tb", "active_tb")])
    calibrated: bool = Field(description="Whether the safety check was calibrated on boxes.")
    safety: Plain | None = Field(description="Its thresholds.", examples=[{"eta": 0.05}])
    safety_rule: SafetyRuleResponse
    concepts: int = Field(description="Number of findings.", examples=[3])
    prototypes: int = Field(description="Number per finding, with discarded ones.", examples=[100])
    head: str = Field(description="Name of the classification head.", examples=["gat"])
    backbone: str = Field(examples=["efficientnet_lite0"])
    input_size: int = Field(description="Films are resized to a square of this side.", examples=[224])
    grid: tuple[int, int] = Field(description="Rows and columns of patches on a film.", examples=[(7, 7)])
    data_set: Plain = Field(description="Training data.", examples=[{"name": "tbx11k", "fingerprint": "0f3a"}])
    metrics: Plain = Field(description="Figures on validation films.", examples=[{"macro_auc": 0.97}])
    changes: tuple[str, ...] = Field(description="Since training.", examples=[("Learnt cavity from 1 film (1 box).",)])


class ComparedConcept(ResponseModel):
    """A finding in two models; null for a model without it."""

    name: str = Field(examples=["active_tb"])
    scores: tuple[float | None, float | None] = Field(examples=[(0.72, 0.68)])
    strengths: tuple[float | None, float | None] = Field(examples=[(2.1, 1.8)])
    peaks: tuple[Plain | None, Plain | None] = Field(description="In film pixels.", examples=[({"x": 9, "y": 4}, None)])


class Comparison(ResponseModel):
    """Two models on one uncorrected film."""

    film: Identifier
    models: tuple[Version, Version]
    predictions: tuple[Probabilities, Probabilities]
    concepts: tuple[ComparedConcept, ...]


def model_response(row: ModelRow, in_use: str | None) -> ModelResponse:
    """Describe a model, given the version of the model in use."""
    return ModelResponse(**row.columns(), in_use=row.version == in_use)


routes, curating = router("models", Role.READER), router("models", Role.CURATOR)
OtherModel = Annotated[str, Query(pattern="^[0-9a-f]{16}$", description="A model's version.")]


@routes.get("/models")
def list_models(services: Services) -> tuple[ModelResponse, ...]:
    """List the models, the oldest first."""
    with services.room.database.reading() as session:
        in_use = models.in_use(session)
        return tuple(model_response(row, in_use) for row in models.models(session))


@routes.get("/models/{model}")
def get_model(model: ModelVersion, services: Services) -> ModelCard:
    """Describe a model: how it is built, what it was trained on, and its safety check."""
    row, reader = models.find_model(services.room, model)
    with services.room.database.reading() as session:
        in_use = models.in_use(session)
    loaded, run = reader.loaded, reader.loaded.run
    rule = SafetyRule.of(run)
    leads = {name: rule.lead(name) for name in run.concepts.names}
    unbelieved = [name for name in run.concepts.names if name in rule.untrained]
    return ModelCard(
        **model_response(row, in_use).model_dump(), fingerprint=loaded.manifest.fingerprint, classes=run.classes,
        calibrated=run.safety is not None, safety=None if run.safety is None else run.safety.to_json(),
        safety_rule=SafetyRuleResponse(
            calibrated=rule.calibrated, origin=rule.origin, gate=rule.gate, leads=leads, unbelieved=tuple(unbelieved)
        ),
        concepts=len(run.concepts), prototypes=run.config.model.prototypes, head=run.config.model.head,
        backbone=run.config.backbone.name, input_size=run.config.preprocessing.size, grid=run.exemplars.grid,
        data_set=dict(loaded.manifest.dataset), metrics=run.metrics,
        changes=tuple(change.what for change in run.changes),
    )  # fmt: skip


@curating.post("/models/{model}/use")
def use_model(model: ModelVersion, services: Services, user: CurrentUser) -> ModelResponse:
    """Make this the model in use. Studies keep the model that they were opened with."""
    row = models.put_to_use(services.room, user, model)
    services.background_reader.catch_up()
    return model_response(row, row.version)


@curating.delete("/models/{model}", status_code=204, responses=problem_responses(409))
def remove_model(model: ModelVersion, services: Services, user: CurrentUser) -> None:
    """Remove a model that was made here, is not in use and has no studies."""
    models.remove(services.room, user, model)


@routes.get("/films/{film}/comparison")
def compare(film: FilmId, one: OtherModel, other: OtherModel, services: Services) -> Comparison:
    """Compare two models on an uncorrected film."""
    with services.room.database.reading() as session:
        row = film_row(session, film)
        pair = models.model_row(session, one), models.model_row(session, other)
    first, second = (services.studies.uncorrected(row, model) for model in pair)
    names = dict.fromkeys((*first.run.concepts.names, *second.run.concepts.names))
    left, right = (
        {concept["name"]: concept for concept in study.explain().to_json()["concepts"]} for study in (first, second)
    )

    def values(name: str, key: str) -> tuple[Any, Any]:
        return left.get(name, {}).get(key), right.get(name, {}).get(key)

    concepts = [
        ComparedConcept(
            name=name, scores=values(name, "score"), strengths=values(name, "strength"), peaks=values(name, "peak")
        )
        for name in names
    ]
    predictions = (dict(first.prediction), dict(second.prediction))
    return Comparison(film=film, models=(one, other), predictions=predictions, concepts=tuple(concepts))
