"""Films: upload, list, look at, remove."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from fastapi import Query, Request, Response
from fastapi.responses import FileResponse
from starlette.datastructures import UploadFile

from medgrape.server import films
from medgrape.server.desk import Desk, Desks, Who, produces, router
from medgrape.server.films import Taken, Wanted
from medgrape.server.problems import Problem, not_found
from medgrape.server.reading.darkroom import Window
from medgrape.server.routes.params import FilmId, Side
from medgrape.server.schemas.films import FilmPage, FilmTaken, FilmTold
from medgrape.server.security.roles import Person, Role
from medgrape.server.telling import film_told

routes = router("films", Role.READER)
PNG = produces("image/png", "The picture.")
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
async def upload(request: Request, desk: Desk, who: Who, response: Response) -> FilmTaken:
    """Take a film in. What names the patient is removed before anything is kept; its file's name is not kept."""
    async with desk.arrivals, request.form(max_files=1, max_fields=0) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise Problem(422, "invalid_request", "Send one file, as multipart/form-data, under the name file.")
        taken, told = await anyio.to_thread.run_sync(_taken, desk, who, file)
    response.status_code = 200 if taken.known else 201
    return FilmTaken(known=taken.known, film=told)


def _taken(desk: Desks, who: Person, file: UploadFile) -> tuple[Taken, FilmTold]:
    handle, name = tempfile.mkstemp(dir=desk.room.folder.arrivals)
    try:
        with os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(file.file, copy)
        taken = films.take_in(desk.room, who, Path(name))
    finally:
        Path(name).unlink(missing_ok=True)
    if not taken.known:
        desk.first_sights.soon(taken.film.id)
    with desk.room.database.reading() as session:
        return taken, film_told(films.one_listed(session, taken.film), who)


@routes.get("/films")
def list_films(
    desk: Desk,
    who: Who,
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
    with desk.room.database.reading() as session:
        total, found = films.listed(session, who, wanted)
    return FilmPage(total=total, page=page, size=size, films=tuple(film_told(one, who) for one in found))


@routes.get("/films/{film}")
def get_film(film: FilmId, desk: Desk, who: Who) -> FilmTold:
    """Tell what is known of a film."""
    with desk.room.database.reading() as session:
        return film_told(films.one_listed(session, films.film_row(session, film)), who)


@routes.get("/films/{film}/picture.png", response_class=Response, responses=PNG)
def picture(
    film: FilmId,
    desk: Desk,
    centre: Annotated[
        float, Query(ge=-1, le=2, examples=[0.5], description="Middle of the window, as a share of all greys.")
    ] = 0.5,
    width: Annotated[float, Query(gt=0.001, le=4, examples=[1.0], description="Width of the window, likewise.")] = 1.0,
    inverted: Annotated[bool, Query(description="Black for white.")] = False,
    side: Side = None,
) -> Response:
    """Show a film at any window and size."""
    with desk.room.database.reading() as session:
        row = films.film_row(session, film)
    shown = desk.room.darkroom.picture(films.pictured(desk.room, row), Window(centre, width, inverted, side))
    return Response(shown, media_type="image/png", headers=A_DAY)


@routes.get("/films/{film}/preview.png", response_class=FileResponse, responses=PNG)
def preview(film: FilmId, desk: Desk) -> FileResponse:
    """Show a film small: 256 pixels along its longer side."""
    with desk.room.database.reading() as session:
        row = films.film_row(session, film)
    path = desk.room.folder.preview(row.id)
    if not path.is_file():
        raise not_found("film", film)
    return FileResponse(path, media_type="image/png", headers=A_DAY)


@routes.delete("/films/{film}", status_code=204)
def remove_film(film: FilmId, desk: Desk, who: Who) -> None:
    """Remove a film for good: one's own that nobody else has read, or any for a curator. The log stays."""
    films.remove(desk.room, who, film)
    desk.studies.forget(film)
