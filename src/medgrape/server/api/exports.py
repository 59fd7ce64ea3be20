"""Exports: a reading as JSON, PDF or DICOM; all boxes and all readings of the room for other programs."""

import io
import tempfile
import zipfile
from pathlib import Path
from typing import Annotated

from fastapi import Query, Response

from medgrape.exchange.boxes import MEDIA_TYPES, SUFFIXES, ExportFormat
from medgrape.hospital.objects import write_objects
from medgrape.server.accounts import Role
from medgrape.server.api.common import At, StudyId
from medgrape.server.api.reading import ReadingResponse, reading_response
from medgrape.server.errors import Problem
from medgrape.server.exports import collect, collect_readings
from medgrape.server.services import CurrentUser, Services, media_response, router
from medgrape.server.studies import StudyView

routes, curating = router("studies", Role.READER), router("boxes", Role.CURATOR)
PDF = media_response("application/pdf", "A4 sheets.")
ZIP = media_response("application/zip", "DICOM files.")
CSV = media_response("text/csv", "A row for each study.")
FILES = {200: {"description": "A COCO file, or CSV with a row for each correction.", "content": {
    "application/json": {"schema": {"type": "object"}}, "text/csv": {"schema": {"type": "string"}},
}}}  # fmt: skip


@routes.get("/studies/{study}/reading.json")
def export_reading(
    study: StudyId, services: Services, user: CurrentUser, response: Response, at: At = None
) -> ReadingResponse:
    """Export a reading as JSON: film, model, reader, findings with maps, and all steps."""
    view = services.studies.get(user, study, at)
    response.headers.update(_attachment(view, at, "json"))
    return reading_response(services, user, view)


@routes.get("/studies/{study}/reading.pdf", response_class=Response, responses=PDF)
def print_reading(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> Response:
    """Export a reading as PDF: result, evidence, and every correction with its check and reason."""
    from medgrape.server.api.reading_pdf import reading_pdf  # reportlab and matplotlib are slow to import

    view = services.studies.get(user, study, at)
    reading = reading_response(services, user, view)
    with services.room.decoder_pool.render_slots:
        content = reading_pdf(reading, view.study.explain(), view.first.explain().warnings)
    return Response(content, media_type="application/pdf", headers=_attachment(view, at, "pdf"))


@routes.get("/studies/{study}/reading.dcm.zip", response_class=Response, responses=ZIP)
def archive_reading(study: StudyId, services: Services, user: CurrentUser, at: At = None) -> Response:
    """Export a reading as DICOM files: structured report, maps, boxes, and the anonymised film."""
    view, room, out = services.studies.get(user, study, at), services.room, io.BytesIO()
    film = view.film
    if film.suffix != ".dcm":
        raise Problem(422, "no_dicom_film", "The film is not a DICOM file; upload it as DICOM to export DICOM files.")
    path = room.folder.film(film.id, film.suffix)
    with (
        room.decoder_pool.render_slots,
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for written in write_objects(view.study, path, Path(folder) / "reading", view.reader, room.settings.films):
            packed.write(written, written.name)
    return Response(out.getvalue(), media_type="application/zip", headers=_attachment(view, at, "dcm.zip"))


@curating.post("/boxes/export", response_class=Response, responses=FILES)  # type: ignore[arg-type]
def export_boxes(
    services: Services,
    user: CurrentUser,
    form: Annotated[ExportFormat, Query(alias="format", description="File format.")] = "coco",
) -> Response:
    """Export all corrections in force with finding, box, reader and check. This adds an event to the log."""
    marks = collect(services.room.store, user, form)
    suffix = next(suffix for suffix, known in SUFFIXES.items() if known == form)
    return _file(marks.to_text(form), MEDIA_TYPES[form], f"medgrape-boxes{suffix}")


@curating.post("/readings/export", response_class=Response, responses=CSV)
def export_readings(services: Services, user: CurrentUser) -> Response:
    """Export the result of every study with its reader and times. This adds an event to the log."""
    return _file(collect_readings(services.room.store, user)[1], MEDIA_TYPES["csv"], "medgrape-readings.csv")


def _attachment(view: StudyView, at: int | None, suffix: str) -> dict[str, str]:
    """Name the file after the film's id, which does not identify the patient."""
    step = "" if at is None else f"-step-{at}"
    return {"Content-Disposition": f'attachment; filename="medgrape-{view.film.id}{step}.{suffix}"'}


def _file(text: str, media: str, name: str) -> Response:
    return Response(text, media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})
