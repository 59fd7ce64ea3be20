"""All boxes and readings of the room, for other programs."""

from typing import Annotated

from fastapi import Query, Response

from medgrape.interchange.boxes import MEDIA, SUFFIXES, Form
from medgrape.server.desk import Desk, Who, produces, router
from medgrape.server.drawn import collect
from medgrape.server.readings import collect_readings
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
    return _file(told.written(form), MEDIA[form], f"medgrape-boxes{suffix}")


@routes.post("/readings/export", response_class=Response, responses=produces("text/csv", "A row for each study."))
def export_readings(desk: Desk, who: Who) -> Response:
    """Take along what came of every study: classes, by whom, when, after how many steps; itself written down."""
    return _file(collect_readings(desk.room.archive, who)[1], MEDIA["csv"], "medgrape-readings.csv")


def _file(text: str, media: str, name: str) -> Response:
    return Response(text, media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})
