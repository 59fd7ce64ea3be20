"""``medgrape read``: what does a model see on this film, why, and what if a person knows better?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medgrape.cli.console import err, note, print_json, printable, table
from medgrape.cli.options import Json, RunOption, boxed, one_or_all, picture_place
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.corrections.statements import Correction
    from medgrape.explain.explanation import Explanation
    from medgrape.geometry import Box
    from medgrape.safety.check import SafetyCheck
    from medgrape.study import Study

Boxes = Annotated[
    list[str] | None, typer.Option("--box", help="CONCEPT:x1,y1,x2,y2: it is inside this box (all: look here).")
]
NotBoxes = Annotated[
    list[str] | None, typer.Option("--not-box", help="CONCEPT:x1,y1,x2,y2: it is not inside (all: nothing is).")
]
Rejected = Annotated[list[str] | None, typer.Option("--reject", help="CONCEPT: it is not on this film (all: none is).")]
Checked = Annotated[
    list[str] | None, typer.Option("--check", help="CONCEPT:x1,y1,x2,y2: only ask what the model sees inside.")
]


def read(
    film: Annotated[Path, typer.Argument(help="A PNG, JPEG or DICOM file.")],
    model: RunOption,
    box: Boxes = None,
    not_box: NotBoxes = None,
    reject: Rejected = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Apply boxes though the model doubts them.")] = False,
    check: Checked = None,
    save: Annotated[Path | None, typer.Option(help="Write the evidence as one picture, a .png file.")] = None,
    dicom_out: Annotated[
        Path | None, typer.Option(help="Write report, maps and boxes as DICOM files into this new folder.")
    ] = None,
    observer: Annotated[
        str | None, typer.Option(help="Who corrected it, as the DICOM report names people: Curie^Marie.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read one film: classes, ranked findings, where they are, and the training films behind them.

    Boxes are in pixels of the original film; --box, --not-box, --reject and --check may each be given several times.

    Example: medgrape read chest.dcm --model runs/demo --box active_tb:310,120,420,260 --save evidence.png
    """
    _check_targets(film, save, dicom_out, observer)
    corrections = _corrections(box or [], not_box or [], reject or [])
    if check:
        if corrections or confirm or save is not None or dicom_out is not None:
            raise UserError(
                "--check only asks; leave out --box, --not-box, --reject, --confirm, --save and --dicom-out."
            )
        _ask(film, model, check, as_json=as_json)
        return
    study = _corrected(_opened(model, film, filed=dicom_out is not None), corrections, confirmed=confirm)
    explanation = study.explain()
    if save is not None:
        explanation.save(save)
    written = _written(study, film, dicom_out, observer)
    if as_json:
        told = {"path": str(film), "saved": None if save is None else str(save), **explanation.to_json()}
        print_json(told | {"log": study.log, "dicom": [str(path) for path in written]})
    else:
        _print_all(film, study, explanation, save, written)


def _written(study: "Study", film: Path, out: Path | None, observer: str | None) -> tuple[Path, ...]:
    if out is None:
        return ()
    from medgrape.hospital.objects import write_dicom_reading

    with err.status("writing DICOM"):
        return write_dicom_reading(study, film, out, observer=observer)


def _check_targets(film: Path, save: Path | None, dicom_out: Path | None, observer: str | None) -> None:
    """What cannot be written is refused before the film is read."""
    if save is not None:
        picture_place(save)
        if save.resolve() == film.resolve():
            raise UserError(f"--save would overwrite the film {film} itself; choose another place.")
    if dicom_out is not None:
        from medgrape.hospital.objects import check_output_folder

        check_output_folder(dicom_out, observer)
    elif observer is not None:
        raise UserError("--observer is named in the DICOM report; add --dicom-out DIR.")


def _corrections(shown: list[str], ruled_out: list[str], rejected: list[str]) -> "list[Correction]":
    """Positive boxes first, then negative ones, then rejections."""
    positive = [boxed("--box", text) for text in shown]
    negative = [boxed("--not-box", text) for text in ruled_out]
    if not (positive or negative or rejected):
        return []
    from medgrape.corrections.statements import BoxCorrection, Rejection

    return [
        *(BoxCorrection(place, concept) for concept, place in positive),
        *(BoxCorrection(place, concept, positive=False) for concept, place in negative),
        *(Rejection(one_or_all(name)) for name in rejected),
    ]


