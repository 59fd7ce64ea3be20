"""Studies: open a film with a model, ask, correct, withdraw, redraw, undo, look back."""

import io
from math import inf
from typing import Annotated, Literal, cast

import numpy as np
from fastapi import Query, Response
from pydantic import BeforeValidator, ConfigDict, Field

from medgrape.corrections.statements import BoxCorrection, Change, ChangeKind, Correction, Rejection
from medgrape.explain.words import NOTICE
from medgrape.geometry import Box
from medgrape.server import rendering, studies
from medgrape.server.api.common import (
    ID,
    Asked,
    At,
    BoxAsked,
    BoxTold,
    Concept,
    ConceptName,
    CorrectionNumber,
    Identifier,
    Kind,
    MapSide,
    Plain,
    Shares,
    StudyId,
    Told,
    Version,
    When,
)
from medgrape.server.api.explanations import ExplanationTold
from medgrape.server.api.films import A_DAY, PNG
from medgrape.server.problems import not_found
from medgrape.server.security.roles import Role
from medgrape.server.services import CurrentUser, Services, media_response, problem_responses, router
from medgrape.server.storage.events import Event
from medgrape.server.storage.tables import StudyRow, stamp
from medgrape.server.studies import Sitting
from medgrape.server.study_history import REDO, UNDO, Standing, correcting, first_of, redrawing, withdrawing

StepKind = ChangeKind | Literal["undone", "redone"]
_BOX: Plain = {"x1": 310, "y1": 120, "x2": 420, "y2": 260}
Revision = Field(
    default=None, ge=0, le=10**6, description="Refuse (409, stale_study) unless the study still stands here.",
    examples=[0],
)  # fmt: skip


class OpenStudy(Asked):
    """Open a film, with the model in use or another."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"film": ID}]})

    film: Identifier
    model: Version | None = None


class CheckBox(Asked):
    """Ask what the model sees inside a box."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"box": _BOX, "concept": "active_tb"}]})

    box: BoxAsked
    concept: ConceptName = Field(description="What you say is inside.")


class DrawBox(Asked):
    """Say that something is, or is not, inside a box."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"box": _BOX, "concept": "active_tb"}]})

    box: BoxAsked
    concept: ConceptName | None = Field(
        description="What is inside; null: look here, whatever it is (or, if negative: there is nothing at all here)."
    )
    positive: bool = Field(default=True, description="Whether it is inside, or is not.")
    confirmed: bool = Field(default=False, description="Apply it though the model sees something else there.")
    reason: str | None = Field(default=None, max_length=500, description="Why, for the log. No patient's name.")
    revision: int | None = Revision


class RejectConcept(Asked):
    """Say that a finding is not on this film at all."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"concept": "obsolete_tb"}]})

    concept: ConceptName | None = Field(description="null: none of them is.")
    reason: str | None = Field(default=None, max_length=500, description="Why, for the log. No patient's name.")
    revision: int | None = Revision


class WithdrawCorrection(Asked):
    """Take one correction back, whenever it was made."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"revision": 2}]})

    reason: str | None = Field(default=None, max_length=500, description="Why, for the log. No patient's name.")
    revision: int | None = Revision


class StepBack(Asked):
    """Undo or redo."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"revision": 1}]})

    revision: int | None = Revision


class ConceptInBoxTold(Told):
    """One finding inside a box."""

    name: str = Field(examples=["active_tb"])
    mean: float = Field(examples=[0.48])
    variance: float = Field(examples=[0.0001])


class CheckTold(Told):
    """Does the model see inside the box what you say is there?"""

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
    concepts: tuple[ConceptInBoxTold, ...]
    reason: str = Field(description="In one sentence.", examples=["The model sees obsolete_tb here, not active_tb."])


class CorrectionTold(Told):
    """Something that a person said about the film."""

    kind: Literal["box", "not_box", "reject"]
    concept: str | None = Field(examples=["active_tb"])
    box: BoxTold | None
    confirmed: bool
    check: CheckTold | None


class StudyListed(Told):
    """A study in the list."""

    id: Identifier
    film: Identifier
    model: Version
    reader: str = Field(examples=["ada"])
    opened_at: When
    changed_at: When
    revision: int = Field(examples=[1])
    prediction: Shares


class StudyTold(StudyListed):
    """A study as it stands."""

    at: int = Field(
        description="The step that this answer tells of; less than ``revision`` when looking back.", examples=[1]
    )
    first_prediction: Shares = Field(description="Before any correction.")
    corrections: tuple[CorrectionTold, ...]
    can_undo: bool
    can_redo: bool
    notice: str = Field(examples=["Research software, not a medical device."])


class StudyMoved(Told):
    """What a step did."""

    study: StudyTold
    before: Shares
    after: Shares


