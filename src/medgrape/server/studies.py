"""Studies: a film in front of a model and a person. Opened once, asked often, and after a restart as they were."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import torch
from sqlalchemy import bindparam, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from medgrape.server import metrics
from medgrape.server.films import film_row, pictured
from medgrape.server.inference.lru_cache import LRUCache
from medgrape.server.inference.model_cache import LoadedModel
from medgrape.server.models import loaded, model_row
from medgrape.server.problems import Problem, forbidden, not_found
from medgrape.server.room import Room
from medgrape.server.security.credentials import new_id
from medgrape.server.security.roles import Role, User
from medgrape.server.storage.events import Event
from medgrape.server.storage.tables import EventRow, FilmRow, ImpressionRow, ModelRow, StudyRow, UserRow
from medgrape.server.study_history import STEPS, Standing, Step, first_of, standing
from medgrape.study import ConceptMismatchError, Study

IN_MEMORY = 128 * 2**20
"""Bytes of evidence that are kept at hand."""
STUDIES = 64
"""Studies of which it is remembered where they stand."""
MOST_STEPS = 1000
_ATTEMPTS = 5


@dataclass(frozen=True)
class Sitting:
    """A study as it stands, with all that it is about."""

    row: StudyRow
    film: FilmRow
    model: ModelRow
    reader: str
    standing: Standing
    study: Study


class StudyService:
    """Where films are read."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._opened: LRUCache[tuple[str, str], Study] = LRUCache(IN_MEMORY, _weight)
        self._standing: LRUCache[str, tuple[Standing, Study]] = LRUCache(STUDIES)

    def open(self, user: User, film: str, model: str | None) -> tuple[Sitting, bool]:
        """The person's study of a film with a model, and whether it is new; the film is encoded at most once."""
        with self._room.database.reading() as session:
            film_of, model_of = film_row(session, film), model_row(session, model)
            known = _study_row(session, user, film_of, model_of)
        if known is not None:
            return self.get(user, known.id), False
        study = self.first_sight(film_of, model_of)
        now = datetime.now(UTC)
        row = StudyRow(
            id=new_id(), film_id=film, model=model_of.version, reader_id=user.id, revision=0,
            prediction=dict(study.prediction), opened_at=now, changed_at=now,
        )  # fmt: skip
        try:
            with self._room.database.writing() as session:
                film_row(session, film, lock=True)  # either may be gone by now
                model_row(session, model_of.version, lock=True)
                session.add(row)
                session.flush()
                told = {"prediction": dict(study.prediction)}
                self._room.store.record(session, user, "study.opened", film=film, study=row.id, model=row.model, **told)
        except IntegrityError:  # the same person, at the same moment, in another window
            return self.open(user, film, model)[0], False
        return Sitting(row, film_of, model_of, user.name, Standing(), study), True

    def get(self, user: User, study: str, at: int | None = None) -> Sitting:
        """A study as it stands, or as it stood after ``at`` steps; one's own, or any for a curator."""
        with self._room.database.reading() as session:
            found = session.execute(_WHOLE, {"study": study}).one_or_none()
        if found is None or not (found[0].reader_id == user.id or user.role.covers(Role.CURATOR)):
            raise not_found("study", study)
        row, film, model, reader = found
        if at is not None and not 0 <= at <= row.revision:
            raise Problem(404, "not_found", f"The study has {row.revision} steps; there is no step {at}.")
        first = self.first_sight(film, model)
        now, opened = self._stood(study, row.revision if at is None else at, first)
        return Sitting(row, film, model, reader, now, opened)

    def _stood(self, study: str, revision: int, first: Study) -> tuple[Standing, Study]:
        """Where a study stood after so many steps: from memory where it stands there now, else from the events."""
        found = self._standing.get(study)
        if found is not None and found[0].revision == revision:
            return found
        with self._room.database.reading() as session:
            now = standing(steps_of(session, study)[:revision])
        return now, first.resumed(now.corrections)

    def first_sight(self, film: FilmRow, model: ModelRow) -> Study:
        """What a model sees on a film that nobody has corrected. The backbone runs only if it never did before."""
        torch.set_num_threads(1)  # of this thread: many people ask at once
        ready = loaded(self._room, model)
        found = self._opened.get((film.id, model.version))
        if found is not None:
            return found
        patches = self._room.features.made_once(ready.encoder, film.content, lambda: self._encoded(film, ready))
        study = ready.reader.study_of(pictured(self._room, film), patches)
        self._remember(film, model, study)
        return self._opened.put((film.id, model.version), study)

    def take(self, user: User, study: str, step: Step, revision: int | None) -> tuple[Sitting, Sitting]:
        """The study before and after; a box that the model doubts and nobody confirmed changes nothing."""
        try:
            return self._step(user, study, step, revision)
        except ConceptMismatchError as doubt:
            metrics.WARNINGS.inc()
            self._warned(user, study, doubt)
            raise Problem(
                409, "concept_mismatch", f"{doubt.check.reason} Nothing was changed; to apply the box all the same, "
                "send it again with confirmed = true.", check=doubt.check.to_json(),
            ) from doubt  # fmt: skip

    def forget(self, film: str) -> None:
        """Let go of a film that was removed."""
        self._opened.forget(lambda key: key[0] == film)
        self._standing.forget(lambda _: True)

    def _step(self, user: User, study: str, step: Step, expected: int | None) -> tuple[Sitting, Sitting]:
        """Work it out, then write it down if the study still stands where it stood; else work it out anew."""
        for _ in range(_ATTEMPTS):
            before = self.get(user, study)
            _check_may(user, before, expected)
            after = step.taken(before.study, before.standing)
            written = self._written(user, before, after, step)
            if written is not None:
                event, row = written
                now = before.standing.after(event)
                self._standing.put(study, (now, first_of(after).resumed(now.corrections)))
                return before, Sitting(row, before.film, before.model, before.reader, now, after)
        raise _stale(before.standing.revision)

    def _written(self, user: User, before: Sitting, after: Study, step: Step) -> tuple[Event, StudyRow] | None:
        """The event and the study's row as it is now, or None where somebody else was faster."""
        told = {
            "revision": before.standing.revision + 1,
            "prediction_before": before.row.prediction,
            "prediction_after": dict(after.prediction),
            **step.told(after),
        }
        row = before.row
        changed = {"revision": row.revision + 1, "prediction": dict(after.prediction), "changed_at": datetime.now(UTC)}
        mine = (StudyRow.id == row.id, StudyRow.revision == row.revision, StudyRow.film_id.in_(_FILMS_THERE))
        with self._room.database.writing() as session:
            written = session.connection().execute(update(StudyRow).where(*mine).values(**changed))
            if written.rowcount == 0:
                return None
            event = self._room.store.record(
                session, user, step.kind, film=row.film_id, study=row.id, model=row.model, **told
            )
        return event, _row_with(row, changed)

    def _warned(self, user: User, study: str, doubt: ConceptMismatchError) -> None:
        """An auditor should see that there was a warning, whatever came of it."""
        with self._room.database.writing() as session:
            row = session.get_one(StudyRow, study)
            check = doubt.check.to_json()
            self._room.store.record(
                session, user, "study.warned", film=row.film_id, study=study, model=row.model, check=check
            )

    def _encoded(self, film: FilmRow, ready: LoadedModel) -> torch.Tensor:
        prepared = self._room.decoder_pool.prepared(film.id, film.suffix, ready.reader.loaded.run.config.preprocessing)
        return self._room.encoder.encode(ready.encoder, ready.reader, prepared)

    def _remember(self, film: FilmRow, model: ModelRow, study: Study) -> None:
        """What the model says at first sight, for the list of films."""
        prediction = dict(study.prediction)
        likeliest = next(iter(prediction))[:64]
        with self._room.database.reading() as session:
            if session.get(ImpressionRow, (film.id, model.version)) is not None:
                return
        try:
            with self._room.database.writing() as session:
                row = ImpressionRow(film_id=film.id, model=model.version, likeliest=likeliest, prediction=prediction)
                session.add(row)
        except IntegrityError:  # another worker was faster, with the same words
            return


