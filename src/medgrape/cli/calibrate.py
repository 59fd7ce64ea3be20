"""``medgrape calibrate``: learn the thresholds of the safety check from boxes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from medgrape.cli.console import note, print_result, print_warnings, table, track
from medgrape.cli.options import Json

if TYPE_CHECKING:
    from medgrape.safety.calibration import Calibration
    from medgrape.safety.claims import AlarmRates


def calibrate(
    run: Annotated[Path, Argument(help="Folder of a run; the thresholds are stored in it.")],
    data: Annotated[Path, Option(help="Prepared data set with boxes of concepts that the run knows.")],
    max_false_alarms: Annotated[float | None, Option(help="Largest rate of false alarms. (default: 0.1)")] = None,
    confidence: Annotated[float | None, Option(help="Confidence that the rate is not larger. (default: 0.9)")] = None,
    balanced: Annotated[
        bool, Option("--balanced", help="Separate right from wrong boxes best, without a guaranteed rate.")
    ] = False,
    split: Annotated[str, Option(help="Split to learn from: val, or test of another data set.")] = "val",
    gate: Annotated[
        float | None,
        Option(help="No warning if the variance of the leading concept is above this. (default: no limit)"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Learn the thresholds of the safety check from boxes, and store them in the run.

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
    print_result(calibration, lambda calibration: _print_calibration(calibration, run), as_json=as_json)


def _print_calibration(calibration: "Calibration", run: Path) -> None:
    thresholds = calibration.thresholds
    rows = [
        (
            concept.name, concept.boxes, concept.patients, f"{concept.lead:.4f}",
            "its own boxes" if concept.own else "all boxes", *_rates(concept.check), *_rates(concept.majority),
        )
        for concept in calibration.concepts
    ]  # fmt: skip
    pooled = (
        "all", calibration.boxes, calibration.patients, f"{thresholds.pooled:.4f}", "all boxes",
        *_rates(calibration.check), *_rates(calibration.majority),
    )  # fmt: skip
    table(
        f"Safety check calibrated on {calibration.boxes:,} {thresholds.data_set['split']} boxes of "
        f"{thresholds.data_set['name']}; shares are of the claims on these same boxes that name the concept",
        (
            "claimed", "boxes", "patients", "lead allowed", "learnt from", "caught", "false alarms",
            f"always {calibration.majority_answer or 'nothing'}: caught", "false alarms",
        ),
        [*rows, pooled],
    )  # fmt: skip
    promised = thresholds.max_false_alarms is not None
    reason = "too few of its own" if promised else "too few of its own or no wrong claims"
    for concept in calibration.concepts:
        if not concept.own:
            note(f"{concept.title} has boxes of {concept.patients:,} patients, {reason}: it takes the pooled lead.")
    if calibration.balanced is not None:
        note(f"Balanced over the claimed concepts: {calibration.balanced:.3f}; a check that ignores films gets 0.500.")
    if calibration.settings_gate is not None:
        rates = calibration.with_settings_gate
        caught = "-" if rates.caught is None else f"{rates.caught:.3f}"
        note(
            f"With the gate of the settings, {calibration.settings_gate:g}, and leads learnt in the same way, "
            f"the check would catch {caught} with {rates.false_alarms:.3f} false alarms."
        )
    for sentence in calibration.guarantee:
        note(sentence)
    print_warnings(calibration.warnings)
    note(f"kept in {run}")


def _rates(counted: "AlarmRates | None") -> tuple[float | None, float | None]:
    return (None, None) if counted is None else (counted.caught, counted.false_alarms)
