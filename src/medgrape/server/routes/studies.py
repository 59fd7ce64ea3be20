"""Studies: open a film with a model, ask, correct, withdraw, redraw, undo, look back."""

import io
from typing import Annotated

import numpy as np
from fastapi import Query, Response

from medgrape.feedback.correction import BoxCorrection, Rejection
from medgrape.geometry import Box
from medgrape.server import showing, studies
from medgrape.server.desk import Desk, Who, problems, produces, router
from medgrape.server.problems import not_found
from medgrape.server.reading.steps import Standing
from medgrape.server.routes.films import A_DAY, PNG
from medgrape.server.routes.params import At, Concept, CorrectionNumber, Kind, MapSide, StudyId
from medgrape.server.schemas.common import BoxAsked
from medgrape.server.schemas.explanations import ExplanationTold
from medgrape.server.schemas.studies import (
    CheckBox,
    CheckTold,
    DrawBox,
    OpenStudy,
    RejectConcept,
    StepBack,
    StepTold,
    StudyListed,
    StudyMoved,
    StudyTold,
    WithdrawCorrection,
)
from medgrape.server.security.roles import Role
from medgrape.server.stepping import REDO, UNDO, correcting, redrawing, withdrawing
from medgrape.server.studies import Sitting
from medgrape.server.telling import step_told, study_listed, study_told

routes = router("studies", Role.READER)
RAW = produces("application/octet-stream", "Rows by columns of float32, as NumPy's .npy.")


@routes.post(
    "/studies", status_code=201, responses={200: {"model": StudyTold, "description": "You had opened it before."}}
)
def open_study(asked: OpenStudy, desk: Desk, who: Who, response: Response) -> StudyTold:
    """Open a film with a model. One's study of it is made, or found again exactly as it was left."""
    sitting, new = desk.studies.open(who, asked.film, asked.model)
    response.status_code = 201 if new else 200
    return study_told(sitting)


@routes.get("/studies")
def list_studies(
    desk: Desk,
    who: Who,
    film: Annotated[str | None, Query(pattern="^[0-9a-f]{16}$", description="Only of this film.")] = None,
) -> tuple[StudyListed, ...]:
    """List one's studies, or everybody's for a curator, the last changed first; at most 200."""
    with desk.room.database.reading() as session:
        return tuple(study_listed(row, name) for row, name in studies.studies_of(session, who, film))


@routes.get("/studies/{study}")
def get_study(study: StudyId, desk: Desk, who: Who, at: At = None) -> StudyTold:
    """Tell where a study stands, or stood."""
    return study_told(desk.studies.get(who, study, at))


@routes.get("/studies/{study}/explanation")
def explanation(study: StudyId, desk: Desk, who: Who, at: At = None) -> ExplanationTold:
    """Tell what the model saw and why: findings with maps, the training films behind them, who listened to whom."""
    return ExplanationTold.model_validate(desk.studies.get(who, study, at).study.explain().to_json())


@routes.get("/studies/{study}/evidence.png", response_class=Response, responses=PNG)
def evidence(study: StudyId, desk: Desk, who: Who, at: At = None) -> Response:
    """Show the evidence as one picture, as medgrape read --save draws it."""
    shown = showing.evidence_picture(desk.room, desk.studies.get(who, study, at).study)
    return Response(shown, media_type="image/png", headers=_kept(at))


@routes.get("/studies/{study}/maps/{concept}.png", response_class=Response, responses=PNG)
def map_picture(
    study: StudyId, concept: Concept, desk: Desk, who: Who, kind: Kind = "mean", side: MapSide = 1024, at: At = None
) -> Response:
    """Show a finding's map, clear where nothing is seen, to lay over the film."""
    shown = showing.map_picture(desk.room, desk.studies.get(who, study, at).study, concept, kind, side)
    return Response(shown, media_type="image/png", headers=_kept(at))


@routes.get("/studies/{study}/maps/{concept}.npy", response_class=Response, responses=RAW)
def raw_map(study: StudyId, concept: Concept, desk: Desk, who: Who, kind: Kind = "mean", at: At = None) -> Response:
    """Hand out a finding's map as numbers, one for each patch."""
    seen = desk.studies.get(who, study, at).study.evidence
    if concept not in seen.concepts:
        raise not_found("concept", concept)
    maps = seen.mean if kind == "mean" else seen.disagreement
    out = io.BytesIO()
    np.save(out, maps[seen.concepts.index(concept)].numpy(), allow_pickle=False)
    return Response(out.getvalue(), media_type="application/octet-stream", headers=_kept(at))


@routes.post("/studies/{study}/check")
def check(study: StudyId, asked: CheckBox, desk: Desk, who: Who) -> CheckTold:
    """Ask whether the model sees a finding inside a box. Nothing is changed, and nothing written down."""
    return CheckTold.model_validate(desk.studies.get(who, study).study.check(_box(asked.box), asked.concept).to_json())


@routes.post("/studies/{study}/boxes", responses=problems(409))
def draw_box(study: StudyId, drawn: DrawBox, desk: Desk, who: Who) -> StudyMoved:
    """Apply a box; an unconfirmed mismatch answers 409 with the check, and changes nothing."""
    step = correcting(_correction(drawn), confirmed=drawn.confirmed, reason=drawn.reason)
    return _moved(desk.studies.take(who, study, step, drawn.revision))


@routes.post("/studies/{study}/rejections", responses=problems(409))
def reject(study: StudyId, asked: RejectConcept, desk: Desk, who: Who) -> StudyMoved:
    """Say that a finding is not on the film."""
    step = correcting(Rejection(asked.concept), confirmed=False, reason=asked.reason)
    return _moved(desk.studies.take(who, study, step, asked.revision))


@routes.post("/studies/{study}/corrections/{number}/withdraw", responses=problems(409))
def withdraw(study: StudyId, number: CorrectionNumber, asked: WithdrawCorrection, desk: Desk, who: Who) -> StudyMoved:
    """Take one correction back, not only the last; those after it move up by one number."""
    return _moved(desk.studies.take(who, study, withdrawing(number, asked.reason), asked.revision))


@routes.post("/studies/{study}/corrections/{number}/redraw", responses=problems(409))
def redraw(study: StudyId, number: CorrectionNumber, drawn: DrawBox, desk: Desk, who: Who) -> StudyMoved:
    """Put another box in the place of one; an unconfirmed mismatch answers 409 with the check, and changes nothing."""
    step = redrawing(number, _correction(drawn), confirmed=drawn.confirmed, reason=drawn.reason)
    return _moved(desk.studies.take(who, study, step, drawn.revision))


@routes.post("/studies/{study}/undo", responses=problems(409))
def undo(study: StudyId, asked: StepBack, desk: Desk, who: Who) -> StudyMoved:
    """Take the last step back, whatever it did."""
    return _moved(desk.studies.take(who, study, UNDO, asked.revision))


@routes.post("/studies/{study}/redo", responses=problems(409))
def redo(study: StudyId, asked: StepBack, desk: Desk, who: Who) -> StudyMoved:
    """Take the step again that was undone last."""
    return _moved(desk.studies.take(who, study, REDO, asked.revision))


@routes.get("/studies/{study}/history")
def history(study: StudyId, desk: Desk, who: Who) -> tuple[StepTold, ...]:
    """Tell every step of a study: who, when, what, with which check, and what it did. ``?at=`` looks back at each."""
    desk.studies.get(who, study)  # refuses whoever may not see it
    with desk.room.database.reading() as session:
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
