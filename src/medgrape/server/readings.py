"""Every study of a room as a row of a CSV: what came of it, by whom, and how much was corrected."""

from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from medgrape.interchange import sheet
from medgrape.server.archive import Archive
from medgrape.server.security.roles import Person
from medgrape.server.storage.tables import FilmRow, StudyRow, UserRow, stamp

_ABOUT = ("film", "study", "model", "reader", "role", "opened_at", "changed_at", "steps", "predicted")


def collect_readings(archive: Archive, who: Person | str) -> tuple[int, str]:
    """How many there are of films that are still here, and the file's text; that they were asked for is an event."""
    with archive.database.reading() as session:  # others write meanwhile
        found = list(_studies(session))
    classes = list(dict.fromkeys(name for study, _, _ in found for name in sorted(study.prediction)))
    header = (*_ABOUT, *(f"probability_{name}" for name in classes))
    text = "".join(sheet.lines(header, (_row(*one, classes) for one in found)))
    with archive.database.writing() as session:
        archive.note(session, who, "readings.exported", format="csv", counted={"readings": len(found)})
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
