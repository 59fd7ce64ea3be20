"""All boxes and readings of the room, for other programs."""

import io
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from fastapi import Query, Response

from medgrape import __version__
from medgrape.exchange.boxes import MEDIA, SUFFIXES, Form
from medgrape.explain.explanation import Explanation
from medgrape.explain.words import NOTICE
from medgrape.hospital.objects import write_objects
from medgrape.server.api.common import At, StudyId
from medgrape.server.api.explanations import ExplanationTold
from medgrape.server.api.exports.reading import FilmReadTold, ReadingExported, ReadWithTold
from medgrape.server.api.films import FilmFactsTold
from medgrape.server.api.studies import history, study_told
from medgrape.server.collect import collect, collect_readings
from medgrape.server.models import loaded
from medgrape.server.problems import Problem
from medgrape.server.room import Room
from medgrape.server.security.roles import Role, User
from medgrape.server.services import CurrentUser, ServiceContainer, Services, media_response, router
from medgrape.server.storage.tables import stamp
from medgrape.server.studies import Sitting
from medgrape.server.study_history import first_of

_DICOM = ".dcm"


def dicom_zip(room: Room, sitting: Sitting) -> bytes:
    """Report, maps, boxes and the film that they are about; a film that came as a picture is refused."""
    film = sitting.film
    if film.suffix != _DICOM:
        raise Problem(
            422, "no_dicom_film", "The film came as a picture, and a DICOM reading is about a DICOM film: upload that."
        )
    kept, out = room.folder.film(film.id, film.suffix), io.BytesIO()
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        written = write_objects(sitting.study, kept, Path(place) / "reading", sitting.reader, room.settings.films)
        for path in written:
            packed.write(path, path.name)
    return out.getvalue()


routes = router("studies", Role.READER)
PDF = media_response("application/pdf", "A4 sheets.")
ZIP = media_response("application/zip", "DICOM files.")


@routes.get("/studies/{study}/reading.json")
def export_reading(
    study: StudyId, services: Services, user: CurrentUser, response: Response, at: At = None
) -> ReadingExported:
    """Hand out a reading with everything that is known of it: film, model, person, findings with maps, every step."""
    sitting = services.studies.get(user, study, at)
    response.headers.update(_attached(sitting, at, "json"))
    return _exported(services, user, sitting, sitting.study.explain())


@routes.get("/studies/{study}/reading.pdf", response_class=Response, responses=PDF)
def print_reading(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> Response:
    """Print a reading for people: what came of it, the evidence, and every correction with its check and reason."""
    from medgrape.server.api.exports.pdf import paper  # reportlab and matplotlib are slow to import

    sitting = services.studies.get(user, study, at)
    explained = sitting.study.explain()
    told = _exported(services, user, sitting, explained)
    warnings = first_of(sitting.study).explain().warnings
    with services.room.decoder_pool.render_slots:
        sheets = paper(told, explained, warnings)
    return Response(sheets, media_type="application/pdf", headers=_attached(sitting, at, "pdf"))


@routes.get("/studies/{study}/reading.dcm.zip", response_class=Response, responses=ZIP)
def archive_reading(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> Response:
    """Pack a reading as DICOM: a structured report, the maps, the boxes, and the film without its patient."""

    sitting = services.studies.get(user, study, at)
    with services.room.decoder_pool.render_slots:
        packed = dicom_zip(services.room, sitting)
    return Response(packed, media_type="application/zip", headers=_attached(sitting, at, "dcm.zip"))


def _exported(services: ServiceContainer, user: User, sitting: Sitting, explained: Explanation) -> ReadingExported:
    film, model = sitting.film, sitting.model
    fingerprint = loaded(services.room, model).reader.loaded.manifest.fingerprint
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
        history=history(sitting.row.id, services, user)[: sitting.standing.revision],  # no step that came meanwhile
    )  # fmt: skip


def _attached(sitting: Sitting, at: int | None, suffix: str) -> dict[str, str]:
    """A file's name that is ours, so that it names nobody."""
    step = "" if at is None else f"-step-{at}"
    return {"Content-Disposition": f'attachment; filename="medgrape-{sitting.film.id}{step}.{suffix}"'}


room_routes = router("boxes", Role.CURATOR)
FILES = {200: {"description": "A COCO file, or a row for each mark.", "content": {
    "application/json": {"schema": {"type": "object"}}, "text/csv": {"schema": {"type": "string"}},
}}}  # fmt: skip


@room_routes.post("/boxes/export", response_class=Response, responses=FILES)  # type: ignore[arg-type]
def export_boxes(
    services: Services,
    user: CurrentUser,
    form: Annotated[Form, Query(alias="format", description="For which kind of program.")] = "coco",
) -> Response:
    """Take along all that people drew and that stands: where, which finding, by whom, and what the check said of it.

    That it was taken along is itself written down.
    """
    told = collect(services.room.store, user, form)
    suffix = next(suffix for suffix, known in SUFFIXES.items() if known == form)
    return _file(told.written(form), MEDIA[form], f"medgrape-boxes{suffix}")


@room_routes.post(
    "/readings/export", response_class=Response, responses=media_response("text/csv", "A row for each study.")
)
def export_readings(services: Services, user: CurrentUser) -> Response:
    """Take along what came of every study: classes, by whom, when, after how many steps; itself written down."""
    return _file(collect_readings(services.room.store, user)[1], MEDIA["csv"], "medgrape-readings.csv")


def _file(text: str, media: str, name: str) -> Response:
    return Response(text, media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})
