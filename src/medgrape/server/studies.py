"""Studies of one film with one model by one reader: open them, take steps, read new films in the background."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import torch
from prometheus_client import Counter
from sqlalchemy import bindparam, exists, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from medgrape.errors import UserError
from medgrape.server.accounts import Role, User, new_id
from medgrape.server.decoder_pool import DecodersBusyError
from medgrape.server.errors import Problem, forbidden, not_found
from medgrape.server.films import film_row, lazy_film
from medgrape.server.inference import LoadedModel, LRUCache
from medgrape.server.models import in_use, loaded, model_row
from medgrape.server.room import Room, logger
from medgrape.server.storage.database import DATABASE_ERRORS
from medgrape.server.storage.events import Event
from medgrape.server.storage.tables import EventRow, FilmRow, ImpressionRow, ModelRow, StudyRow, UserRow
from medgrape.server.study_history import STEPS, HistoryEntry, Outcome, Step, StudyState, replay, state_after
from medgrape.study import ConceptMismatchError, Study

EVIDENCE_CACHE_BYTES = 128 * 2**20
STATE_CACHE_SIZE = 64  # studies whose present state is kept in memory
MAX_STEPS = 1000
BACKLOG = 500  # newest films that are read in the background at the start and after another model is put to use
_ATTEMPTS = 5
_WARNINGS = Counter("medgrape_mismatch_warnings", "Unconfirmed boxes that the safety check warned about.")
_STUDY = (  # a study with its film, model and reader in one query, which most requests run
    select(StudyRow, FilmRow, ModelRow, UserRow.name)
    .join(FilmRow, FilmRow.id == StudyRow.film_id)
    .join(ModelRow, ModelRow.version == StudyRow.model)
    .join(UserRow, UserRow.id == StudyRow.reader_id)
    .where(StudyRow.id == bindparam("study"), FilmRow.deleted_at.is_(None), ModelRow.removed_at.is_(None))
)


@dataclass(frozen=True)
class StudyView:
    """A study as it is now, or after fewer steps."""

    row: StudyRow
    film: FilmRow
    model: ModelRow
    reader: str
    first: Study  # before any correction
    state: StudyState
    study: Study


class StudyService:
    """Opens studies and takes steps in them."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._first = LRUCache[tuple[str, str], Study](EVIDENCE_CACHE_BYTES, lambda s: s.original.similarity.nbytes)
        self._states = LRUCache[str, tuple[StudyState, Study]](STATE_CACHE_SIZE)

    def open(self, user: User, film: str, model: str | None) -> tuple[StudyView, bool]:
        """Return the reader's study of a film with a model, and whether it is new."""
        with self._room.database.reading() as session:
            film_found, model_found = film_row(session, film), model_row(session, model)
            own = (StudyRow.film_id == film, StudyRow.model == model_found.version, StudyRow.reader_id == user.id)
            known = session.scalar(select(StudyRow.id).where(*own))
        if known is not None:
            return self.get(user, known), False
        study = self.uncorrected(film_found, model_found)
        now, prediction = datetime.now(UTC), dict(study.prediction)
        row = StudyRow(
            id=new_id(), film_id=film, model=model_found.version, reader_id=user.id, revision=0,
            prediction=prediction, opened_at=now, changed_at=now,
        )  # fmt: skip
        try:
            with self._room.database.writing() as session:
                film_row(session, film, lock=True)  # film and model may have been removed meanwhile
                model_row(session, row.model, lock=True)
                session.add(row)
                session.flush()
                self._room.store.record(
                    session, user, "study.opened", film=film, study=row.id, model=row.model, prediction=prediction
                )
        except IntegrityError:  # opened in another window at the same moment
            return self.open(user, film, model)[0], False
        return StudyView(row, film_found, model_found, user.name, study, StudyState(), study), True

    def get(self, user: User, study: str, at: int | None = None) -> StudyView:
        """Return a study as it is now, or after ``at`` steps; readers see only their own."""
        with self._room.database.reading() as session:
            found = session.execute(_STUDY, {"study": study}).one_or_none()
        if found is None or not (found[0].reader_id == user.id or user.role.covers(Role.CURATOR)):
            raise not_found("study", study)
        row, film, model, reader = found
        if at is not None and not 0 <= at <= row.revision:
            raise Problem(404, "not_found", f"The study has {row.revision} steps; there is no step {at}.")
        first, revision = self.uncorrected(film, model), row.revision if at is None else at
        cached = self._states.get(study)
        if cached is not None and cached[0].revision == revision:
            return StudyView(row, film, model, reader, first, *cached)
        with self._room.database.reading() as session:
            state = state_after(_steps_of(session, study)[:revision])
        return StudyView(row, film, model, reader, first, state, first.resumed(state.corrections))

    def history(self, user: User, study: str) -> list[HistoryEntry]:
        """Return the steps of a study that the user may see, the first one first."""
        self.get(user, study)
        with self._room.database.reading() as session:
            return list(replay(_steps_of(session, study)))

    def uncorrected(self, film: FilmRow, model: ModelRow) -> Study:
        """Return the study of a film without corrections. The backbone runs once for each film and encoder."""
        torch.set_num_threads(1)  # in this thread; other requests compute at the same time
        ready = loaded(self._room, model)
        cached = self._first.get((film.id, model.version))
        if cached is not None:
            return cached
        patches = self._room.features.get_or_compute(ready.encoder, film.content, lambda: self._encode(film, ready))
        study = ready.reader.study_of(lazy_film(self._room, film), patches)
        self._store_impression(film, model, dict(study.prediction))
        return self._first.put((film.id, model.version), study)

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
            detail = f"{warning.check.reason} Nothing was changed; to apply the box, send it with confirmed = true."
            raise Problem(409, "concept_mismatch", detail, check=check) from warning

    def forget(self, film: str) -> None:
        """Drop a removed film from memory."""
        self._first.forget(lambda key: key[0] == film)
        self._states.forget(lambda _: True)

    def _take(self, user: User, study: str, step: Step, expected: int | None) -> tuple[StudyView, StudyView]:
        """Compute the step, then write it; start again if another step was written meanwhile."""
        for _ in range(_ATTEMPTS):
            before = self.get(user, study)
            revision = before.state.revision
            if before.row.reader_id != user.id:
                raise forbidden("This study is somebody else's: open the film yourself to correct it.")
            if expected not in (None, revision):
                break
            if revision >= MAX_STEPS:
                raise Problem(409, "too_many_steps", f"A study has at most {MAX_STEPS} steps.")
            outcome = step(before.study, before.state)
            after = before.first.resumed(outcome.state.corrections)
            row = self._write(user, before.row, outcome, dict(after.prediction))
            if row is not None:
                self._states.put(study, (outcome.state, after))
                return before, replace(before, row=row, state=outcome.state, study=after)
        detail = "The study was changed in another window meanwhile; look at it again. Nothing was changed now."
        raise Problem(409, "stale_study", detail, revision=revision)

    def _write(self, user: User, row: StudyRow, outcome: Outcome, prediction: dict[str, float]) -> StudyRow | None:
        """Write a step and return the study's new row, or None if another step was written meanwhile."""
        changed = {"revision": row.revision + 1, "prediction": prediction, "changed_at": datetime.now(UTC)}
        films = select(FilmRow.id).where(FilmRow.deleted_at.is_(None))
        unchanged = (StudyRow.id == row.id, StudyRow.revision == row.revision, StudyRow.film_id.in_(films))
        with self._room.database.writing() as session:
            written = session.connection().execute(update(StudyRow).where(*unchanged).values(**changed))
            if written.rowcount == 0:
                return None
            self._room.store.record(
                session, user, outcome.event_kind, film=row.film_id, study=row.id, model=row.model,
                revision=outcome.state.revision, prediction_before=row.prediction, prediction_after=prediction,
                **outcome.payload,
            )  # fmt: skip
        return StudyRow(**row.columns() | changed)

    def _encode(self, film: FilmRow, ready: LoadedModel) -> torch.Tensor:
        path = self._room.folder.film(film.id, film.suffix)
        prepared = self._room.decoder_pool.prepared(path, ready.reader.loaded.run.config.preprocessing)
        return self._room.encoder.encode(ready.encoder, ready.reader, prepared)

    def _store_impression(self, film: FilmRow, model: ModelRow, prediction: dict[str, float]) -> None:
        """Store the prediction of a film without corrections, for the list of films."""
        with self._room.database.reading() as session:
            if session.get(ImpressionRow, (film.id, model.version)) is not None:
                return
        likeliest = next(iter(prediction))[:64]
        row = ImpressionRow(film_id=film.id, model=model.version, likeliest=likeliest, prediction=prediction)
        with suppress(IntegrityError), self._room.database.writing() as session:  # another worker may be faster
            session.add(row)


