"""From what the server keeps to what it tells."""

from math import inf
from typing import Literal, cast

from medgrape.explain.words import NOTICE
from medgrape.feedback.change import Change
from medgrape.feedback.correction import BoxCorrection, Correction
from medgrape.feedback.safety import SafetyRule
from medgrape.model.checkpoint import LoadedRun, Run
from medgrape.server.films import Listed
from medgrape.server.schemas.common import BoxTold
from medgrape.server.schemas.films import FilmFactsTold, FilmTold, ReadingTold
from medgrape.server.schemas.jobs import JobTold, State
from medgrape.server.schemas.log import EventTold
from medgrape.server.schemas.models import ModelCard, ModelTold, SafetyRuleTold
from medgrape.server.schemas.people import TokenTold, UserTold
from medgrape.server.schemas.studies import CheckTold, CorrectionTold, StepKind, StepTold, StudyListed, StudyTold
from medgrape.server.security.roles import Person, Role
from medgrape.server.stepping import first_of
from medgrape.server.storage.events import Event
from medgrape.server.storage.tables import JobRow, ModelRow, StudyRow, TokenRow, UserRow, stamp
from medgrape.server.studies import Sitting


def film_told(one: Listed, person: Person) -> FilmTold:
    """A film; what others made of it is for curators only."""
    film = one.film
    return FilmTold(
        id=film.id,
        arrived_at=stamp(film.arrived_at),
        arrived_by=one.arrived_by,
        facts=FilmFactsTold.model_validate(film.facts),
        sex=film.sex,
        age=film.age,
        prediction=one.prediction,
        readings=tuple(_reading_told(study, name, person) for study, name in one.readings),
    )


def _reading_told(study: StudyRow, name: str, person: Person) -> ReadingTold:
    may = study.reader_id == person.id or person.role.covers(Role.CURATOR)
    return ReadingTold(
        reader=name,
        model=study.model,
        changed_at=stamp(study.changed_at),
        study=study.id if may else None,
        corrections=study.revision if may else None,
        prediction=study.prediction if may else None,
    )


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
    body = event.told
    return StepTold(
        step=number, event=event.seq, at=event.at, by=event.actor,
        kind=cast(StepKind, event.kind.removeprefix("study.")), about=change.kind,
        correction=correction_told(change.correction),
        replaced=None if change.replaced is None else correction_told(change.replaced), reason=body.get("reason"),
        before=_ranked(body["prediction_before"]), after=_ranked(body["prediction_after"]),
    )  # fmt: skip


def _ranked(shares: dict[str, float]) -> dict[str, float]:
    return dict(sorted(shares.items(), key=lambda one: -one[1]))


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


def job_told(row: JobRow) -> JobTold:
    """A job."""
    return JobTold(
        id=row.id, kind=row.kind, state=cast(State, row.state), progress=row.progress, news=row.news, result=row.result,
        created_at=stamp(row.created_at),
    )  # fmt: skip


def event_told(event: Event) -> EventTold:
    """An event."""
    return EventTold(
        seq=event.seq, at=event.at, actor=event.actor, kind=event.kind, film=event.film, study=event.study,
        model=event.model, body=event.told, previous=event.previous, hash=event.hash, seal=event.seal,
    )  # fmt: skip


def user_told(row: UserRow) -> UserTold:
    """A user."""
    locked = None if row.locked_until is None else stamp(row.locked_until)
    return UserTold(
        name=row.name, role=Role(row.role), disabled=row.disabled, has_password=row.password is not None,
        locked_until=locked, added_at=stamp(row.added_at),
    )  # fmt: skip


def token_told(row: TokenRow, user: str) -> TokenTold:
    """A token, without its secret."""
    return TokenTold(
        id=row.id, user=user, name=row.name, role=Role(row.role), created_at=stamp(row.created_at),
        expires_at=None if row.expires_at is None else stamp(row.expires_at),
        revoked_at=None if row.revoked_at is None else stamp(row.revoked_at),
    )  # fmt: skip
