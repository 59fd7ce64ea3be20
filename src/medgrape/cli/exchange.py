"""``medgrape boxes`` and ``medgrape readings``: exchange boxes and readings with other programs."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

from medgrape.cli.console import note, print_result, track
from medgrape.cli.options import Json, outside_runs
from medgrape.cli.prepare import AllowMissing, print_dataset
from medgrape.cli.room import COMMAND_LINE, ROOM, Database, Room, ServerConfig, open_existing_room
from medgrape.errors import UserError
from medgrape.files import write_text

boxes = Typer(no_args_is_help=True, help="Export boxes to other programs, and import theirs.")
readings = Typer(no_args_is_help=True, help="Export readings of medgrape predict or of a reading room.")
Data = Annotated[Path, Argument(metavar="DATA", help="Folder of a prepared data set.")]
Readings = Annotated[Path, Argument(metavar="READINGS", help="Output folder of medgrape predict.")]
CsvFile = Annotated[Path, Option("--out", help="A .csv file.")]
OutFile = Annotated[Path, Option("--out", help="File to write: .json for COCO, or .csv.")]


@boxes.command("export")
def export_boxes_command(data: Data, out: OutFile, as_json: Json = False) -> None:
    """Write the boxes of a prepared data set as COCO or CSV, without data about patients.

    Example: medgrape boxes export data/tb --out boxes.json
    """
    from medgrape.exchange.boxes import export_boxes

    exported = export_boxes(data, outside_runs(out))
    _print_counts(len(exported.films), len(exported.marks), out, as_json=as_json)


@boxes.command("import")
def import_boxes_command(
    data: Data,
    annotations: Annotated[
        Path, Argument(exists=True, dir_okay=False, help="COCO, Label Studio (JSON) or CVAT (XML).")
    ],
    out: Annotated[Path, Option(help="Folder for the new data set; it must be new or empty.")],
    anew: Annotated[bool, Option("--replace", help="Remove the old boxes of all films that the file names.")] = False,
    allow_missing: AllowMissing = False,
) -> None:
    """Copy a prepared data set and add boxes that were drawn with another program.

    Films are matched by path or file name. The format of the file is detected.

    Example: medgrape boxes import data/tb project-1.json --out data/tb-annotated
    """
    from medgrape.datasets.sources.annotated import import_boxes

    dataset = import_boxes(data, annotations, outside_runs(out), anew=anew, allow_missing=allow_missing, track=track)
    print_dataset(dataset, out)


@boxes.command("collect")
def collect_boxes(
    out: OutFile, room: Room = ROOM, database: Database = None, config: ServerConfig = None, as_json: Json = False
) -> None:
    """Write all boxes that people drew in a reading room, as COCO or CSV. The room's log records this.

    Example: medgrape boxes collect --room reading-room --out drawn.json
    """
    from medgrape.exchange.boxes import export_format

    form = export_format(outside_runs(out))
    store = open_existing_room(room, database, config)
    from medgrape.server.exports import collect

    collected = collect(store, COMMAND_LINE, form)
    collected.write(out)
    _print_counts(len(collected.films), len(collected.marks), out, as_json=as_json)


def _print_counts(films: int, marks: int, out: Path, *, as_json: bool) -> None:
    counts = {"films": films, "marks": marks, "out": out}
    print_result(counts, lambda _: note(f"{films:,} films, {marks:,} marks -> {out}"), as_json=as_json)


@readings.command("export")
def export_readings(folder: Readings, out: OutFile, as_json: Json = False) -> None:
    """Write readings as CSV with one row per film, or the strongest point of each finding as COCO keypoints.

    Example: medgrape readings export readings --out readings.csv
    """
    from medgrape.bulk.results import results_in
    from medgrape.exchange.readings import write_readings

    results = results_in(folder)
    written = write_readings(results.schema, lambda: results.batches(track), outside_runs(out))
    line = f"{written.films:,} films, {written.refused:,} of them refused, {written.points:,} points -> {out}"
    print_result(asdict(written) | {"out": out}, lambda _: note(line), as_json=as_json)


@readings.command("collect")
def collect_readings_command(
    out: CsvFile, room: Room = ROOM, database: Database = None, config: ServerConfig = None, as_json: Json = False
) -> None:
    """Write the result of every study of a reading room as CSV, one row per study. The room's log records this.

    Example: medgrape readings collect --room reading-room --out readings.csv
    """
    if outside_runs(out).suffix.lower() != ".csv":
        raise UserError(f"--out takes a .csv file, not {out}.")
    store = open_existing_room(room, database, config)
    from medgrape.server.exports import collect_readings

    count, text = collect_readings(store, COMMAND_LINE)
    write_text(out, text)
    print_result({"readings": count, "out": out}, lambda _: note(f"{count:,} readings -> {out}"), as_json=as_json)