class StepTold(Told):
    """A step that was taken in a study."""

    step: int = Field(examples=[1])
    event: int = Field(description="Its number in the log.", examples=[17])
    at: When
    by: str = Field(examples=["ada"])
    kind: StepKind
    about: ChangeKind = Field(description="What was undone or redone; else the same as ``kind``.")
    correction: CorrectionTold = Field(
        description="What was said, withdrawn or redrawn; of an undone or redone step likewise."
    )
    replaced: CorrectionTold | None = Field(description="In the place of which other, if ``about`` is redrawn.")
    reason: str | None = Field(examples=["seen on the earlier film"])
    before: Shares
    after: Shares


def study_told(sitting: Sitting) -> StudyTold:
    """A study as it stands, or stood."""
    row, now, study = sitting.row, sitting.standing, sitting.study
    return StudyTold(
        id=row.id,
        film=row.film_id,
        model=row.model,
        reader=sitting.reader,
        opened_at=stamp(row.opened_at),
        changed_at=stamp(row.changed_at),
        revision=max(row.revision, now.revision),
        at=now.revision,
        prediction=dict(study.prediction),
        first_prediction=dict(first_of(study).prediction),
        corrections=tuple(correction_told(one) for one in now.corrections),
        can_undo=bool(now.done),
        can_redo=bool(now.undone),
        notice=NOTICE,
    )


def study_listed(row: StudyRow, reader: str) -> StudyListed:
    """A study in the list."""
    return StudyListed(
        id=row.id, film=row.film_id, model=row.model, reader=reader, opened_at=stamp(row.opened_at),
        changed_at=stamp(row.changed_at), revision=row.revision, prediction=row.prediction,
    )  # fmt: skip


def correction_told(one: Correction) -> CorrectionTold:
    """A correction."""
    if not isinstance(one, BoxCorrection):
        return CorrectionTold(kind="reject", concept=one.concept, box=None, confirmed=False, check=None)
    check = None if one.check is None else CheckTold.model_validate(one.check)
    box = BoxTold.model_validate(one.box)
    kind: Literal["box", "not_box"] = "box" if one.positive else "not_box"
    return CorrectionTold(kind=kind, concept=one.concept, box=box, confirmed=one.confirmed, check=check)


def step_told(number: int, event: Event, change: Change) -> StepTold:
    """A step of a study's history: the change that it made, took back or brought back."""
    body = event.payload
    return StepTold(
        step=number, event=event.seq, at=event.at, by=event.actor,
        kind=cast(StepKind, event.kind.removeprefix("study.")), about=change.kind,
        correction=correction_told(change.correction),
        replaced=None if change.replaced is None else correction_told(change.replaced), reason=body.get("reason"),
        before=_ranked(body["prediction_before"]), after=_ranked(body["prediction_after"]),
    )  # fmt: skip


def _ranked(shares: dict[str, float]) -> dict[str, float]:
    return dict(sorted(shares.items(), key=lambda one: -one[1]))


routes = router("studies", Role.READER)
RAW = media_response("application/octet-stream", "Rows by columns of float32, as NumPy's .npy.")


@routes.post(
    "/studies", status_code=201, responses={200: {"model": StudyTold, "description": "You had opened it before."}}
)
def open_study(asked: OpenStudy, services: Services, user: CurrentUser, response: Response) -> StudyTold:
    """Open a film with a model. One's study of it is made, or found again exactly as it was left."""
    sitting, new = services.studies.open(user, asked.film, asked.model)
    response.status_code = 201 if new else 200
    return study_told(sitting)


@routes.get("/studies")
def list_studies(
    services: Services,
    user: CurrentUser,
    film: Annotated[str | None, Query(pattern="^[0-9a-f]{16}$", description="Only of this film.")] = None,
) -> tuple[StudyListed, ...]:
    """List one's studies, or everybody's for a curator, the last changed first; at most 200."""
    with services.room.database.reading() as session:
        return tuple(study_listed(row, name) for row, name in studies.studies_of(session, user, film))