_WHOLE = (
    select(StudyRow, FilmRow, ModelRow, UserRow.name)
    .join(FilmRow, FilmRow.id == StudyRow.film_id)
    .join(ModelRow, ModelRow.version == StudyRow.model)
    .join(UserRow, UserRow.id == StudyRow.reader_id)
    .where(StudyRow.id == bindparam("study"), FilmRow.deleted_at.is_(None), ModelRow.removed_at.is_(None))
)
"""A study with all that it is about, in one question: this is asked more often than anything else."""
_FILMS_THERE = select(FilmRow.id).where(FilmRow.deleted_at.is_(None))


def _row_with(row: StudyRow, changed: dict[str, Any]) -> StudyRow:
    """The same row after a change that was written past it."""
    columns = StudyRow.__table__.columns.keys()
    return StudyRow(**{name: getattr(row, name) for name in columns} | changed)


def steps_of(session: Session, study: str) -> list[Event]:
    """What was done in a study, the first step first."""
    wanted = select(EventRow.__table__).where(EventRow.study == study, EventRow.kind.in_(STEPS)).order_by(EventRow.seq)
    return [Event(**row) for row in session.execute(wanted).mappings()]


def studies_of(session: Session, user: User, film: str | None) -> Sequence[tuple[StudyRow, str]]:
    """One's own studies, or everybody's for a curator; the last changed first."""
    wanted = select(StudyRow, UserRow.name).join(UserRow, UserRow.id == StudyRow.reader_id)
    wanted = wanted.join(FilmRow, FilmRow.id == StudyRow.film_id).where(FilmRow.deleted_at.is_(None))
    if film is not None:
        wanted = wanted.where(StudyRow.film_id == film)
    if not user.role.covers(Role.CURATOR):
        wanted = wanted.where(StudyRow.reader_id == user.id)
    return [(row, name) for row, name in session.execute(wanted.order_by(StudyRow.changed_at.desc()).limit(200))]


def _check_may(user: User, before: Sitting, expected: int | None) -> None:
    if before.row.reader_id != user.id:
        raise forbidden("This study is somebody else's: open the film yourself to correct it.")
    if expected is not None and expected != before.standing.revision:
        raise _stale(before.standing.revision)
    if before.standing.revision >= MOST_STEPS:
        raise Problem(409, "too_many_steps", f"A study has at most {MOST_STEPS} steps.")


def _stale(revision: int) -> Problem:
    detail = "The study was changed in another window meanwhile; look at it again. Nothing was changed now."
    return Problem(409, "stale_study", detail, revision=revision)


def _study_row(session: Session, user: User, film: FilmRow, model: ModelRow) -> StudyRow | None:
    wanted = select(StudyRow).where(StudyRow.film_id == film.id, StudyRow.model == model.version)
    return session.scalar(wanted.where(StudyRow.reader_id == user.id))


def _weight(study: Study) -> int:
    return study.original.similarity.nbytes
