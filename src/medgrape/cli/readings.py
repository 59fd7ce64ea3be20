"""``medgrape readings``: what was read in bulk, or in a room, for other programs."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from medgrape.cli.boxes import OutFile, room_archive
from medgrape.cli.console import note, print_json, track
from medgrape.cli.options import Json, outside_runs
from medgrape.cli.serve import ROOM, DatabaseOption, RoomOption, SettingsFile
from medgrape.cli.user import COMMAND
from medgrape.errors import UserError
from medgrape.files import whole_file

app = typer.Typer(no_args_is_help=True, help="What was read in bulk, or in a reading room, for other programs.")


@app.command("export")
def export_command(
    readings: Annotated[Path, typer.Argument(help="Folder that medgrape predict filled.")],
    out: OutFile,
    as_json: Json = False,
) -> None:
    """Write readings as CSV, a row for each film, or where the model points as COCO keypoints.

    Example: medgrape readings export readings --out readings.csv
    """
    from medgrape.bulk.results import results_in
    from medgrape.exchange.readings import write_readings

    results = results_in(readings)
    written = write_readings(results.schema, lambda: results.batches(track), outside_runs(out))
    if as_json:
        print_json(asdict(written) | {"out": str(out)})
        return
    note(f"{written.films:,} films, {written.refused:,} of them refused, {written.points:,} points -> {out}")


@app.command("collect")
def collect_command(
    out: Annotated[Path, typer.Option(help="A .csv file.")],
    room: RoomOption = ROOM,
    database: DatabaseOption = None,
    config: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Write what came of every study of a reading room, a row for each; that is written into the room's log.

    Example: medgrape readings collect --room reading-room --out readings.csv
    """
    if outside_runs(out).suffix.lower() != ".csv":
        raise UserError(f"--out takes a .csv file, not {out}.")
    opened = room_archive(room, database, config)
    from medgrape.server.exports import collect_readings

    count, text = collect_readings(opened, COMMAND)
    with whole_file(out) as draft:
        draft.write_text(text, "utf-8")
    if as_json:
        print_json({"readings": count, "out": str(out)})
    else:
        note(f"{count:,} readings -> {out}")
