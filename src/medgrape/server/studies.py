"""Studies: one film in front of one model and one person, opened once and the same again after a restart."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import torch
from prometheus_client import Counter
from sqlalchemy import bindparam, exists, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from medgrape.errors import UserError
from medgrape.server.accounts import Role, User, new_id
from medgrape.server.decoder_pool import DecodersBusyError
from medgrape.server.errors import Problem, forbidden, not_found
from medgrape.server.films import film_row, pictured
from medgrape.server.inference import LoadedModel, LRUCache
from medgrape.server.models import in_use, loaded, model_row
from medgrape.server.room import Room, logger
from medgrape.server.storage.database import DATABASE_ERRORS
from medgrape.server.storage.events import Event
from medgrape.server.storage.tables import EventRow, FilmRow, ImpressionRow, ModelRow, StudyRow, UserRow
from medgrape.server.study_history import STEPS, HistoryEntry, Outcome, Step, StudyState, first_of, replay, state_after
from medgrape.study import ConceptMismatchError, Study

IN_MEMORY = 128 * 2**20
"""Bytes of evidence that are kept in memory."""
STUDIES = 64
"""Number of studies whose present state is kept in memory."""
MOST_STEPS = 1000
BACKLOG = 500
"""Films that the background reads at a start, or after another model is put to use: the newest ones."""
_ATTEMPTS = 5
_WARNINGS = Counter("medgrape_mismatch_warnings", "Boxes that the safety check doubted and nobody had confirmed.")
_WHOLE = (
    select(StudyRow, FilmRow, ModelRow, UserRow.name)
    .join(FilmRow, FilmRow.id == StudyRow.film_id)
    .join(ModelRow, ModelRow.version == StudyRow.model)
    .join(UserRow, UserRow.id == StudyRow.reader_id)
    .where(StudyRow.id == bindparam("study"), FilmRow.deleted_at.is_(None), ModelRow.removed_at.is_(None))
)
"""A study with its film, model and reader in one query: nothing is asked more often."""


@dataclass(frozen=True)
class StudyView:
    """A study as it is now, or after fewer steps."""

    row: StudyRow
    film: FilmRow
    model: ModelRow
    reader: str
    state: StudyState
    study: Study


class StudyService:
    """Opens studies and takes steps in them."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._opened: LRUCache[tuple[str, str], Study] = LRUCache(
            IN_MEMORY, lambda study: study.original.similarity.nbytes
        )
        self._states: LRUCache[str, tuple[StudyState, Study]] = LRUCache(STUDIES)

    def open(self, user: User, film: str, model: str | None) -> tuple[StudyView, bool]:
        """Return the person's study of a film with a model, and whether it is new."""
        with self._room.database.reading() as session:
            film_found, model_found = film_row(session, film), model_row(session, model)
            known = session.scalar(
                select(StudyRow.id).where(
                    StudyRow.film_id == film, StudyRow.model == model_found.version, StudyRow.reader_id == user.id
                )
            )
        if known is not None:
            return self.get(user, known), False
        study = self.first_sight(film_found, model_found)
        now, prediction = datetime.now(UTC), dict(study.prediction)
        row = StudyRow(
            id=new_id(), film_id=film, model=model_found.version, reader_id=user.id, revision=0,
            prediction=prediction, opened_at=now, changed_at=now,
        )  # fmt: skip
        try:
            with self._room.database.writing() as session:
                film_row(session, film, lock=True)  # either may be gone by now
                model_row(session, row.model, lock=True)
                session.add(row)
                session.flush()
                self._room.store.record(
                    session, user, "study.opened", film=film, study=row.id, model=row.model, prediction=prediction
                )
        except IntegrityError:  # the same person, at the same moment, in another window
            return self.open(user, film, model)[0], False
        return StudyView(row, film_found, model_found, user.name, StudyState(), study), True

    def get(self, user: User, study: str, at: int | None = None) -> StudyView:
        """Return a study as it is now, or after ``at`` steps; readers see only their own."""
        with self._room.database.reading() as session:
            found = session.execute(_WHOLE, {"study": study}).one_or_none()
        if found is None or not (found[0].reader_id == user.id or user.role.covers(Role.CURATOR)):
            raise not_found("study", study)
        row, film, model, reader = found
        if at is not None and not 0 <= at <= row.revision:
            raise Problem(404, "not_found", f"The study has {row.revision} steps; there is no step {at}.")
        first, revision = self.first_sight(film, model), row.revision if at is None else at
        cached = self._states.get(study)
        if cached is not None and cached[0].revision == revision:
            return StudyView(row, film, model, reader, *cached)
        with self._room.database.reading() as session:
            state = state_after(_steps_of(session, study)[:revision])
        return StudyView(row, film, model, reader, state, first.resumed(state.corrections))

    def history(self, user: User, study: str) -> list[HistoryEntry]:
        """Return every step of a study that the person may see, the first one first."""
        self.get(user, study)
        with self._room.database.reading() as session:
            return list(replay(_steps_of(session, study)))

    def first_sight(self, film: FilmRow, model: ModelRow) -> Study:
        """Return what a model sees on a film without corrections. The backbone runs once for each film and encoder."""
        torch.set_num_threads(1)  # of this thread: many people ask at once
        ready = loaded(self._room, model)
        cached = self._opened.get((film.id, model.version))
        if cached is not None:
            return cached
        patches = self._room.features.made_once(ready.encoder, film.content, lambda: self._encoded(film, ready))
        study = ready.reader.study_of(pictured(self._room, film), patches)
        self._remember(film, model, dict(study.prediction))
        return self._opened.put((film.id, model.version), study)

    def take(self, user: User, study: str, step: Step, revision: int | None) -> tuple[StudyView, StudyView]:
        """Take a step and return the study before and after it.

        An unconfirmed box that the safety check warns about changes nothing; the warning is written to the log.
        """
        try:
            return self._take(user, study, step, revision)
        except ConceptMismatchError as warning:
            _WARNINGS.inc()
            check = warning.check.to_json()
            with self._room.database.writing() as session:
                row = session.get_one(StudyRow, study)
                self._room.store.record(
                    session, user, "study.warned", film=row.film_id, study=study, model=row.model, check=check
                )
            raise Problem(
                409, "concept_mismatch", f"{warning.check.reason} Nothing was changed; to apply the box all the same, "
                "send it again with confirmed = true.", check=check,
            ) from warning  # fmt: skip

    def forget(self, film: str) -> None:
        """Drop a removed film from memory."""
        self._opened.forget(lambda key: key[0] == film)
        self._states.forget(lambda _: True)

    def _take(self, user: User, study: str, step: Step, expected: int | None) -> tuple[StudyView, StudyView]:
        """Work the step out, then write it; if somebody else wrote a step meanwhile, work it out again."""
        for _ in range(_ATTEMPTS):
            before = self.get(user, study)
            _check_may(user, before, expected)
            outcome = step(before.study, before.state)
            row = self._written(user, before.row, outcome)
            if row is not None:
                state = outcome.state
                self._states.put(study, (state, first_of(outcome.study).resumed(state.corrections)))
                return before, StudyView(row, before.film, before.model, before.reader, state, outcome.study)
        raise _stale(before.state.revision)

    def _written(self, user: User, row: StudyRow, outcome: Outcome) -> StudyRow | None:
        """Return the study's row with the step, or None if somebody else was faster."""
        prediction = dict(outcome.study.prediction)
        changed: dict[str, Any] = {
            "revision": row.revision + 1, "prediction": prediction, "changed_at": datetime.now(UTC),
        }  # fmt: skip
        films = select(FilmRow.id).where(FilmRow.deleted_at.is_(None))
        unchanged = (StudyRow.id == row.id, StudyRow.revision == row.revision, StudyRow.film_id.in_(films))
        with self._room.database.writing() as session:
            written = session.connection().execute(update(StudyRow).where(*unchanged).values(**changed))
            if written.rowcount == 0:
                return None
            self._room.store.record(
                session, user, outcome.kind, film=row.film_id, study=row.id, model=row.model,
                revision=outcome.state.revision, prediction_before=row.prediction, prediction_after=prediction,
                **outcome.payload,
            )  # fmt: skip
        columns = StudyRow.__table__.columns.keys()
        return StudyRow(**{name: getattr(row, name) for name in columns} | changed)

    def _encoded(self, film: FilmRow, ready: LoadedModel) -> torch.Tensor:
        path = self._room.folder.film(film.id, film.suffix)
        prepared = self._room.decoder_pool.prepared(path, ready.reader.loaded.run.config.preprocessing)
        return self._room.encoder.encode(ready.encoder, ready.reader, prepared)

    def _remember(self, film: FilmRow, model: ModelRow, prediction: dict[str, float]) -> None:
        """Store what the model says at first sight, for the list of films."""
        with self._room.database.reading() as session:
            if session.get(ImpressionRow, (film.id, model.version)) is not None:
                return
        likeliest = next(iter(prediction))[:64]
        try:
            with self._room.database.writing() as session:
                row = ImpressionRow(film_id=film.id, model=model.version, likeliest=likeliest, prediction=prediction)
                session.add(row)
        except IntegrityError:  # another worker was faster, with the same prediction
            return


