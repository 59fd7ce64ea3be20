"""Films: upload, list, look at, remove."""

import os
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
from medgrape.server.api.common import FilmId, Identifier, Shares, Side, Told, Version, When
from medgrape.server.films import Listed, Taken, Wanted
from medgrape.server.inference.decoder_pool import Window
from medgrape.server.problems import Problem, not_found
from medgrape.server.security.roles import Role, User
from medgrape.server.services import CurrentUser, ServiceContainer, Services, media_response, router
from medgrape.server.storage.tables import StudyRow, stamp


class FilmSizeTold(Told):
    """In pixels of the original film, as it stands upright."""

    width: int = Field(examples=[2048])
    height: int = Field(examples=[2500])


class FilmFactsTold(Told):
    """What a film is; of its patient only sex and age stay."""

    format: str = Field(examples=["DICOM"])
    size: FilmSizeTold
    bits: int = Field(examples=[12])
    photometric: str = Field(examples=["MONOCHROME2"])
    transfer_syntax: str | None = Field(examples=["JPEG 2000 Image Compression (Lossless Only)"])
    modality: str | None = Field(examples=["DX"])
    view: str | None = Field(examples=["PA"])
    laterality: str | None = Field(examples=[None])
    spacing: tuple[float, float] | None = Field(
        description="Millimetres between rows and columns.", examples=[(0.14, 0.14)]
    )
    applied: tuple[str, ...] = Field(
        description="What was done to the stored pixels, in order.", examples=[("modality rescale",)]
    )
    warnings: tuple[str, ...] = Field(description="What a reader should know before trusting the film.", examples=[()])


class ReadingTold(Told):
    """That somebody read the film."""

    reader: str = Field(examples=["ada"])
    model: Version
    changed_at: When
    study: Identifier | None = Field(description="Only of one's own studies, or for a curator.")
    corrections: int | None = Field(description="How many steps were taken; likewise.", examples=[2])
    prediction: Shares | None = Field(description="What came of it; likewise, so that readers stay independent.")


class FilmTold(Told):
    """A film in the list."""

    id: Identifier
    arrived_at: When
    arrived_by: str = Field(examples=["ada"])
    facts: FilmFactsTold
    sex: str = Field(description="M, F, O, or empty.", examples=["F"])
    age: int | None = Field(description="In years; 90 for all who are older.", examples=[57])
    prediction: Shares | None = Field(description="Of the model in use; null until it has looked at the film.")
    readings: tuple[ReadingTold, ...]


class FilmTaken(Told):
    """A film that was uploaded."""

    known: bool = Field(description="Whether the very same file was here before; then nothing was added.")
    film: FilmTold


class FilmPage(Told):
    """A page of films, the newest first."""

    total: int = Field(description="How many films fit what was asked for, on all pages.", examples=[120])
    page: int = Field(examples=[1])
    size: int = Field(examples=[50])
    films: tuple[FilmTold, ...]


def film_told(one: Listed, user: User) -> FilmTold:
    """A film; what others made of it is for curators only."""
    film = one.film
    return FilmTold(
        id=film.id,
        arrived_at=stamp(film.arrived_at),
        arrived_by=one.arrived_by,
        facts=FilmFactsTold.model_validate(film.facts),
        sex=film.sex,
        age=film.age,
        prediction=one.prediction,
        readings=tuple(_reading_told(study, name, user) for study, name in one.readings),
    )


def _reading_told(study: StudyRow, name: str, user: User) -> ReadingTold:
    may = study.reader_id == user.id or user.role.covers(Role.CURATOR)
    return ReadingTold(
        reader=name,
        model=study.model,
        changed_at=stamp(study.changed_at),
        study=study.id if may else None,
        corrections=study.revision if may else None,
        prediction=study.prediction if may else None,
    )


routes = router("films", Role.READER)
PNG = media_response("image/png", "The picture.")
A_DAY = {"Cache-Control": "private, max-age=86400, immutable"}
_FORM = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "properties": {
                    "file": {"type": "string", "format": "binary", "description": "A PNG, JPEG or DICOM file."}
                },
            }
        }
    },
}


