"""``medgrape calibrate``: from when on should a box be doubted?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import note, print_json, table, track
from medgrape.cli.options import Json

if TYPE_CHECKING:
    from medgrape.safety.calibration import CalibratedConcept, Calibration
    from medgrape.safety.claims import AlarmRates


def calibrate(
    run: Annotated[Path, typer.Argument(help="A run, as medgrape train leaves it; the thresholds are kept in it.")],
    data: Annotated[Path, typer.Option(help="A prepared data set with boxes of concepts that the run knows.")],
    max_false_alarms: Annotated[
        float | None, typer.Option(help="Largest share of correct boxes that may raise a warning. [default: 0.1]")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="How surely it stays below that, from 0 to 1. [default: 0.9]")
    ] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Part right from wrong claims best, and promise no rate.")
    ] = False,
    split: Annotated[str, typer.Option(help="Which films: val, or test of another data set.")] = "val",
    gate: Annotated[
        float | None, typer.Option(help="Highest variance at which a leading concept is believed. [default: any]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Learn from boxes by how much another concept may lead before a box is doubted, and keep it in the run.

    Example: medgrape calibrate runs/demo --data demo/data --max-false-alarms 0.10
    """
    from medgrape.runs.checkpoint import load_run
    from medgrape.safety.calibration import calibrate as learn
    from medgrape.safety.calibration import keep
    from medgrape.safety.thresholds import CalibrationOptions

    loaded = load_run(run)
    options = CalibrationOptions(max_false_alarms, confidence, split, gate, balanced=balanced)
    calibration = learn(loaded, data, options, track)
    keep(loaded, calibration)
    if as_json:
        print_json(calibration.to_json())
    else:
        print_calibration(calibration, run)


def print_calibration(calibration: "Calibration", run: Path) -> None:
    """What was learnt, and what it promises."""
    learnt, answer = calibration.thresholds, calibration.majority_answer or "nothing"
    pooled = (
        "all", calibration.boxes, calibration.patients, f"{learnt.pooled:.4f}", "all boxes",
        *_shares(calibration.check), *_shares(calibration.majority),
    )  # fmt: skip
    table(
        f"Safety check calibrated on {calibration.boxes:,} {learnt.data_set['split']} boxes of "
        f"{learnt.data_set['name']}; shares are of the claims on these same boxes that name the concept",
        (
            "claimed", "boxes", "patients", "lead allowed", "learnt from", "caught", "false alarms",
            f"always {answer}: caught", "false alarms",
        ),
        [*(_row(one) for one in calibration.concepts), pooled],
    )  # fmt: skip
    _print_pooled(calibration)
    if calibration.balanced is not None:
        note(
            f"Balanced over the claimed concepts: {calibration.balanced:.3f}; a check that looks at no film gets 0.500."
        )
    if calibration.settings_gate is not None:
        caught, false_alarms = _shares(calibration.with_settings_gate)
        note(
            f"With the settings' gate of {calibration.settings_gate:g}, and leads learnt in the same way, "
            f"{caught} would be caught at {false_alarms} false alarms."
        )
    for sentence in calibration.guarantee:
        note(sentence)
    for warning in calibration.warnings:
        note(f"warning: {warning}")
    note(f"kept in {run}")


def _print_pooled(calibration: "Calibration") -> None:
    """Which concepts take the pooled lead, and why."""
    promised = calibration.thresholds.max_false_alarms is not None
    lacking = "too few of its own" if promised else "too few of its own or no wrong claims"
    for one in calibration.concepts:
        if not one.own:
            note(f"{one.title} has boxes of {one.patients:,} patients, {lacking}: it takes the pooled lead.")


def _row(one: "CalibratedConcept") -> tuple[object, ...]:
    source = "its own boxes" if one.own else "all boxes"
    return (
        one.name, one.boxes, one.patients, f"{one.lead:.4f}", source, *_shares(one.check), *_shares(one.majority)
    )  # fmt: skip


def _shares(counted: "AlarmRates | None") -> tuple[str, str]:
    if counted is None:
        return "-", "-"
    return "-" if counted.caught is None else f"{counted.caught:.3f}", f"{counted.false_alarms:.3f}"
