"""Studies: open a film with a model, check and correct, undo and redo, look back."""

from typing import Annotated, Literal, cast

from fastapi import Path, Query, Response
from pydantic import Field

from medgrape.corrections.statements import BoxCorrection, ChangeKind, Correction, Rejection
from medgrape.explain.words import NOTICE
from medgrape.server import studies
from medgrape.server.accounts import Role, User
from medgrape.server.api.common import (
    BOX,
    ID,
    At,
    BoxRequest,
    BoxResponse,
    ConceptName,
    Identifier,
    Probabilities,
    RequestModel,
    ResponseModel,
    StudyId,
    VarianceGate,
    Version,
    When,
)
from medgrape.server.services import CurrentUser, Services, problem_responses, router
from medgrape.server.studies import StudyView
from medgrape.server.study_history import HistoryEntry, Step, make_change
from medgrape.server.study_history import redo as redo_step
from medgrape.server.study_history import undo as undo_step

Revision = Annotated[
    int | None, Field(ge=0, le=10**6, description="Fails with 409 if the study is at another revision.", examples=[0])
]


class StepRequest(RequestModel):
    """A step in a study."""

    reason: str | None = Field(None, max_length=500, description="Reason, for the log. Do not name the patient.")
    revision: Revision = None


class OpenStudy(RequestModel, json_schema_extra={"examples": [{"film": ID}]}):
    """A film to open, with the model in use or another model."""

    film: Identifier
    model: Version | None = None


class CheckBox(RequestModel, json_schema_extra={"examples": [{"box": BOX, "concept": "active_tb"}]}):
    """A box, and the finding claimed to be inside."""

    box: BoxRequest
    concept: ConceptName


class DrawBox(StepRequest, json_schema_extra={"examples": [{"box": BOX, "concept": "active_tb"}]}):
    """A box, and the finding that is or is not inside."""

    box: BoxRequest
    concept: ConceptName | None = Field(description="null: all findings; a positive box then claims nothing.")
    positive: bool = Field(default=True, description="True: the finding is inside; false: it is not.")
    confirmed: bool = Field(default=False, description="Apply the box even if the model sees another finding inside.")


class RejectConcept(StepRequest, json_schema_extra={"examples": [{"concept": "obsolete_tb"}]}):
    """A finding that is not on this film."""

    concept: ConceptName | None = Field(description="null: no finding is on this film.")


class WithdrawCorrection(StepRequest, json_schema_extra={"examples": [{"revision": 2}]}):
    """The reason to withdraw a correction."""


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
    gap: float = Field(description="Lead of the rival over the claimed finding.", examples=[0.23])
    allowed: float = Field(description="Largest lead without a warning.", examples=[0.05])
    gate: VarianceGate
    silenced: bool = Field(description="No warning because the rival's variance is too large.")
    mismatch: bool
    calibrated: bool = Field(description="Whether the thresholds were learnt from boxes.")
    origin: str = Field(description="Origin of the thresholds.", examples=["Calibrated on 120 validation boxes."])
    concepts: tuple[ConceptInBoxResponse, ...]
    reason: str = Field(
        description="The result in one sentence.", examples=["The model sees obsolete_tb here, not active_tb."]
    )


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

    at: int = Field(description="The step shown; less than ``revision`` for a past state.", examples=[1])
    first_prediction: Probabilities = Field(description="Before any correction.")
    corrections: tuple[CorrectionResponse, ...]
    can_undo: bool
    can_redo: bool
    notice: str = Field(examples=["Research software, not a medical device."])


class StepResult(ResponseModel):
    """The effect of a step."""

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
    about: ChangeKind = Field(description="The change undone or redone; else the same as ``kind``.")
    correction: CorrectionResponse = Field(description="The correction made, withdrawn or redrawn.")
    replaced: CorrectionResponse | None = Field(description="The former correction, if ``about`` is redrawn.")
    reason: str | None = Field(examples=["seen on the earlier film"])
    before: Probabilities
    after: Probabilities


def study_response(view: StudyView) -> StudyResponse:
    """Describe a study as it is now, or after fewer steps."""
    state = view.state
    shown = {"revision": max(view.row.revision, state.revision), "prediction": dict(view.study.prediction)}
    return StudyResponse(
        **view.row.columns() | shown, film=view.row.film_id, reader=view.reader, at=state.revision,
        first_prediction=dict(view.first.prediction), corrections=tuple(map(_correction, state.corrections)),
        can_undo=bool(state.done), can_redo=bool(state.undone), notice=NOTICE,
    )  # fmt: skip


def history_response(entries: list[HistoryEntry]) -> tuple[StepResponse, ...]:
    """Describe the steps of a study."""
    steps = []
    for number, entry in enumerate(entries, 1):
        event, change, payload = entry.event, entry.change, entry.event.payload
        # The log sorts classes by name; responses begin with the likeliest one.
        before, after = (
            dict(sorted(payload[key].items(), key=lambda item: -item[1]))
            for key in ("prediction_before", "prediction_after")
        )
        step = StepResponse(
            step=number, event=event.seq, at=event.at, by=event.actor,
            kind=cast(ChangeKind, event.kind.removeprefix("study.")), about=change.kind,
            correction=_correction(change.correction),
            replaced=None if change.replaced is None else _correction(change.replaced),
            reason=payload.get("reason"), before=before, after=after,
        )  # fmt: skip
        steps.append(step)
    return tuple(steps)