@routes.post(
    "/films",
    status_code=201,
    responses={200: {"model": FilmTaken, "description": "It was here before."}},
    openapi_extra={"requestBody": _FORM},
)
async def upload(request: Request, services: Services, user: CurrentUser, response: Response) -> FilmTaken:
    """Take a film in. What names the patient is removed before anything is kept; its file's name is not kept."""
    async with services.upload_slots, request.form(max_files=1, max_fields=0) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise Problem(422, "invalid_request", "Send one file, as multipart/form-data, under the name file.")
        taken, told = await anyio.to_thread.run_sync(_taken, services, user, file)
    response.status_code = 200 if taken.known else 201
    return FilmTaken(known=taken.known, film=told)


def _taken(services: ServiceContainer, user: User, file: UploadFile) -> tuple[Taken, FilmTold]:
    handle, name = tempfile.mkstemp(dir=services.room.folder.uploads)
    try:
        with os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(file.file, copy)
        taken = films.take_in(services.room, user, Path(name))
    finally:
        Path(name).unlink(missing_ok=True)
    if not taken.known:
        services.background_reader.soon(taken.film.id)
    with services.room.database.reading() as session:
        return taken, film_told(films.one_listed(session, taken.film), user)


@routes.get("/films")
def list_films(
    services: Services,
    user: CurrentUser,
    page: Annotated[int, Query(ge=1, le=10**6, examples=[1], description="From 1.")] = 1,
    size: Annotated[int, Query(ge=1, le=200, examples=[50], description="Films on a page.")] = 50,
    search: Annotated[
        str,
        Query(max_length=100, examples=["active"], description="Start of an id, or a view, format, class, uploader."),
    ] = "",
    likeliest: Annotated[
        str, Query(max_length=64, examples=["active_tb"], description="The class the model in use thinks likeliest.")
    ] = "",
    view: Annotated[str, Query(max_length=16, examples=["PA"], description="As DICOM names it.")] = "",
    unread: Annotated[bool, Query(description="Only films that you have not opened.")] = False,
    mine: Annotated[bool, Query(description="Only films that you uploaded.")] = False,
) -> FilmPage:
    """List films, the newest first."""
    wanted = Wanted(
        page, size, search.replace("\0", ""), likeliest.replace("\0", ""), view.replace("\0", ""), unread, mine
    )
    with services.room.database.reading() as session:
        total, found = films.listed(session, user, wanted)
    return FilmPage(total=total, page=page, size=size, films=tuple(film_told(one, user) for one in found))


@routes.get("/films/{film}")
def get_film(film: FilmId, services: Services, user: CurrentUser) -> FilmTold:
    """Tell what is known of a film."""
    with services.room.database.reading() as session:
        return film_told(films.one_listed(session, films.film_row(session, film)), user)


@routes.get("/films/{film}/picture.png", response_class=Response, responses=PNG)
def picture(
    film: FilmId,
    services: Services,
    centre: Annotated[
        float, Query(ge=-1, le=2, examples=[0.5], description="Middle of the window, as a share of all greys.")
    ] = 0.5,
    width: Annotated[float, Query(gt=0.001, le=4, examples=[1.0], description="Width of the window, likewise.")] = 1.0,
    inverted: Annotated[bool, Query(description="Black for white.")] = False,
    side: Side = None,
) -> Response:
    """Show a film at any window and size."""
    with services.room.database.reading() as session:
        row = films.film_row(session, film)
    shown = services.room.decoder_pool.picture(
        films.pictured(services.room, row), Window(centre, width, inverted, side)
    )
    return Response(shown, media_type="image/png", headers=A_DAY)


@routes.get("/films/{film}/preview.png", response_class=FileResponse, responses=PNG)
def preview(film: FilmId, services: Services) -> FileResponse:
    """Show a film small: 256 pixels along its longer side."""
    with services.room.database.reading() as session:
        row = films.film_row(session, film)
    path = services.room.folder.preview(row.id)
    if not path.is_file():
        raise not_found("film", film)
    return FileResponse(path, media_type="image/png", headers=A_DAY)


@routes.delete("/films/{film}", status_code=204)
def remove_film(film: FilmId, services: Services, user: CurrentUser) -> None:
    """Remove a film for good: one's own that nobody else has read, or any for a curator. The log stays."""
    films.remove(services.room, user, film)
    services.studies.forget(film)
