"""All boxes of the room, for other programs."""

from typing import Annotated

from fastapi import Query, Response

from medgrape.interchange.boxes import MEDIA, SUFFIXES, Form
from medgrape.server.desk import Desk, Who, router
from medgrape.server.drawn import collect
from medgrape.server.security.roles import Role

routes = router("boxes", Role.CURATOR)
FILES = {200: {"description": "A COCO file, or a row for each mark.", "content": {
    "application/json": {"schema": {"type": "object"}}, "text/csv": {"schema": {"type": "string"}},
}}}  # fmt: skip


@routes.post("/boxes/export", response_class=Response, responses=FILES)  # type: ignore[arg-type]
def export_boxes(
    desk: Desk,
    who: Who,
    form: Annotated[Form, Query(alias="format", description="For which kind of program.")] = "coco",
) -> Response:
    """Take along all that people drew and that stands: where, which finding, by whom, and what the check said of it.

    That it was taken along is itself written down.
    """
    told = collect(desk.room.archive, who, form)
    suffix = next(suffix for suffix, known in SUFFIXES.items() if known == form)
    headers = {"Content-Disposition": f'attachment; filename="medgrape-boxes{suffix}"'}
    return Response(told.written(form), media_type=MEDIA[form], headers=headers)
