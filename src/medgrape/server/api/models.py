"""Models: list them, look at one, put one to use, remove one, compare two on a film."""

from math import inf
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from medgrape.explain.explanation import Explanation
from medgrape.runs.checkpoint import Run, SafetyRule
from medgrape.server import models
from medgrape.server.accounts import Role
from medgrape.server.api.common import (
    FilmId,
    Identifier,
    ModelVersion,
    Plain,
    Probabilities,
    ResponseModel,
    Version,
    When,
)
from medgrape.server.films import film_row
from medgrape.server.services import CurrentUser, Services, problem_responses, router
from medgrape.server.storage.tables import ModelRow, stamp


class ModelResponse(ResponseModel):
    """A model that the server knows."""

    version: Version
    name: str = Field(examples=["tbx11k"])
    in_use: bool = Field(description="Whether films are opened with it unless somebody asks for another.")
    made_here: bool
    parent: Version | None
    what: str = Field(description="How it came about.", examples=["Learnt cavity from 1 film (1 box)."])
    added_at: When
    added_by: str = Field(examples=["server"])


class SafetyRuleResponse(ResponseModel):
    """Thresholds of the model's safety check."""

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
    unbelieved: tuple[str, ...] = Field(description="Findings without training films; they never lead.", examples=[()])


class ModelCard(ModelResponse):
    """A model, how it is built, and what it was trained on."""

    fingerprint: str = Field(description="Of its weights.", examples=["0f3a9c5d7e21"])
    classes: tuple[str, ...] = Field(examples=[("healthy", "sick_non_tb", "active_tb")])
    calibrated: bool = Field(description="Whether the safety check was calibrated on boxes.")
    safety: Plain | None = Field(description="Its thresholds.", examples=[{"eta": 0.05}])
    safety_rule: SafetyRuleResponse
    concepts: int = Field(description="How many findings it can point at.", examples=[3])
    prototypes: int = Field(description="Of each finding, with discarded ones.", examples=[100])
    head: str = Field(description="Name of the classification head.", examples=["gat"])
    backbone: str = Field(examples=["efficientnet_lite0"])
    input_size: int = Field(description="Side in pixels of the square that a film is stretched to.", examples=[224])
    grid: tuple[int, int] = Field(description="Rows and columns of patches on a film.", examples=[(7, 7)])
    data_set: Plain = Field(
        description="Name and checksum of what it was trained on.", examples=[{"name": "tbx11k", "fingerprint": "0f3a"}]
    )
    metrics: Plain = Field(description="Figures on validation films, from training.", examples=[{"macro_auc": 0.97}])
    changes: tuple[str, ...] = Field(
        description="Changes since training, the first one first.", examples=[("Learnt cavity from 1 film (1 box).",)]
    )


class ComparedConcept(ResponseModel):
    """One finding as two models see it; null where a model does not know it."""

    name: str = Field(examples=["active_tb"])
    scores: tuple[float | None, float | None] = Field(examples=[(0.72, 0.68)])
    strengths: tuple[float | None, float | None] = Field(examples=[(2.1, 1.8)])
    peaks: tuple[Plain | None, Plain | None] = Field(
        description="Where each sees it most, in film pixels.", examples=[({"x": 365, "y": 190}, None)]
    )


class Comparison(ResponseModel):
    """Two models on one film that nobody has corrected."""

    film: Identifier
    models: tuple[Version, Version]
    predictions: tuple[Probabilities, Probabilities]
    concepts: tuple[ComparedConcept, ...]


def model_response(row: ModelRow, in_use: str | None) -> ModelResponse:
    """Describe a model, given the version of the one in use."""
    return ModelResponse(
        version=row.version, name=row.name, in_use=row.version == in_use, made_here=row.made_here, parent=row.parent,
        what=row.what, added_at=stamp(row.added_at), added_by=row.added_by,
    )  # fmt: skip


def _safety_rule(run: Run) -> SafetyRuleResponse:
    rule = SafetyRule.of(run)
    return SafetyRuleResponse(
        calibrated=rule.calibrated,
        origin=rule.origin,
        leads={name: rule.lead(name) for name in run.concepts.names},
        gate=None if rule.gate == inf else rule.gate,
        unbelieved=tuple(name for name in run.concepts.names if name in rule.untrained),
    )


routes, curating = router("models", Role.READER), router("models", Role.CURATOR)
OtherModel = Annotated[str, Query(pattern="^[0-9a-f]{16}$", description="A model's version.")]


@routes.get("/models")
def list_models(services: Services) -> tuple[ModelResponse, ...]:
    """List the models that the server knows, the oldest first."""
    with services.room.database.reading() as session:
        in_use = models.in_use(session)
        return tuple(model_response(row, in_use) for row in models.models(session))


@routes.get("/models/{model}")
def get_model(model: ModelVersion, services: Services) -> ModelCard:
    """Describe a model: how it is built, what it was trained on, and its safety check."""
    with services.room.database.reading() as session:
        row, in_use = models.model_row(session, model), models.in_use(session)
    loaded = models.loaded(services.room, row).reader.loaded
    run = loaded.run
    return ModelCard(
        **model_response(row, in_use).model_dump(),
        fingerprint=loaded.manifest.fingerprint,
        classes=run.classes,
        calibrated=run.safety is not None,
        safety=None if run.safety is None else run.safety.to_json(),
        safety_rule=_safety_rule(run),
        concepts=len(run.concepts),
        prototypes=run.config.model.prototypes,
        head=run.config.model.head,
        backbone=run.config.backbone.name,
        input_size=run.config.preprocessing.size,
        grid=run.exemplars.grid,
        data_set=dict(loaded.manifest.dataset),
        metrics=run.metrics,
        changes=tuple(change.what for change in run.changes),
    )


@curating.post("/models/{model}/use")
def use_model(model: ModelVersion, services: Services, user: CurrentUser) -> ModelResponse:
    """Open films with this model from now on. Studies that were opened keep theirs."""
    row = models.put_to_use(services.room, user, model)
    services.background_reader.catch_up()
    return model_response(row, row.version)


@curating.delete("/models/{model}", status_code=204, responses=problem_responses(409))
def remove_model(model: ModelVersion, services: Services, user: CurrentUser) -> None:
    """Remove a model that was made here, is not in use, and that no film was read with."""
    models.remove(services.room, user, model)


@routes.get("/films/{film}/comparison")
def compare(film: FilmId, one: OtherModel, other: OtherModel, services: Services) -> Comparison:
    """Compare what two models see on a film that nobody has corrected."""
    with services.room.database.reading() as session:
        row = film_row(session, film)
        pair = models.model_row(session, one), models.model_row(session, other)
    first, second = (services.studies.first_sight(row, model) for model in pair)
    seen = [_by_name(study.explain()) for study in (first, second)]
    names = dict.fromkeys((*first.run.concepts.names, *second.run.concepts.names))
    return Comparison(
        film=film, models=(one, other), predictions=(dict(first.prediction), dict(second.prediction)),
        concepts=tuple(_compared(name, *(concepts.get(name, {}) for concepts in seen)) for name in names),
    )  # fmt: skip


def _by_name(explanation: Explanation) -> dict[str, Plain]:
    return {concept["name"]: concept for concept in explanation.to_json()["concepts"]}


def _compared(name: str, first: dict[str, Any], second: dict[str, Any]) -> ComparedConcept:
    return ComparedConcept(
        name=name,
        scores=(first.get("score"), second.get("score")),
        strengths=(first.get("strength"), second.get("strength")),
        peaks=(first.get("peak"), second.get("peak")),
    )