class BackgroundReader:
    """Reads new films with the model in use, one at a time, so that the list of films can show its predictions."""

    def __init__(self, room: Room, studies: StudyService) -> None:
        self._room, self._studies = room, studies
        self._thread = ThreadPoolExecutor(1, "background-reader")
        self._lock = threading.Lock()
        self._waiting: set[str] = set()

    def add(self, film: str) -> None:
        """Queue a film."""
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
        """Stop after the film that is being read; the next start queues the others again."""
        self._thread.shutdown(cancel_futures=True)

    def _read(self, film: str) -> None:
        try:
            with self._room.database.reading() as session:
                row, model = film_row(session, film), model_row(session, None)
            self._studies.uncorrected(row, model)
        except (Problem, UserError, DecodersBusyError, OSError, RuntimeError, *DATABASE_ERRORS) as error:
            reason = error if isinstance(error, RuntimeError) else type(error).__name__
            logger.warning("film %s was not read in the background: %s", film, reason)
        finally:
            with self._lock:
                self._waiting.discard(film)


def studies_of(session: Session, user: User, film: str | None) -> Sequence[tuple[StudyRow, str]]:
    """Return the user's studies, or everybody's for a curator, with their readers' names; the last changed first."""
    query = select(StudyRow, UserRow.name).join(UserRow, UserRow.id == StudyRow.reader_id)
    query = query.join(FilmRow, FilmRow.id == StudyRow.film_id).where(FilmRow.deleted_at.is_(None))
    if film is not None:
        query = query.where(StudyRow.film_id == film)
    if not user.role.covers(Role.CURATOR):
        query = query.where(StudyRow.reader_id == user.id)
    return [(row, name) for row, name in session.execute(query.order_by(StudyRow.changed_at.desc()).limit(200))]


def _steps_of(session: Session, study: str) -> list[Event]:
    query = select(EventRow.__table__).where(EventRow.study == study, EventRow.kind.in_(STEPS)).order_by(EventRow.seq)
    return [Event(**row) for row in session.execute(query).mappings()]