class BackgroundReader:
    """Reads new films with the model in use, one after another, so that the list can show its prediction."""

    def __init__(self, room: Room, studies: StudyService) -> None:
        self._room, self._studies = room, studies
        self._thread = ThreadPoolExecutor(1, "background-reader")
        self._lock = threading.Lock()
        self._waiting: set[str] = set()

    def add(self, film: str) -> None:
        """Read a film when nothing else waits."""
        with self._lock:
            if film in self._waiting or self._room.closing.is_set():
                return
            self._waiting.add(film)
        self._thread.submit(self._read, film)

    def catch_up(self) -> None:
        """Read the newest films that the model in use has not read."""
        with self._room.database.reading() as session:
            seen = exists().where(ImpressionRow.film_id == FilmRow.id, ImpressionRow.model == (in_use(session) or ""))
            wanted = select(FilmRow.id).where(FilmRow.deleted_at.is_(None), ~seen).order_by(FilmRow.arrived_at.desc())
            films = session.scalars(wanted.limit(BACKLOG)).all()
        for film in films:
            self.add(film)

    def close(self) -> None:
        """Leave the rest for the next start."""
        self._thread.shutdown(cancel_futures=True)

    def _read(self, film: str) -> None:
        try:
            with self._room.database.reading() as session:
                row, model = film_row(session, film), model_row(session, None)
            self._studies.first_sight(row, model)
        except (Problem, UserError, DecodersBusyError, TimeoutError, OSError, *DATABASE_ERRORS) as error:
            logger.warning("film %s was not read in the background: %s", film, type(error).__name__)
        except RuntimeError as error:  # the encoder ends with the server
            logger.warning("film %s was not read in the background: %s", film, error)
        finally:
            with self._lock:
                self._waiting.discard(film)


