"""All that people drew in a room and that still stands, for other programs. Reasons stay behind: people type them."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from medgrape.data.film import FilmFacts
from medgrape.feedback.correction import BoxCorrection, Correction
from medgrape.interchange.boxes import FilmOut, Form, MarkOut, Marks
from medgrape.server.archive import Archive
from medgrape.server.reading.steps import CORRECTED, REDRAWN, STEPS, Standing
from medgrape.server.security.roles import Person
from medgrape.server.storage.events import Event
from medgrape.server.storage.tables import EventRow, FilmRow, StudyRow, UserRow


def collect(archive: Archive, who: Person | str, form: Form) -> Marks:
    """Everybody's corrections as they stand now, of films that are still here; that they were asked for is an event."""
    with archive.database.writing() as session:
        told = drawn_in(session)
        counted = {"films": len(told.films), "marks": len(told.marks)}
        archive.note(session, who, "boxes.exported", format=form, counted=counted)
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
        more |= {"check": "doubts" if one.check.mismatch else "agrees", "model_sees": one.check.dominant}
        more |= {"gap": one.check.gap}
    return MarkOut(film, "box" if one.positive else "not_box", one.concept, one.box, more)
