"""``medgrape readings``: what ``medgrape predict`` read, for other programs."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from medgrape.cli.boxes import OutFile
from medgrape.cli.console import note, print_json
from medgrape.cli.options import Json, outside_runs

app = typer.Typer(no_args_is_help=True, help="What medgrape predict read, for other programs.")


@app.callback()
def _group() -> None:
    """A group, although it has one command."""


@app.command("export")
def export_command(
    readings: Annotated[Path, typer.Argument(help="Folder that medgrape predict filled.")],
    out: OutFile,
    as_json: Json = False,
) -> None:
    """Write readings as CSV, a row for each film, or where the model points as COCO keypoints.

    Example: medgrape readings export readings --out readings.csv
    """
    from medgrape.engine.results import results_in
    from medgrape.interchange.readings import write_readings

    results = results_in(readings)
    written = write_readings(results.schema, results.batches, outside_runs(out))
    if as_json:
        print_json(asdict(written) | {"out": str(out)})
        return
    note(f"{written.films:,} films, {written.refused:,} of them refused, {written.points:,} points -> {out}")
