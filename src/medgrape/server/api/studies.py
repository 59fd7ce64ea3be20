"""Studies: open a film with a model, ask, correct, withdraw, redraw, undo, look back."""

import io
from datetime import UTC, datetime
from math import inf
from typing import Annotated, Literal, cast

import numpy as np
from fastapi import Path, Query, Response
from pydantic import BeforeValidator, Field

from medgrape import __version__
from medgrape.corrections.statements import BoxCorrection, ChangeKind, Correction, Rejection
from medgrape.explain.words import NOTICE
from medgrape.server import studies
from medgrape.server.accounts import Role, User
from medgrape.server.api.common import (
    A_DAY,
    HASH,
    ID,
    PNG,
    At,
    BoxRequest,
    BoxResponse,
    ConceptName,
    ConceptPath,
    Identifier,
    MapKind,
    MapSide,
    Plain,
    Probabilities,
    RequestModel,
    ResponseModel,
    StudyId,
    Version,
    When,
)
from medgrape.server.api.explanations import ExplanationResponse, draw_map
from medgrape.server.api.films import FilmInfo
from medgrape.server.decoder_pool import png
from medgrape.server.errors import not_found
from medgrape.server.models import loaded
from medgrape.server.services import CurrentUser, Services, media_response, problem_responses, router
from medgrape.server.storage.tables import StudyRow, stamp
from medgrape.server.studies import StudyView
from medgrape.server.study_history import HistoryEntry, Step, changing, first_of
from medgrape.server.study_history import redo as redo_step
from medgrape.server.study_history import undo as undo_step

_BOX: Plain = {"x1": 310, "y1": 120, "x2": 420, "y2": 260}
Reason = Annotated[str | None, Field(max_length=500, description="Why, for the log. No patient's name.")]
Revision = Annotated[
    int | None,
    Field(ge=0, le=10**6, description="Refuse (409, stale_study) unless the study is at this revision.", examples=[0]),
]


class OpenStudy(RequestModel, json_schema_extra={"examples": [{"film": ID}]}):
    """A film to open, with the model in use or another."""

    film: Identifier
    model: Version | None = None


class CheckBox(RequestModel, json_schema_extra={"examples": [{"box": _BOX, "concept": "active_tb"}]}):
    """A box, and the finding that is claimed to be inside."""

    box: BoxRequest
    concept: ConceptName


class DrawBox(RequestModel, json_schema_extra={"examples": [{"box": _BOX, "concept": "active_tb"}]}):
    """A box, and the finding that is, or is not, inside."""

    box: BoxRequest
    concept: ConceptName | None = Field(
        description="What is inside; null: look here, whatever it is (or, if negative: there is nothing at all here)."
    )
    positive: bool = Field(default=True, description="Whether it is inside, or is not.")
    confirmed: bool = Field(default=False, description="Apply it though the model sees something else there.")
    reason: Reason = None
    revision: Revision = None


class RejectConcept(RequestModel, json_schema_extra={"examples": [{"concept": "obsolete_tb"}]}):
    """A finding that is not on this film at all."""

    concept: ConceptName | None = Field(description="null: none of them is.")
    reason: Reason = None
    revision: Revision = None


class WithdrawCorrection(RequestModel, json_schema_extra={"examples": [{"revision": 2}]}):
    """Why one correction is withdrawn."""

    reason: Reason = None
    revision: Revision = None


class UndoOrRedo(RequestModel, json_schema_extra={"examples": [{"revision": 1}]}):
    """The revision to undo or redo from."""

    revision: Revision = None


class ConceptInBoxResponse(ResponseModel):
    """One finding inside a box."""

    name: str = Field(examples=["active_tb"])
    mean: float = Field(examples=[0.48])
    variance: float = Field(examples=[0.0001])


