"""A reading to take along: for programs as JSON, for people on paper, for archives as DICOM."""

from datetime import UTC, datetime

from fastapi import Response

from medgrape import __version__
from medgrape.explain.explanation import Explanation
from medgrape.explain.words import NOTICE
from medgrape.server.desk import Desk, Desks, Who, produces, router
from medgrape.server.models import loaded
from medgrape.server.routes.params import At, StudyId
from medgrape.server.routes.studies import history
from medgrape.server.schemas.explanations import ExplanationTold
from medgrape.server.schemas.exports import FilmReadTold, ReadingExported, ReadWithTold
from medgrape.server.schemas.films import FilmFactsTold
from medgrape.server.security.roles import Person, Role
from medgrape.server.stepping import first_of
from medgrape.server.storage.tables import stamp
from medgrape.server.studies import Sitting
from medgrape.server.telling import study_told

routes = router("studies", Role.READER)
PDF = produces("application/pdf", "A4 sheets.")
ZIP = produces("application/zip", "DICOM files.")


@routes.get("/studies/{study}/reading.json")
def export_reading(study: StudyId, desk: Desk, who: Who, response: Response, at: At = None) -> ReadingExported:
    """Hand out a reading with everything that is known of it: film, model, person, findings with maps, every step."""
    sitting = desk.studies.get(who, study, at)
    response.headers.update(_attached(sitting, at, "json"))
    return _exported(desk, who, sitting, sitting.study.explain())


@routes.get("/studies/{study}/reading.pdf", response_class=Response, responses=PDF)
def print_reading(study: StudyId, desk: Desk, who: Who, at: At = None) -> Response:
    """Print a reading for people: what came of it, the evidence, and every correction with its check and reason."""
    from medgrape.server.paper.reading import paper  # reportlab and matplotlib are slow to import

    sitting = desk.studies.get(who, study, at)
    explained = sitting.study.explain()
    told = _exported(desk, who, sitting, explained)
    warnings = first_of(sitting.study).explain().warnings
    with desk.room.darkroom.lamp:
        sheets = paper(told, explained, warnings)
    return Response(sheets, media_type="application/pdf", headers=_attached(sitting, at, "pdf"))


@routes.get("/studies/{study}/reading.dcm.zip", response_class=Response, responses=ZIP)
def archive_reading(study: StudyId, desk: Desk, who: Who, at: At = None) -> Response:
    """Pack a reading as DICOM: a structured report, the maps, the boxes, and the film without its patient."""
    from medgrape.server.taking_dicom import dicom_zip  # pydicom and highdicom are slow to import

    sitting = desk.studies.get(who, study, at)
    with desk.room.darkroom.lamp:
        packed = dicom_zip(desk.room, sitting)
    return Response(packed, media_type="application/zip", headers=_attached(sitting, at, "dcm.zip"))


def _exported(desk: Desks, who: Person, sitting: Sitting, explained: Explanation) -> ReadingExported:
    film, model = sitting.film, sitting.model
    fingerprint = loaded(desk.room, model).reader.loaded.manifest.fingerprint
    return ReadingExported(
        notice=NOTICE,
        software=f"medgrape {__version__}",
        made_at=stamp(datetime.now(UTC)),
        film=FilmReadTold(
            id=film.id, arrived_at=stamp(film.arrived_at), facts=FilmFactsTold.model_validate(film.facts),
            sex=film.sex, age=film.age,
        ),
        model=ReadWithTold(name=model.name, version=model.version, fingerprint=fingerprint),
        study=study_told(sitting),
        explanation=ExplanationTold.model_validate(explained.to_json()),
        history=history(sitting.row.id, desk, who)[: sitting.standing.revision],  # no step that came meanwhile
    )  # fmt: skip


def _attached(sitting: Sitting, at: int | None, suffix: str) -> dict[str, str]:
    """A file's name that is ours, so that it names nobody."""
    step = "" if at is None else f"-step-{at}"
    return {"Content-Disposition": f'attachment; filename="medgrape-{sitting.film.id}{step}.{suffix}"'}
