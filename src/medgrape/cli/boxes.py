"""``medgrape boxes``: boxes out for other programs, boxes of other programs in."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import note, print_json, track
from medgrape.cli.options import Json, outside_runs
from medgrape.cli.prepare import AllowMissing, tell_dataset
from medgrape.cli.serve import ROOM, DatabaseOption, RoomOption, SettingsFile, archive, refuse_no_room
from medgrape.cli.user import COMMAND

if TYPE_CHECKING:
    from medgrape.server.room import RoomStore

app = typer.Typer(no_args_is_help=True, help="Boxes out for other programs, boxes of other programs in.")
Data = Annotated[Path, typer.Argument(metavar="DATA", help="A prepared data set.")]
OutFile = Annotated[Path, typer.Option("--out", help="A .json file for COCO, or a .csv file.")]


@app.command("export")
def export_command(data: Data, out: OutFile, as_json: Json = False) -> None:
    """Write a prepared data set's boxes for other programs, as COCO or CSV, without anything about patients.

    Example: medgrape boxes export data/tb --out boxes.json
    """
    from medgrape.exchange.boxes import export_boxes

    told = export_boxes(data, outside_runs(out))
    _tell(len(told.films), len(told.marks), out, as_json=as_json)


@app.command("import")
def import_command(
    data: Data,
    annotations: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="A file of COCO, Label Studio (JSON) or CVAT (XML).")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the new data set; it must be new or empty.")],
    anew: Annotated[
        bool, typer.Option("--replace", help="Drop the set's own boxes first, on films that the file names.")
    ] = False,
    allow_missing: AllowMissing = False,
) -> None:
    """Bring boxes that were drawn elsewhere onto the films of a prepared data set, as a new one.

    Films are found by path or name. Whether it is COCO, Label Studio or CVAT is seen from the file.

    Example: medgrape boxes import data/tb project-1.json --out data/tb-annotated
    """
    from medgrape.datasets.sources.annotated import import_boxes

    dataset = import_boxes(data, annotations, outside_runs(out), anew=anew, allow_missing=allow_missing, track=track)
    tell_dataset(dataset, out)


@app.command("collect")
def collect_command(
    out: OutFile,
    room: RoomOption = ROOM,
    database: DatabaseOption = None,
    config: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Write all that people drew in a reading room, as COCO or CSV; that is written into the room's log.

    Example: medgrape boxes collect --room reading-room --out drawn.json
    """
    from medgrape.exchange.boxes import export_format

    form = export_format(outside_runs(out))
    opened = room_archive(room, database, config)
    from medgrape.server.exports import collect

    told = collect(opened, COMMAND, form)
    told.write(out)
    _tell(len(told.films), len(told.marks), out, as_json=as_json)


def room_archive(room: Path, database: str | None, config: Path | None) -> "RoomStore":
    """The database of a room that is there."""
    refuse_no_room(room)
    return archive(room, database, config)


def _tell(films: int, marks: int, out: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({"films": films, "marks": marks, "out": str(out)})
    else:
        note(f"{films:,} films, {marks:,} marks -> {out}")