class CheckResponse(ResponseModel):
    """Result of the safety check of a box."""

    claimed: str = Field(examples=["active_tb"])
    dominant: str = Field(examples=["obsolete_tb"])
    rival: str = Field(examples=["obsolete_tb"])
    gap: float = Field(description="By how much the rival leads over the claimed finding.", examples=[0.23])
    allowed: float = Field(description="A lead up to this is no warning.", examples=[0.05])
    gate: Annotated[float | None, BeforeValidator(lambda gate: None if gate == inf else gate)] = Field(
        description="The rival is believed up to this variance; null: always.", examples=[0.002]
    )
    silenced: bool = Field(description="The lead is large enough, but the rival's prototypes disagree too much.")
    mismatch: bool
    calibrated: bool = Field(description="Whether the thresholds were learnt from boxes.")
    origin: str = Field(
        description="Where the thresholds come from, in one sentence.", examples=["Calibrated on 120 validation boxes."]
    )
    concepts: tuple[ConceptInBoxResponse, ...]
    reason: str = Field(description="In one sentence.", examples=["The model sees obsolete_tb here, not active_tb."])


class CorrectionResponse(ResponseModel):
    """A correction of the film's reading."""

    kind: Literal["box", "not_box", "reject"]
    concept: str | None = Field(examples=["active_tb"])
    box: BoxResponse | None
    confirmed: bool
    check: CheckResponse | None


class StudySummary(ResponseModel):
    """A study in the list."""

    id: Identifier
    film: Identifier
    model: Version
    reader: str = Field(examples=["ada"])
    opened_at: When
    changed_at: When
    revision: int = Field(examples=[1])
    prediction: Probabilities


class StudyResponse(StudySummary):
    """A study as it is now, or after fewer steps."""

    at: int = Field(description="The step that is shown; less than ``revision`` when looking back.", examples=[1])
    first_prediction: Probabilities = Field(description="Before any correction.")
    corrections: tuple[CorrectionResponse, ...]
    can_undo: bool
    can_redo: bool
    notice: str = Field(examples=["Research software, not a medical device."])


class StepResult(ResponseModel):
    """What a step did."""

    study: StudyResponse
    before: Probabilities
    after: Probabilities


class StepResponse(ResponseModel):
    """A step of a study's history."""

    step: int = Field(examples=[1])
    event: int = Field(description="Its number in the log.", examples=[17])
    at: When
    by: str = Field(examples=["ada"])
    kind: ChangeKind | Literal["undone", "redone"]
    about: ChangeKind = Field(description="What was undone or redone; else the same as ``kind``.")
    correction: CorrectionResponse = Field(description="The correction that was made, withdrawn or redrawn.")
    replaced: CorrectionResponse | None = Field(description="The correction before, if ``about`` is redrawn.")
    reason: str | None = Field(examples=["seen on the earlier film"])
    before: Probabilities
    after: Probabilities


class ExportedModel(ResponseModel):
    """The model that it was read with."""

    name: str = Field(examples=["tb"])
    version: Version
    fingerprint: str = Field(description="Of its weights.", examples=[HASH[:12]])


class ReadingResponse(ResponseModel):
    """A reading: film, model, person, what was seen, what was corrected and why."""

    notice: str = Field(examples=["Research software, not a medical device."])
    software: str = Field(examples=["medgrape 0.1.0"])
    made_at: When
    film: FilmInfo
    model: ExportedModel
    study: StudyResponse
    explanation: ExplanationResponse
    history: tuple[StepResponse, ...] = Field(description="Every step up to the one that is shown.")


def _summary(row: StudyRow, reader: str) -> StudySummary:
    return StudySummary(
        id=row.id, film=row.film_id, model=row.model, reader=reader, opened_at=stamp(row.opened_at),
        changed_at=stamp(row.changed_at), revision=row.revision, prediction=row.prediction,
    )  # fmt: skip


def study_response(view: StudyView) -> StudyResponse:
    """Describe a study as it is now, or after fewer steps."""
    state, study = view.state, view.study
    summary = _summary(view.row, view.reader).model_dump()
    shown = {"revision": max(view.row.revision, state.revision), "prediction": dict(study.prediction)}
    return StudyResponse(
        **summary | shown, at=state.revision, first_prediction=dict(first_of(study).prediction),
        corrections=tuple(_correction(correction) for correction in state.corrections),
        can_undo=bool(state.done), can_redo=bool(state.undone), notice=NOTICE,
    )  # fmt: skip


def reading_response(services: Services, user: User, view: StudyView) -> ReadingResponse:
    """Describe a study with its film, model, explanation and history."""
    manifest = loaded(services.room, view.model).reader.loaded.manifest
    steps = services.studies.history(user, view.row.id)[: view.state.revision]  # no step that came meanwhile
    return ReadingResponse(
        notice=NOTICE,
        software=f"medgrape {__version__}",
        made_at=stamp(datetime.now(UTC)),
        film=FilmInfo.model_validate(view.film),
        model=ExportedModel(name=view.model.name, version=view.model.version, fingerprint=manifest.fingerprint),
        study=study_response(view),
        explanation=ExplanationResponse.model_validate(view.study.explain().to_json()),
        history=_steps(steps),
    )


