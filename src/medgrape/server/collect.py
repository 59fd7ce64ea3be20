"""Every study of a room as a row of a CSV: what came of it, by whom, and how much was corrected."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from medgrape.corrections.statements import BoxCorrection, Correction
from medgrape.exchange import boxes
from medgrape.exchange.boxes import FilmOut, Form, MarkOut, Marks
from medgrape.films.film import FilmFacts
from medgrape.server.room_folder import RoomStore
from medgrape.server.security.roles import User
from medgrape.server.storage.events import Event
from medgrape.server.storage.tables import EventRow, FilmRow, StudyRow, UserRow, stamp
from medgrape.server.study_history import CORRECTED, REDRAWN, STEPS, Standing


def collect(store: RoomStore, user: User | str, form: Form) -> Marks:
    """Everybody's corrections as they stand now, of films that are still here; that they were asked for is an event."""
    with store.database.reading() as session:  # others write meanwhile
        told = drawn_in(session)
    counted = {"films": len(told.films), "marks": len(told.marks)}
    with store.database.writing() as session:
        store.record(session, user, "boxes.exported", format=form, counted=counted)
    return told


def drawn_in(session: Session) -> Marks:
    """What stands, study by study in the order in which they were opened."""
    wanted = (
        select(StudyRow, FilmRow, UserRow.name, UserRow.role)
        .join(FilmRow, FilmRow.id == StudyRow.film_id)
        .join(UserRow, UserRow.id == StudyRow.reader_id)
        .where(FilmRow.deleted_at.is_(None))
        .order_by(StudyRow.opened_at, StudyRow.id)
    )
    steps = _steps(session)
    films: dict[str, FilmOut] = {}
    marks: list[MarkOut] = []
    for study, film, name, role in session.execute(wanted):
        about = {"reader": name, "role": role, "study": study.id, "model": study.model}
        found = [_mark(film.id, one, event, about) for one, event in standing_marks(steps.get(study.id, ()))]
        if found:
            films[film.id] = _film(film)
        marks.extend(found)
    concepts = sorted({mark.concept for mark in marks if mark.concept is not None})
    return Marks("Boxes drawn in a reading room", tuple(concepts), tuple(films.values()), tuple(marks))


def standing_marks(events: Iterable[Event]) -> Iterator[tuple[Correction, Event]]:
    """The corrections of a study as it stands, each with the event by which it was made or redrawn last."""
    now = Standing()
    made: list[tuple[Correction, Event]] = []
    for event in events:
        now = now.after(event)
        if event.kind in (CORRECTED, REDRAWN):
            made.append((now.done[-1].correction, event))
    for correction in now.corrections:  # two of them may say the same, so it is asked which one it is
        yield correction, next(event for one, event in made if one is correction)


def _steps(session: Session) -> dict[str, tuple[Event, ...]]:
    wanted = select(EventRow.__table__).where(EventRow.kind.in_(STEPS)).order_by(EventRow.study, EventRow.seq)
    events = (Event(**row) for row in session.execute(wanted).mappings())
    return {study or "": tuple(found) for study, found in groupby(events, key=lambda event: event.study)}


def _film(row: FilmRow) -> FilmOut:
    """Its path below the room's folder of films."""
    return FilmOut(row.id, f"{row.id[:2]}/{row.id}{row.suffix}", FilmFacts.from_json(row.facts).size)


def _mark(film: str, one: Correction, event: Event, about: dict[str, Any]) -> MarkOut:
    more = about | {"at": event.at}
    if not isinstance(one, BoxCorrection):
        return MarkOut(film, "reject", one.concept, None, more)
    more |= {"confirmed": one.confirmed, "check": None, "model_sees": None, "gap": None}
    if one.check is not None:
        more |= {"check": "warned" if one.check.mismatch else "no warning", "model_sees": one.check.dominant}
        more |= {"gap": one.check.gap}
    return MarkOut(film, "box" if one.positive else "not_box", one.concept, one.box, more)


_ABOUT = ("film", "study", "model", "reader", "role", "opened_at", "changed_at", "steps", "predicted")


def collect_readings(store: RoomStore, user: User | str) -> tuple[int, str]:
    """How many there are of films that are still here, and the file's text; that they were asked for is an event."""
    with store.database.reading() as session:  # others write meanwhile
        found = list(_studies(session))
    classes = list(dict.fromkeys(name for study, _, _ in found for name in sorted(study.prediction)))
    header = (*_ABOUT, *(f"probability_{name}" for name in classes))
    text = "".join(boxes.lines(header, (_row(*one, classes) for one in found)))
    with store.database.writing() as session:
        store.record(session, user, "readings.exported", format="csv", counted={"readings": len(found)})
    return len(found), text


def _studies(session: Session) -> Iterator[tuple[StudyRow, str, str]]:
    wanted = (
        select(StudyRow, UserRow.name, UserRow.role)
        .join(UserRow, UserRow.id == StudyRow.reader_id)
        .join(FilmRow, FilmRow.id == StudyRow.film_id)
        .where(FilmRow.deleted_at.is_(None))
        .order_by(StudyRow.opened_at, StudyRow.id)
    )
    yield from ((study, name, role) for study, name, role in session.execute(wanted))


def _row(study: StudyRow, name: str, role: str, classes: list[str]) -> tuple[object, ...]:
    likeliest = max(study.prediction, key=study.prediction.__getitem__)
    when = (stamp(study.opened_at), stamp(study.changed_at))
    told = (study.film_id, study.id, study.model, name, role, *when, study.revision, likeliest)
    return (*told, *(study.prediction.get(one) for one in classes))
