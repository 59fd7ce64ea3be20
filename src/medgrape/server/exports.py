"""Export the corrections and the studies of a room for other programs."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from sqlalchemy import select

from medgrape.corrections.statements import Correction, Rejection
from medgrape.exchange.boxes import BoxExport, ExportedFilm, ExportedMark, ExportFormat, csv_lines
from medgrape.films.film import FilmFacts
from medgrape.server.accounts import User
from medgrape.server.room import RoomStore
from medgrape.server.storage.events import Event
from medgrape.server.storage.tables import EventRow, FilmRow, StudyRow, UserRow, stamp
from medgrape.server.study_history import CORRECTED, REDRAWN, STEPS, replay

_STUDIES = (  # of films that were not removed, the study opened first comes first
    select(StudyRow, FilmRow, UserRow.name, UserRow.role)
    .join(FilmRow, FilmRow.id == StudyRow.film_id)
    .join(UserRow, UserRow.id == StudyRow.reader_id)
    .where(FilmRow.deleted_at.is_(None))
    .order_by(StudyRow.opened_at, StudyRow.id)
)
_STEPS = select(EventRow.__table__).where(EventRow.kind.in_(STEPS)).order_by(EventRow.study, EventRow.seq)


def collect(store: RoomStore, user: User | str, form: ExportFormat) -> BoxExport:
    """Return all corrections in force on films that were not removed. The export is an event of the log."""
    with store.database.reading() as session:  # one transaction, because others write meanwhile
        studies = session.execute(_STUDIES).all()
        events = (Event(**row) for row in session.execute(_STEPS).mappings())
        steps = {study: list(group) for study, group in groupby(events, key=lambda event: event.study)}
    films: dict[str, ExportedFilm] = {}
    marks: list[ExportedMark] = []
    for study, film, name, role in studies:
        about = {"reader": name, "role": role, "study": study.id, "model": study.model}
        for correction, event in corrections_in_force(steps.get(study.id, ())):
            marks.append(_mark(film.id, correction, about | {"at": event.at}))
            path = f"{film.id[:2]}/{film.id}{film.suffix}"  # below the room's folder of films
            films[film.id] = ExportedFilm(film.id, path, FilmFacts.from_json(film.facts).size)
    concepts = sorted({mark.concept for mark in marks if mark.concept is not None})
    counts = {"films": len(films), "marks": len(marks)}
    with store.database.writing() as session:
        store.record(session, user, "boxes.exported", format=form, counted=counts)
    return BoxExport("Boxes drawn in a reading room", tuple(concepts), tuple(films.values()), tuple(marks))


def corrections_in_force(events: Iterable[Event]) -> list[tuple[Correction, Event]]:
    """Return the corrections of a study, each with the event that made or redrew it last."""
    history = list(replay(events))
    # By identity, because two corrections may be equal.
    made = {id(step.change.correction): step.event for step in history if step.event.kind in (CORRECTED, REDRAWN)}
    in_force = history[-1].state.corrections if history else ()
    return [(correction, made[id(correction)]) for correction in in_force]


def _mark(film: str, correction: Correction, about: dict[str, Any]) -> ExportedMark:
    if isinstance(correction, Rejection):
        return ExportedMark(film, "reject", correction.concept, None, about)
    check = correction.check
    about |= {"confirmed": correction.confirmed, "check": None, "model_sees": None, "gap": None}
    if check is not None:
        verdict = "warned" if check.mismatch else "no warning"
        about |= {"check": verdict, "model_sees": check.dominant, "gap": check.gap}
    return ExportedMark(film, "box" if correction.positive else "not_box", correction.concept, correction.box, about)


def collect_readings(store: RoomStore, user: User | str) -> tuple[int, str]:
    """Return the number of studies of films that were not removed, and a CSV with a row for each. Logs an event."""
    with store.database.reading() as session:
        studies = session.execute(_STUDIES).all()
    classes = list(dict.fromkeys(name for study, *_ in studies for name in sorted(study.prediction)))
    about = ("film", "study", "model", "reader", "role", "opened_at", "changed_at", "steps", "predicted")
    header = (*about, *(f"probability_{name}" for name in classes))
    rows = (
        (
            film.id, study.id, study.model, reader, role, stamp(study.opened_at), stamp(study.changed_at),
            study.revision, max(study.prediction, key=study.prediction.__getitem__),
            *(study.prediction.get(name) for name in classes),
        )
        for study, film, reader, role in studies
    )  # fmt: skip
    text = "".join(csv_lines(header, rows))
    with store.database.writing() as session:
        store.record(session, user, "readings.exported", format="csv", counted={"readings": len(studies)})
    return len(studies), text