def _corrected(study: "Study", corrections: "list[Correction]", *, confirmed: bool) -> "Study":
    from medgrape.study import ConceptMismatchError

    try:
        return study.correct(*corrections, confirmed=confirmed)
    except ConceptMismatchError as doubt:
        raise UserError(f"{doubt.check.reason} To apply the box all the same, add --confirm.") from doubt


def _opened(model: Path, film: Path, *, filed: bool = False) -> "Study":
    """The decoder starts while torch is being imported. What cannot be filed as DICOM is refused before it is read."""
    from medgrape.films.decoder import Decoder

    with Decoder() as decoder:
        decoder.start()
        from medgrape.reader import load

        reader = load(model)
        if filed:
            from medgrape.hospital.objects import check_source

            check_source(film, reader.loaded.run.config.limits)
        return reader.open(film, decoder)


def _ask(film: Path, model: Path, asked: list[str], *, as_json: bool) -> None:
    """What the model sees inside boxes, and nothing else."""
    claims = [_claim(text) for text in asked]
    study = _opened(model, film)
    checks = [(place, study.check(place, concept)) for concept, place in claims]
    if as_json:
        told = [{"box": list(place.corners), **one.to_json()} for place, one in checks]
        print_json({"path": str(film), "checks": told})
        return
    for place, one in checks:
        _print_check(place, one)


def _claim(text: str) -> "tuple[str, Box]":
    concept, place = boxed("--check", text)
    if concept is None:
        raise UserError("--check asks about one concept, not about all: name the one that you see inside the box.")
    return concept, place


def _print_check(place: "Box", check: "SafetyCheck") -> None:
    table(
        f"Inside {', '.join(f'{corner:g}' for corner in place.corners)}, claimed: {check.claimed}",
        ("finding", "mean similarity", "variance"),
        [(one.name, f"{one.mean:.3f}", f"{one.variance:.2g}") for one in check.concepts],
    )
    note(f"{'warning: ' if check.mismatch else ''}{check.reason}")
    note(check.origin)


def _print_all(
    film: Path, study: "Study", explanation: "Explanation", save: Path | None, written: tuple[Path, ...]
) -> None:
    print_explanation(film, explanation)
    if study.log:
        table(
            "Corrections",
            ("what", "concept", "box", "confirmed", "answer before", "answer after"),
            [_logged(entry) for entry in study.log],
        )
    if save is not None:
        note(f"evidence: {save}")
    if written:
        note(f"DICOM: {', '.join(str(path) for path in written)}")


def _logged(entry: dict[str, Any]) -> tuple[object, ...]:
    place = "" if entry["box"] is None else ", ".join(f"{corner:g}" for corner in entry["box"])
    answers = (_first(entry["prediction_before"]), _first(entry["prediction_after"]))
    return entry["kind"], entry["concept"] or "all", place, "yes" if entry["confirmed"] else "", *answers


def _first(prediction: dict[str, float]) -> str:
    name, share = next(iter(prediction.items()))
    return f"{name} {share:.3f}"


def print_explanation(film: Path, explanation: "Explanation") -> None:
    """The answer in a terminal."""
    told = explanation.to_json()
    table(
        printable(str(film)),
        ("class", "probability"),
        [(name, f"{share:.3f}") for name, share in told["probabilities"].items()],
    )
    table(
        "Findings",
        ("finding", "seen", "score", "without it", "with it", "strongest at (x, y)", "like film"),
        [
            (
                one["title"], one["words"], f"{one['score']:.3f}", f"{one['absent_score']:.3f}",
                f"{one['present_score']:.3f}", f"{one['peak']['x']:.0f}, {one['peak']['y']:.0f}",
                one["exemplars"][0]["film"] if one["exemplars"] else "none to show",
            )
            for one in told["concepts"]
        ],
    )  # fmt: skip
    for warning in told["warnings"]:
        note(f"warning: {warning}")
    note(f"{told['notice']}")