def _steps(history: list[HistoryEntry]) -> tuple[StepResponse, ...]:
    return tuple(_step(number, entry) for number, entry in enumerate(history, 1))


def _step(number: int, entry: HistoryEntry) -> StepResponse:
    event, change, payload = entry.event, entry.change, entry.event.payload
    return StepResponse(
        step=number, event=event.seq, at=event.at, by=event.actor,
        kind=cast(ChangeKind, event.kind.removeprefix("study.")), about=change.kind,
        correction=_correction(change.correction),
        replaced=None if change.replaced is None else _correction(change.replaced), reason=payload.get("reason"),
        before=_ranked(payload["prediction_before"]), after=_ranked(payload["prediction_after"]),
    )  # fmt: skip


def _correction(correction: Correction) -> CorrectionResponse:
    if isinstance(correction, Rejection):
        return CorrectionResponse(kind="reject", concept=correction.concept, box=None, confirmed=False, check=None)
    return CorrectionResponse(
        kind="box" if correction.positive else "not_box",
        concept=correction.concept,
        box=BoxResponse.model_validate(correction.box),
        confirmed=correction.confirmed,
        check=None if correction.check is None else CheckResponse.model_validate(correction.check),
    )


def _ranked(probabilities: dict[str, float]) -> dict[str, float]:
    """Sort the likeliest first; the log sorts by name."""
    return dict(sorted(probabilities.items(), key=lambda pair: -pair[1]))


routes = router("studies", Role.READER)
RAW = media_response("application/octet-stream", "Rows by columns of float32, as NumPy's .npy.")


@routes.post(
    "/studies", status_code=201, responses={200: {"model": StudyResponse, "description": "You had opened it before."}}
)
def open_study(body: OpenStudy, services: Services, user: CurrentUser, response: Response) -> StudyResponse:
    """Open a film with a model. A new study is made, or one's own returned exactly as it was left."""
    view, new = services.studies.open(user, body.film, body.model)
    response.status_code = 201 if new else 200
    return study_response(view)


@routes.get("/studies")
def list_studies(
    services: Services,
    user: CurrentUser,
    film: Annotated[str | None, Query(pattern="^[0-9a-f]{16}$", description="Only of this film.")] = None,
) -> tuple[StudySummary, ...]:
    """List one's studies, or everybody's for a curator, the last changed first; at most 200."""
    with services.room.database.reading() as session:
        return tuple(_summary(row, reader) for row, reader in studies.studies_of(session, user, film))


