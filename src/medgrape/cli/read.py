"""``medgrape read``: read one film, and correct the reading."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from medgrape.cli.console import err, note, print_json, print_warnings, table
from medgrape.cli.options import Json, ModelOption, check_picture_path, parse_box, parse_concept
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.corrections.statements import Correction
    from medgrape.explain.explanation import Explanation
    from medgrape.geometry import Box
    from medgrape.safety.check import SafetyCheck
    from medgrape.study import Study


def read(
    film: Annotated[Path, Argument(help="A PNG, JPEG or DICOM file.")],
    model: ModelOption,
    box: Annotated[
        list[str] | None,
        Option(help="CONCEPT:x1,y1,x2,y2: this concept is in the box; all: some concept is (unchecked)."),
    ] = None,
    not_box: Annotated[
        list[str] | None, Option(help="CONCEPT:x1,y1,x2,y2: it is not in this box; all: no finding is.")
    ] = None,
    reject: Annotated[list[str] | None, Option(help="CONCEPT: it is not on this film; all: no finding is.")] = None,
    confirm: Annotated[bool, Option("--confirm", help="Apply boxes even if the safety check warns.")] = False,
    check: Annotated[
        list[str] | None, Option(help="CONCEPT:x1,y1,x2,y2: only print what the model sees there.")
    ] = None,
    save: Annotated[Path | None, Option(help="Write the explanation as one picture, a .png file.")] = None,
    dicom_out: Annotated[Path | None, Option(help="New folder for report, maps and boxes as DICOM files.")] = None,
    observer: Annotated[str | None, Option(help="Who corrected, for the DICOM report: Curie^Marie.")] = None,
    as_json: Json = False,
) -> None:
    """Read one film: probabilities of the classes, findings with their places, and similar training films.

    Boxes are in pixels of the original film. --box, --not-box, --reject and --check are repeatable.

    Example: medgrape read chest.dcm --model runs/demo --box active_tb:310,120,420,260 --save evidence.png
    """
    _check_targets(film, save, dicom_out, observer)
    corrections = _parse_corrections(box or [], not_box or [], reject or [])
    if check:
        if corrections or confirm or save is not None or dicom_out is not None:
            raise UserError(
                "--check only asks; leave out --box, --not-box, --reject, --confirm, --save and --dicom-out."
            )
        _check_boxes(film, model, check, as_json=as_json)
        return
    study = _correct(_open(model, film, for_dicom=dicom_out is not None), corrections, confirmed=confirm)
    explanation = study.explain()
    if save is not None:
        explanation.save(save)
    dicom_files: tuple[Path, ...] = ()
    if dicom_out is not None:
        from medgrape.hospital.objects import write_dicom_reading

        with err.status("writing DICOM"):
            dicom_files = write_dicom_reading(study, film, dicom_out, observer=observer)
    if as_json:
        report = {"path": film, "saved": save, **explanation.to_json()}
        print_json(report | {"log": study.log, "dicom": dicom_files})
        return
    _print_explanation(film, explanation)
    if study.log:
        _print_log(study.log)
    if save is not None:
        note(f"evidence: {save}")
    if dicom_files:
        note(f"DICOM: {', '.join(str(path) for path in dicom_files)}")


def _check_targets(film: Path, save: Path | None, dicom_out: Path | None, observer: str | None) -> None:
    """Raise an error, before the film is read, if the output cannot be written."""
    if save is not None:
        check_picture_path(save)
        if save.resolve() == film.resolve():
            raise UserError(f"--save would overwrite the film {film} itself; choose another place.")
    if dicom_out is not None:
        from medgrape.hospital.objects import check_output_folder

        check_output_folder(dicom_out, observer)
    elif observer is not None:
        raise UserError("--observer is named in the DICOM report; add --dicom-out DIR.")


def _parse_corrections(boxes: list[str], not_boxes: list[str], rejected: list[str]) -> "list[Correction]":
    """Return positive boxes, then negative ones, then rejections."""
    positive = [parse_box("--box", text) for text in boxes]
    negative = [parse_box("--not-box", text) for text in not_boxes]
    if not (positive or negative or rejected):
        return []
    from medgrape.corrections.statements import BoxCorrection, Rejection  # torch is slow to import

    return [
        *(BoxCorrection(box, concept) for concept, box in positive),
        *(BoxCorrection(box, concept, positive=False) for concept, box in negative),
        *(Rejection(parse_concept(name)) for name in rejected),
    ]


def _correct(study: "Study", corrections: "list[Correction]", *, confirmed: bool) -> "Study":
    from medgrape.study import ConceptMismatchError

    try:
        return study.correct(*corrections, confirmed=confirmed)
    except ConceptMismatchError as error:
        raise UserError(f"{error.check.reason} To apply the box anyway, add --confirm.") from error


def _open(model: Path, film: Path, *, for_dicom: bool = False) -> "Study":
    """Load the model and read the film; the decoder starts while torch is being imported."""
    from medgrape.films.decoder import Decoder

    with Decoder() as decoder:
        decoder.start()
        from medgrape.reader import load

        reader = load(model)
        if for_dicom:
            from medgrape.hospital.objects import check_source

            check_source(film, reader.loaded.run.config.limits)
        return reader.open(film, decoder)


def _check_boxes(film: Path, model: Path, texts: list[str], *, as_json: bool) -> None:
    """Print what the model sees inside each box."""
    claims = []
    for text in texts:
        concept, box = parse_box("--check", text)
        if concept is None:
            raise UserError("--check takes one concept, not all: name the finding that you see in the box.")
        claims.append((box, concept))
    study = _open(model, film)
    checks = [(box, study.check(box, concept)) for box, concept in claims]
    if as_json:
        rows = [{"box": list(box.corners), **check.to_json()} for box, check in checks]
        print_json({"path": film, "checks": rows})
        return
    for box, check in checks:
        _print_check(box, check)


def _print_check(box: "Box", check: "SafetyCheck") -> None:
    table(
        f"Inside {', '.join(f'{corner:g}' for corner in box.corners)}, claimed: {check.claimed}",
        ("finding", "mean similarity", "variance"),
        [(concept.name, concept.mean, f"{concept.variance:.2g}") for concept in check.concepts],
    )
    note(f"{'warning: ' if check.mismatch else ''}{check.reason}")
    note(check.origin)


def _print_log(log: list[dict[str, Any]]) -> None:
    rows = []
    for entry in log:
        box = "" if entry["box"] is None else ", ".join(f"{corner:g}" for corner in entry["box"])
        classes = []
        for prediction in (entry["prediction_before"], entry["prediction_after"]):
            name, probability = next(iter(prediction.items()))
            classes.append(f"{name} {probability:.3f}")
        rows.append((entry["kind"], entry["concept"] or "all", box, "yes" if entry["confirmed"] else "", *classes))
    table("Corrections", ("what", "concept", "box", "confirmed", "class before", "class after"), rows)


def _print_explanation(film: Path, explanation: "Explanation") -> None:
    report = explanation.to_json()
    table(str(film), ("class", "probability"), report["probabilities"].items())
    table(
        "Findings",
        ("finding", "seen", "score", "without it", "with it", "strongest at (x, y)", "like film"),
        [
            (
                row["title"], row["words"], row["score"], row["absent_score"], row["present_score"],
                f"{row['peak']['x']:.0f}, {row['peak']['y']:.0f}",
                row["exemplars"][0]["film"] if row["exemplars"] else "none to show",
            )
            for row in report["concepts"]
        ],
    )  # fmt: skip
    print_warnings(report["warnings"])
    note(report["notice"])
