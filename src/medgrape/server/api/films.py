"""Films: upload, list, show, remove."""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from fastapi import Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import Field
from starlette.datastructures import UploadFile

from medgrape.server import films
from medgrape.server.accounts import Role, User
from medgrape.server.api.common import A_DAY, PNG, FilmId, Identifier, Probabilities, ResponseModel, Version, When
from medgrape.server.decoder_pool import Window, png, windowed
from medgrape.server.errors import Problem, not_found
from medgrape.server.films import FilmQuery, ListedFilm
from medgrape.server.services import CurrentUser, Services, router
from medgrape.server.storage.tables import stamp


class FilmSizeResponse(ResponseModel):
    """Size in pixels of the original film, upright."""

    width: int = Field(examples=[2048])
    height: int = Field(examples=[2500])


class FilmFactsResponse(ResponseModel):
    """Properties of a film's file."""

    format: str = Field(examples=["DICOM"])
    size: FilmSizeResponse
    bits: int = Field(examples=[12])
    photometric: str = Field(examples=["MONOCHROME2"])
    transfer_syntax: str | None = Field(examples=["JPEG 2000 Image Compression (Lossless Only)"])
    modality: str | None = Field(examples=["DX"])
    view: str | None = Field(examples=["PA"])
    laterality: str | None = Field(examples=[None])
    spacing: tuple[float, float] | None = Field(description="mm between rows and columns.", examples=[(0.14, 0.14)])
    applied: tuple[str, ...] = Field(description="Changes made to the stored pixels.", examples=[("modality rescale",)])
    warnings: tuple[str, ...] = Field(description="Problems of the film that a reader must know.", examples=[()])


class FilmReading(ResponseModel):
    """A reader's study of the film."""

    reader: str = Field(examples=["ada"])
    model: Version
    changed_at: When
    study: Identifier | None = Field(description="null for studies of others, unless you are a curator.")
    corrections: int | None = Field(description="Number of steps; null likewise.", examples=[2])
    prediction: Probabilities | None = Field(description="null likewise, to keep readers independent.")


class FilmInfo(ResponseModel):
    """A film. Of its patient only sex and age are known."""

    id: Identifier
    arrived_at: When
    facts: FilmFactsResponse
    sex: str = Field(description="M, F, O, or empty.", examples=["F"])
    age: int | None = Field(description="In years; 90 means 90 or older.", examples=[57])


class FilmResponse(FilmInfo):
    """A film in the list."""

    arrived_by: str = Field(examples=["ada"])
    prediction: Probabilities | None = Field(description="Of the model in use; null until it has read the film.")
    readings: tuple[FilmReading, ...]


class UploadResponse(ResponseModel):
    """A film that was uploaded."""

    known: bool = Field(description="True: the same file was uploaded before; nothing was added.")
    film: FilmResponse


class FilmPage(ResponseModel):
    """A page of films, the newest first."""

    total: int = Field(description="Films that match, on all pages.", examples=[120])
    page: int = Field(examples=[1])
    size: int = Field(examples=[50])
    films: tuple[FilmResponse, ...]


def _film_response(listed: ListedFilm, user: User) -> FilmResponse:
    readings = []
    for study, reader in listed.studies:
        visible = study.reader_id == user.id or user.role.covers(Role.CURATOR)
        reading = FilmReading(
            reader=reader, model=study.model, changed_at=stamp(study.changed_at), study=study.id if visible else None,
            corrections=study.revision if visible else None, prediction=study.prediction if visible else None,
        )  # fmt: skip
        readings.append(reading)
    film = FilmInfo.model_validate(listed.film).model_dump()
    return FilmResponse(**film, arrived_by=listed.arrived_by, prediction=listed.prediction, readings=tuple(readings))


routes = router("films", Role.READER)
_FILE = {"type": "string", "format": "binary", "description": "A PNG, JPEG or DICOM file."}
_FORM = {"schema": {"type": "object", "required": ["file"], "properties": {"file": _FILE}}}


@routes.post(
    "/films",
    status_code=201,
    responses={200: {"model": UploadResponse, "description": "The same file was uploaded before."}},
    openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": _FORM}}},
)
async def upload(request: Request, services: Services, user: CurrentUser, response: Response) -> UploadResponse:
    """Upload a film. Names of the patient are removed before anything is stored; the file name is not stored."""
    async with services.upload_slots, request.form(max_files=1, max_fields=0) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise Problem(422, "invalid_request", "Send one file, as multipart/form-data, under the name file.")
        uploaded = await anyio.to_thread.run_sync(_add_film, services, user, file)
    response.status_code = 200 if uploaded.known else 201
    return uploaded


def _add_film(services: Services, user: User, file: UploadFile) -> UploadResponse:
    with tempfile.NamedTemporaryFile(dir=services.room.folder.uploads) as copy:
        shutil.copyfileobj(file.file, copy)
        copy.flush()
        film, known = films.add_film(services.room, user, Path(copy.name))
    if not known:
        services.background_reader.add(film.id)
    with services.room.database.reading() as session:
        return UploadResponse(known=known, film=_film_response(films.listed_film(session, film), user))


@routes.get("/films")
def list_films(services: Services, user: CurrentUser, query: Annotated[FilmQuery, Query()]) -> FilmPage:
    """List films, the newest first."""
    with services.room.database.reading() as session:
        total, page = films.list_films(session, user, query)
    responses = tuple(_film_response(film, user) for film in page)
    return FilmPage(total=total, page=query.page, size=query.size, films=responses)


@routes.get("/films/{film}")
def get_film(film: FilmId, services: Services, user: CurrentUser) -> FilmResponse:
    """Get a film."""
    with services.room.database.reading() as session:
        return _film_response(films.listed_film(session, films.film_row(session, film)), user)


@routes.get("/films/{film}/picture.png", response_class=Response, responses=PNG)
def picture(film: FilmId, services: Services, window: Annotated[Window, Query()]) -> Response:
    """Show a film with a grey window and a size."""
    with services.room.database.reading() as session:
        row = films.film_row(session, film)
    with services.room.decoder_pool.render_slots:
        content = png(windowed(films.lazy_film(services.room, row).pixels, window))
    return Response(content, media_type="image/png", headers=A_DAY)


@routes.get("/films/{film}/preview.png", response_class=FileResponse, responses=PNG)
def preview(film: FilmId, services: Services) -> FileResponse:
    """Show a film with a longest side of 256 pixels."""
    with services.room.database.reading() as session:
        row = films.film_row(session, film)
    path = services.room.folder.preview(row.id)
    if not path.is_file():
        raise not_found("film", film)
    return FileResponse(path, media_type="image/png", headers=A_DAY)


@routes.delete("/films/{film}", status_code=204)
def remove_film(film: FilmId, services: Services, user: CurrentUser) -> None:
    """Remove a film: your own that nobody else has read, or any for a curator. The log stays."""
    films.remove(services.room, user, film)
    services.studies.forget(film)
