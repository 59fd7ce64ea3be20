"""``medgrape export``: write a model as one ONNX file."""

from pathlib import Path
from typing import Annotated

from typer import Option

from medgrape.cli.console import err, note, print_json, table, track
from medgrape.cli.options import Json, RunArgument
from medgrape.errors import UserError


def export(
    run: RunArgument,
    file_format: Annotated[str, Option("--format", help="Format of the file; only onnx is supported.")] = "onnx",
    out: Annotated[Path | None, Option(help="File to write. (default: RUN.onnx or RUN-int8.onnx)")] = None,
    int8: Annotated[bool, Option("--int8", help="Quantise the backbone to 8-bit integers; needs --data.")] = False,
    data: Annotated[Path | None, Option(help="For --int8: prepared data set to calibrate and compare on.")] = None,
    films: Annotated[int, Option(min=16, help="For --int8: number of training films to calibrate on.")] = 256,
    as_json: Json = False,
) -> None:
    """Write a model as one ONNX file: preprocessing, evidence, head, maps, and the data of the safety check.

    Example: medgrape export runs/demo --format onnx --int8 --data demo/data
    """
    if file_format != "onnx":
        raise UserError(f"--format takes onnx, not {file_format!r}.")
    if int8 and data is None:
        raise UserError("--int8 is calibrated on training films: name a prepared data set with --data DIR.")
    if data is not None and not int8:
        raise UserError("--data is for --int8 only; leave it out, or add --int8.")
    from medgrape.evaluation.export_quality import compare_export
    from medgrape.runs.checkpoint import load_run
    from medgrape.runs.export import Calibration, export_onnx
    from medgrape.runs.manifest import place_beside

    beside = place_beside(run)
    target = out or beside.with_name(f"{beside.name}{'-int8' if int8 else ''}.onnx")
    loaded = load_run(run)
    with err.status("exporting"):
        exported = export_onnx(loaded, target, None if data is None else Calibration(data, films), track=track)
    comparison = None if data is None else compare_export(loaded, exported, data, track)
    size, runtime = target.stat().st_size, exported.run.model.runtime
    if as_json:
        print_json({"file": target, "bytes": size, "runtime": runtime, "loss": comparison})
        return
    if comparison is not None:
        table(
            f"Loss by int8, on {comparison.films:,} validation films",
            ("figure", "torch", "int8", "points"),
            [
                (figure.name, figure.before, figure.after, f"{100 * figure.change:+.1f}")
                for figure in comparison.figures
            ],
        )
        note(f"The predicted class is the same on {100 * comparison.same_answer:.1f} % of these films.")
    note(f"{target}: {size / 1e6:,.1f} MB, {runtime}. Use it: medgrape read FILM --model {target}")