@routes.get("/studies/{study}")
def get_study(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> StudyTold:
    """Tell where a study stands, or stood."""
    return study_told(services.studies.get(user, study, at))


@routes.get("/studies/{study}/explanation")
def explanation(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> ExplanationTold:
    """Tell what the model saw and why: findings with maps, the training films behind them, who listened to whom."""
    return ExplanationTold.model_validate(services.studies.get(user, study, at).study.explain().to_json())


@routes.get("/studies/{study}/evidence.png", response_class=Response, responses=PNG)
def evidence(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> Response:
    """Show the evidence as one picture, as medgrape read --save draws it."""
    shown = rendering.evidence_picture(services.room, services.studies.get(user, study, at).study)
    return Response(shown, media_type="image/png", headers=_kept(at))


@routes.get("/studies/{study}/maps/{concept}.png", response_class=Response, responses=PNG)
def map_picture(
    study: StudyId,
    concept: Concept,
    services: Services,
    user: CurrentUser,
    kind: Kind = "mean",
    side: MapSide = 1024,
    at: At = None,
) -> Response:
    """Show a finding's map, clear where nothing is seen, to lay over the film."""
    shown = rendering.map_picture(services.room, services.studies.get(user, study, at).study, concept, kind, side)
    return Response(shown, media_type="image/png", headers=_kept(at))


@routes.get("/studies/{study}/maps/{concept}.npy", response_class=Response, responses=RAW)
def raw_map(
    study: StudyId, concept: Concept, services: Services, user: CurrentUser, kind: Kind = "mean", at: At = None
) -> Response:
    """Hand out a finding's map as numbers, one for each patch."""
    seen = services.studies.get(user, study, at).study.evidence
    if concept not in seen.concepts:
        raise not_found("concept", concept)
    maps = seen.mean if kind == "mean" else seen.disagreement
    out = io.BytesIO()
    np.save(out, maps[seen.concepts.index(concept)].numpy(), allow_pickle=False)
    return Response(out.getvalue(), media_type="application/octet-stream", headers=_kept(at))


@routes.post("/studies/{study}/check")
def check(study: StudyId, asked: CheckBox, services: Services, user: CurrentUser) -> CheckTold:
    """Ask whether the model sees a finding inside a box. Nothing is changed, and nothing written down."""
    return CheckTold.model_validate(
        services.studies.get(user, study).study.check(_box(asked.box), asked.concept).to_json()
    )


@routes.post("/studies/{study}/boxes", responses=problem_responses(409))
def draw_box(study: StudyId, drawn: DrawBox, services: Services, user: CurrentUser) -> StudyMoved:
    """Apply a box; an unconfirmed mismatch answers 409 with the check, and changes nothing."""
    step = correcting(_correction(drawn), confirmed=drawn.confirmed, reason=drawn.reason)
    return _moved(services.studies.take(user, study, step, drawn.revision))


@routes.post("/studies/{study}/rejections", responses=problem_responses(409))
def reject(study: StudyId, asked: RejectConcept, services: Services, user: CurrentUser) -> StudyMoved:
    """Say that a finding is not on the film."""
    step = correcting(Rejection(asked.concept), confirmed=False, reason=asked.reason)
    return _moved(services.studies.take(user, study, step, asked.revision))


@routes.post("/studies/{study}/corrections/{number}/withdraw", responses=problem_responses(409))
def withdraw(
    study: StudyId, number: CorrectionNumber, asked: WithdrawCorrection, services: Services, user: CurrentUser
) -> StudyMoved:
    """Take one correction back, not only the last; those after it move up by one number."""
    return _moved(services.studies.take(user, study, withdrawing(number, asked.reason), asked.revision))


@routes.post("/studies/{study}/corrections/{number}/redraw", responses=problem_responses(409))
def redraw(
    study: StudyId, number: CorrectionNumber, drawn: DrawBox, services: Services, user: CurrentUser
) -> StudyMoved:
    """Put another box in the place of one; an unconfirmed mismatch answers 409 with the check, and changes nothing."""
    step = redrawing(number, _correction(drawn), confirmed=drawn.confirmed, reason=drawn.reason)
    return _moved(services.studies.take(user, study, step, drawn.revision))


@routes.post("/studies/{study}/undo", responses=problem_responses(409))
def undo(study: StudyId, asked: StepBack, services: Services, user: CurrentUser) -> StudyMoved:
    """Take the last step back, whatever it did."""
    return _moved(services.studies.take(user, study, UNDO, asked.revision))


@routes.post("/studies/{study}/redo", responses=problem_responses(409))
def redo(study: StudyId, asked: StepBack, services: Services, user: CurrentUser) -> StudyMoved:
    """Take the step again that was undone last."""
    return _moved(services.studies.take(user, study, REDO, asked.revision))


@routes.get("/studies/{study}/history")
def history(study: StudyId, services: Services, user: CurrentUser) -> tuple[StepTold, ...]:
    """Tell every step of a study: who, when, what, with which check, and what it did. ``?at=`` looks back at each."""
    services.studies.get(user, study)  # refuses whoever may not see it
    with services.room.database.reading() as session:
        events = studies.steps_of(session, study)
    steps, now = [], Standing()
    for number, event in enumerate(events, 1):
        now = now.after(event)
        steps.append(step_told(number, event, now.last(event)))
    return tuple(steps)


def _moved(steps: tuple[Sitting, Sitting]) -> StudyMoved:
    before, after = steps
    return StudyMoved(study=study_told(after), before=before.row.prediction, after=dict(after.study.prediction))


def _correction(drawn: DrawBox) -> BoxCorrection:
    return BoxCorrection(_box(drawn.box), drawn.concept, drawn.positive)


def _box(asked: BoxAsked) -> Box:
    return Box(asked.x1, asked.y1, asked.x2, asked.y2)


def _kept(at: int | None) -> dict[str, str] | None:
    """A study as it stood never changes; as it stands it may."""
    return None if at is None else A_DAY