def studies_of(session: Session, user: User, film: str | None) -> Sequence[tuple[StudyRow, str]]:
    """Return the person's studies, or everybody's for a curator, with their readers; the last changed first."""
    wanted = select(StudyRow, UserRow.name).join(UserRow, UserRow.id == StudyRow.reader_id)
    wanted = wanted.join(FilmRow, FilmRow.id == StudyRow.film_id).where(FilmRow.deleted_at.is_(None))
    if film is not None:
        wanted = wanted.where(StudyRow.film_id == film)
    if not user.role.covers(Role.CURATOR):
        wanted = wanted.where(StudyRow.reader_id == user.id)
    return [(row, name) for row, name in session.execute(wanted.order_by(StudyRow.changed_at.desc()).limit(200))]


def _steps_of(session: Session, study: str) -> list[Event]:
    wanted = select(EventRow.__table__).where(EventRow.study == study, EventRow.kind.in_(STEPS)).order_by(EventRow.seq)
    return [Event(**row) for row in session.execute(wanted).mappings()]


def _check_may(user: User, before: StudyView, expected: int | None) -> None:
    if before.row.reader_id != user.id:
        raise forbidden("This study is somebody else's: open the film yourself to correct it.")
    if expected is not None and expected != before.state.revision:
        raise _stale(before.state.revision)
    if before.state.revision >= MOST_STEPS:
        raise Problem(409, "too_many_steps", f"A study has at most {MOST_STEPS} steps.")


def _stale(revision: int) -> Problem:
    detail = "The study was changed in another window meanwhile; look at it again. Nothing was changed now."
    return Problem(409, "stale_study", detail, revision=revision)