@routes.get("/studies/{study}")
def get_study(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> StudyResponse:
    """Get a study as it is now, or after fewer steps."""
    return study_response(services.studies.get(user, study, at))


@routes.get("/studies/{study}/explanation")
def explanation(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> ExplanationResponse:
    """Explain what the model saw: findings with maps, the training films behind them, and the head's attention."""
    return ExplanationResponse.model_validate(services.studies.get(user, study, at).study.explain().to_json())


@routes.get("/studies/{study}/evidence.png", response_class=Response, responses=PNG)
def evidence(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> Response:
    """Show the evidence as one picture, as medgrape read --save draws it."""
    from medgrape.explain.render import draw  # matplotlib and its fonts are slow to import

    explained = services.studies.get(user, study, at).study.explain()
    with services.room.decoder_pool.render_slots:
        picture = png(np.asarray(draw(explained)))
    return Response(picture, media_type="image/png", headers=_cached(at))


@routes.get("/studies/{study}/maps/{concept}.png", response_class=Response, responses=PNG)
def map_picture(
    study: StudyId, concept: ConceptPath, services: Services, user: CurrentUser, kind: MapKind = "mean",
    side: MapSide = 1024, at: At = None,
) -> Response:  # fmt: skip
    """Show a finding's map, clear where nothing is seen, to lay over the film."""
    picture = draw_map(services.room, services.studies.get(user, study, at).study, concept, kind, side)
    return Response(picture, media_type="image/png", headers=_cached(at))


@routes.get("/studies/{study}/maps/{concept}.npy", response_class=Response, responses=RAW)
def raw_map(
    study: StudyId, concept: ConceptPath, services: Services, user: CurrentUser, kind: MapKind = "mean", at: At = None
) -> Response:
    """Get a finding's map as numbers, one for each patch."""
    seen = services.studies.get(user, study, at).study.evidence
    if concept not in seen.concepts:
        raise not_found("concept", concept)
    maps = seen.mean if kind == "mean" else seen.disagreement
    out = io.BytesIO()
    np.save(out, maps[seen.concepts.index(concept)].numpy(), allow_pickle=False)
    return Response(out.getvalue(), media_type="application/octet-stream", headers=_cached(at))


@routes.post("/studies/{study}/check")
def check(study: StudyId, body: CheckBox, services: Services, user: CurrentUser) -> CheckResponse:
    """Check whether the model sees a finding inside a box. Nothing is changed, and nothing written to the log."""
    return CheckResponse.model_validate(services.studies.get(user, study).study.check(body.box.to_box(), body.concept))


@routes.post("/studies/{study}/boxes", responses=problem_responses(409))
def draw_box(study: StudyId, body: DrawBox, services: Services, user: CurrentUser) -> StepResult:
    """Apply a box. An unconfirmed mismatch answers 409 with the check, and changes nothing."""
    drawn = BoxCorrection(body.box.to_box(), body.concept, body.positive)
    step = changing(lambda before: before.correct(drawn, confirmed=body.confirmed), body.reason)
    return _take(services, user, study, step, body.revision)


@routes.post("/studies/{study}/rejections", responses=problem_responses(409))
def reject(study: StudyId, body: RejectConcept, services: Services, user: CurrentUser) -> StepResult:
    """Say that a finding is not on the film."""
    return _take(
        services, user, study, changing(lambda before: before.reject(body.concept), body.reason), body.revision
    )


CorrectionNumber = Annotated[
    int, Path(ge=0, le=10**6, examples=[0], description="Number of a correction in force, from 0.")
]


@routes.post("/studies/{study}/corrections/{number}/withdraw", responses=problem_responses(409))
def withdraw(
    study: StudyId, number: CorrectionNumber, body: WithdrawCorrection, services: Services, user: CurrentUser
) -> StepResult:
    """Withdraw one correction, not only the last; those after it move up by one number."""
    return _take(services, user, study, changing(lambda before: before.withdraw(number), body.reason), body.revision)


@routes.post("/studies/{study}/corrections/{number}/redraw", responses=problem_responses(409))
def redraw(
    study: StudyId, number: CorrectionNumber, body: DrawBox, services: Services, user: CurrentUser
) -> StepResult:
    """Replace one box by another. An unconfirmed mismatch answers 409 with the check, and changes nothing."""
    box = body.box.to_box()
    step = changing(
        lambda before: before.redraw(number, box, body.concept, positive=body.positive, confirmed=body.confirmed),
        body.reason,
    )
    return _take(services, user, study, step, body.revision)


@routes.post("/studies/{study}/undo", responses=problem_responses(409))
def undo(study: StudyId, body: UndoOrRedo, services: Services, user: CurrentUser) -> StepResult:
    """Undo the last step, whatever it did."""
    return _take(services, user, study, undo_step, body.revision)


@routes.post("/studies/{study}/redo", responses=problem_responses(409))
def redo(study: StudyId, body: UndoOrRedo, services: Services, user: CurrentUser) -> StepResult:
    """Redo the step that was undone last."""
    return _take(services, user, study, redo_step, body.revision)


@routes.get("/studies/{study}/history")
def history(study: StudyId, services: Services, user: CurrentUser) -> tuple[StepResponse, ...]:
    """List every step of a study: user, when, what, with which check and effect. ``?at=`` looks back at each."""
    return _steps(services.studies.history(user, study))


def _take(services: Services, user: User, study: str, step: Step, revision: int | None) -> StepResult:
    before, after = services.studies.take(user, study, step, revision)
    return StepResult(study=study_response(after), before=before.row.prediction, after=dict(after.study.prediction))


def _cached(at: int | None) -> dict[str, str] | None:
    """Let browsers keep a study after so many steps; the present one may change."""
    return None if at is None else A_DAY
