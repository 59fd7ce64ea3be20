"""``medgrape export``: a model for other programs, in one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import err, note, print_json, table, track
from medgrape.cli.options import Json, RunArgument
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.evaluation.export_quality import ExportLoss


def export(
    run: RunArgument,
    file_format: Annotated[str, typer.Option("--format", help="onnx is the only one so far.")] = "onnx",
    out: Annotated[
        Path | None, typer.Option(help="The file to write. [default: RUN.onnx or RUN-int8.onnx, beside the run]")
    ] = None,
    int8: Annotated[bool, typer.Option("--int8", help="Compute the backbone in 8 bit integers; needs --data.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="int8: the prepared data set; calibrated on training films, compared on validation films."),
    ] = None,
    films: Annotated[int, typer.Option(min=16, help="int8: how many training films to calibrate on.")] = 256,
    as_json: Json = False,
) -> None:
    """Write a model as one ONNX file: preprocessing, evidence, head, maps and what the safety check needs.

    Example: medgrape export runs/demo --format onnx --int8 --data demo/data
    """
    if file_format != "onnx":
        raise UserError(f"--format is onnx; {file_format!r} is not known.")
    if int8 and data is None:
        raise UserError("--int8 is calibrated on training films: name a prepared data set with --data DIR.")
    if data is not None and not int8:
        raise UserError("--data is for --int8 only; leave it out, or add --int8.")
    from medgrape.evaluation.export_quality import loss_of_export
    from medgrape.runs.checkpoint import load_run
    from medgrape.runs.export import Calibration, export_onnx
    from medgrape.runs.manifest import place_beside

    beside = place_beside(run)
    target = out or beside.with_name(f"{beside.name}{'-int8' if int8 else ''}.onnx")
    loaded = load_run(run)
    with err.status("exporting"):
        exported = export_onnx(loaded, target, None if data is None else Calibration(data, films), track=track)
    loss = None if data is None else loss_of_export(loaded, exported, data, track)
    size, runtime = target.stat().st_size, exported.run.model.runtime
    if as_json:
        told = {"file": str(target), "bytes": size, "runtime": runtime}
        print_json(told | {"loss": None if loss is None else loss.to_json()})
        return
    if loss is not None:
        _print_loss(loss)
    note(f"{target}: {size / 1e6:,.1f} MB, {runtime}. Read with it: medgrape read FILM --model {target}")


def _print_loss(loss: "ExportLoss") -> None:
    rows = [(one.name, f"{one.before:.3f}", f"{one.after:.3f}", f"{100 * one.change:+.1f}") for one in loss.figures]
    table(f"What int8 costs, on {loss.films:,} validation films", ("figure", "torch", "int8", "points"), rows)
    note(f"The answer is the same on {100 * loss.same_answer:.1f} % of these films.")