def _correction(correction: Correction) -> CorrectionResponse:
    if isinstance(correction, Rejection):
        return CorrectionResponse(kind="reject", concept=correction.concept, box=None, confirmed=False, check=None)
    kind = "box" if correction.positive else "not_box"
    return CorrectionResponse.model_validate(vars(correction) | {"kind": kind})


routes = router("studies", Role.READER)


@routes.post(
    "/studies", status_code=201, responses={200: {"model": StudyResponse, "description": "You opened it before."}}
)
def open_study(body: OpenStudy, services: Services, user: CurrentUser, response: Response) -> StudyResponse:
    """Open a film with a model: make a study, or return the user's study as it was left."""
    view, new = services.studies.open(user, body.film, body.model)
    response.status_code = 201 if new else 200
    return study_response(view)


@routes.get("/studies")
def list_studies(
    services: Services, user: CurrentUser,
    film: Annotated[str | None, Query(pattern="^[0-9a-f]{16}$", description="Only studies of this film.")] = None,
) -> tuple[StudySummary, ...]:  # fmt: skip
    """List your studies, or all for a curator, the last changed first; at most 200."""
    with services.room.database.reading() as session:
        rows = studies.studies_of(session, user, film)
    return tuple(StudySummary(**row.columns(), film=row.film_id, reader=reader) for row, reader in rows)


@routes.get("/studies/{study}")
def get_study(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> StudyResponse:
    """Get a study as it is now, or after fewer steps."""
    return study_response(services.studies.get(user, study, at))


@routes.post("/studies/{study}/check")
def check(study: StudyId, body: CheckBox, services: Services, user: CurrentUser) -> CheckResponse:
    """Check whether the model sees a finding inside a box. Changes nothing and writes no event."""
    return CheckResponse.model_validate(services.studies.get(user, study).study.check(body.box.to_box(), body.concept))


@routes.post("/studies/{study}/boxes", responses=problem_responses(409))
def draw_box(study: StudyId, body: DrawBox, services: Services, user: CurrentUser) -> StepResult:
    """Apply a box. An unconfirmed mismatch returns 409 with the check and changes nothing."""
    drawn = BoxCorrection(body.box.to_box(), body.concept, body.positive)
    step = make_change(lambda before: before.correct(drawn, confirmed=body.confirmed), body.reason)
    return _take(services, user, study, step, body.revision)


@routes.post("/studies/{study}/rejections", responses=problem_responses(409))
def reject(study: StudyId, body: RejectConcept, services: Services, user: CurrentUser) -> StepResult:
    """Reject a finding: it is not on the film."""
    step = make_change(lambda before: before.reject(body.concept), body.reason)
    return _take(services, user, study, step, body.revision)


CorrectionNumber = Annotated[int, Path(ge=0, le=10**6, examples=[0], description="Index of a correction, from 0.")]


@routes.post("/studies/{study}/corrections/{number}/withdraw", responses=problem_responses(409))
def withdraw(
    study: StudyId, number: CorrectionNumber, body: WithdrawCorrection, services: Services, user: CurrentUser
) -> StepResult:
    """Withdraw any correction; the numbers of later ones decrease by one."""
    step = make_change(lambda before: before.withdraw(number), body.reason)
    return _take(services, user, study, step, body.revision)


@routes.post("/studies/{study}/corrections/{number}/redraw", responses=problem_responses(409))
def redraw(
    study: StudyId, number: CorrectionNumber, body: DrawBox, services: Services, user: CurrentUser
) -> StepResult:
    """Replace a box. An unconfirmed mismatch returns 409 with the check and changes nothing."""
    box, options = body.box.to_box(), {"positive": body.positive, "confirmed": body.confirmed}
    step = make_change(lambda before: before.redraw(number, box, body.concept, **options), body.reason)
    return _take(services, user, study, step, body.revision)


@routes.post("/studies/{study}/undo", responses=problem_responses(409))
def undo(study: StudyId, body: UndoOrRedo, services: Services, user: CurrentUser) -> StepResult:
    """Undo the last change."""
    return _take(services, user, study, undo_step, body.revision)


@routes.post("/studies/{study}/redo", responses=problem_responses(409))
def redo(study: StudyId, body: UndoOrRedo, services: Services, user: CurrentUser) -> StepResult:
    """Redo the change that was undone last."""
    return _take(services, user, study, redo_step, body.revision)


@routes.get("/studies/{study}/history")
def history(study: StudyId, services: Services, user: CurrentUser) -> tuple[StepResponse, ...]:
    """List the steps of a study: user, time, correction, check and effect. ``?at=`` shows the study after each."""
    return history_response(services.studies.history(user, study))


def _take(services: Services, user: User, study: str, step: Step, revision: int | None) -> StepResult:
    before, after = services.studies.take(user, study, step, revision)
    return StepResult(study=study_response(after), before=before.row.prediction, after=dict(after.study.prediction))
