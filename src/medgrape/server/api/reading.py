"""A complete reading: film, model, study, explanation and history in one response."""

from datetime import UTC, datetime

from pydantic import Field

from medgrape import __version__
from medgrape.explain.words import NOTICE
from medgrape.server.accounts import User
from medgrape.server.api.common import HASH, ResponseModel, Version, When
from medgrape.server.api.explanations import ExplanationResponse
from medgrape.server.api.films import FilmInfo
from medgrape.server.api.studies import StepResponse, StudyResponse, history_response, study_response
from medgrape.server.models import loaded
from medgrape.server.services import Services
from medgrape.server.storage.tables import stamp
from medgrape.server.studies import StudyView


class ExportedModel(ResponseModel):
    """The model of a study."""

    name: str = Field(examples=["tb"])
    version: Version
    fingerprint: str = Field(description="Hash of its weights.", examples=[HASH[:12]])


class ReadingResponse(ResponseModel):
    """A reading: film, model, reader, explanation, and corrections with reasons."""

    notice: str = Field(examples=["Research software, not a medical device."])
    software: str = Field(examples=["medgrape 0.1.0"])
    made_at: When
    film: FilmInfo
    model: ExportedModel
    study: StudyResponse
    explanation: ExplanationResponse
    history: tuple[StepResponse, ...] = Field(description="Every step up to the one shown.")


def reading_response(services: Services, user: User, view: StudyView) -> ReadingResponse:
    """Return the reading at the step that ``view`` shows."""
    manifest = loaded(services.room, view.model).reader.loaded.manifest
    steps = services.studies.history(user, view.row.id)[: view.state.revision]  # no step written meanwhile
    return ReadingResponse(
        notice=NOTICE, software=f"medgrape {__version__}", made_at=stamp(datetime.now(UTC)),
        film=FilmInfo.model_validate(view.film),
        model=ExportedModel(name=view.model.name, version=view.model.version, fingerprint=manifest.fingerprint),
        study=study_response(view), history=history_response(steps),
        explanation=ExplanationResponse.model_validate(view.study.explain().to_json()),
    )  # fmt: skip
