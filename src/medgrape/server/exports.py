"""All corrections and all studies of a room as files for other programs."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from sqlalchemy import Row, select

from medgrape.corrections.statements import Correction, Rejection
from medgrape.exchange.boxes import BoxExport, ExportedFilm, ExportedMark, ExportFormat, csv_lines
from medgrape.films.film import FilmFacts
from medgrape.server.accounts import User
from medgrape.server.room import RoomStore
from medgrape.server.storage.events import Event
from medgrape.server.storage.tables import EventRow, FilmRow, StudyRow, UserRow, stamp
from medgrape.server.study_history import CORRECTED, REDRAWN, STEPS, replay

_STUDIES = (
    select(StudyRow, FilmRow, UserRow.name, UserRow.role)
    .join(FilmRow, FilmRow.id == StudyRow.film_id)
    .join(UserRow, UserRow.id == StudyRow.reader_id)
    .where(FilmRow.deleted_at.is_(None))
    .order_by(StudyRow.opened_at, StudyRow.id)
)
"""Studies of films that are still here, in the order in which they were opened."""
_STEPS = select(EventRow.__table__).where(EventRow.kind.in_(STEPS)).order_by(EventRow.study, EventRow.seq)


def collect(store: RoomStore, user: User | str, form: ExportFormat) -> BoxExport:
    """Return everybody's corrections in force, of films that are still here; the export is an event."""
    with store.database.reading() as session:  # others write meanwhile
        studies = session.execute(_STUDIES).all()
        events = (Event(**row) for row in session.execute(_STEPS).mappings())
        steps = {study: list(found) for study, found in groupby(events, key=lambda event: event.study)}
    films: dict[str, ExportedFilm] = {}
    marks: list[ExportedMark] = []
    for study, film, name, role in studies:
        about = {"reader": name, "role": role, "study": study.id, "model": study.model}
        found = [
            _mark(film.id, correction, about | {"at": event.at})
            for correction, event in corrections_in_force(steps.get(study.id, ()))
        ]
        if found:
            path = f"{film.id[:2]}/{film.id}{film.suffix}"  # below the room's folder of films
            films[film.id] = ExportedFilm(film.id, path, FilmFacts.from_json(film.facts).size)
        marks.extend(found)
    concepts = sorted({mark.concept for mark in marks if mark.concept is not None})
    counted = {"films": len(films), "marks": len(marks)}
    with store.database.writing() as session:
        store.record(session, user, "boxes.exported", format=form, counted=counted)
    return BoxExport("Boxes drawn in a reading room", tuple(concepts), tuple(films.values()), tuple(marks))


def corrections_in_force(events: Iterable[Event]) -> list[tuple[Correction, Event]]:
    """Return the corrections of a study, each with the event by which it was made or redrawn last."""
    history = list(replay(events))
    made = [(entry.change.correction, entry.event) for entry in history if entry.event.kind in (CORRECTED, REDRAWN)]
    in_force = history[-1].state.corrections if history else ()
    # Two corrections may be equal, so they are compared by identity.
    return [(one, next(event for correction, event in made if correction is one)) for one in in_force]


def _mark(film: str, correction: Correction, about: dict[str, Any]) -> ExportedMark:
    if isinstance(correction, Rejection):
        return ExportedMark(film, "reject", correction.concept, None, about)
    check = correction.check
    about |= {"confirmed": correction.confirmed, "check": None, "model_sees": None, "gap": None}
    if check is not None:
        verdict = "warned" if check.mismatch else "no warning"
        about |= {"check": verdict, "model_sees": check.dominant, "gap": check.gap}
    return ExportedMark(film, "box" if correction.positive else "not_box", correction.concept, correction.box, about)


_ABOUT = ("film", "study", "model", "reader", "role", "opened_at", "changed_at", "steps", "predicted")


def collect_readings(store: RoomStore, user: User | str) -> tuple[int, str]:
    """Return the number of studies of films that are still here, and a CSV with a row for each; an event, too."""
    with store.database.reading() as session:  # others write meanwhile
        studies = session.execute(_STUDIES).all()
    classes = list(dict.fromkeys(name for study, *_ in studies for name in sorted(study.prediction)))
    header = (*_ABOUT, *(f"probability_{name}" for name in classes))
    text = "".join(csv_lines(header, (_row(study, classes) for study in studies)))
    with store.database.writing() as session:
        store.record(session, user, "readings.exported", format="csv", counted={"readings": len(studies)})
    return len(studies), text


def _row(found: Row[StudyRow, FilmRow, str, str], classes: list[str]) -> tuple[object, ...]:
    study, film, reader, role = found
    times = stamp(study.opened_at), stamp(study.changed_at)
    likeliest = max(study.prediction, key=study.prediction.__getitem__)
    about = (film.id, study.id, study.model, reader, role, *times, study.revision, likeliest)
    return (*about, *(study.prediction.get(name) for name in classes))
