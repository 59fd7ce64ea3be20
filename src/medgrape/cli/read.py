"""``medgrape read``: what does a model see on this film, and why?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import note, print_json, printable, table
from medgrape.cli.options import Json, outside_runs
from medgrape.errors import UserError

if TYPE_CHECKING:  # torch is slow to import
    from medgrape.explain.explanation import Explanation


def read(
    film: Annotated[Path, typer.Argument(help="A PNG, JPEG or DICOM file.")],
    model: Annotated[Path, typer.Option(help="A run, as medgrape train leaves it.")],
    save: Annotated[Path | None, typer.Option(help="Write the evidence as one picture, a .png file.")] = None,
    as_json: Json = False,
) -> None:
    """Read one film: classes, ranked findings, where they are, and the training films behind them.

    Example: medgrape read chest.dcm --model runs/demo --save evidence.png
    """
    from medgrape.feedback.reader import load

    if save is not None:
        _check_target(save, film)
    study = load(model).open(film)
    explanation = study.explain()
    if save is not None:
        explanation.save(save)
    if as_json:
        print_json({"path": str(film), "saved": None if save is None else str(save), **explanation.to_json()})
        return
    print_explanation(film, explanation)
    if save is not None:
        note(f"evidence: {save}")


def _check_target(save: Path, film: Path) -> None:
    if save.suffix.lower() != ".png":
        raise UserError(f"--save takes a .png file, not {save}.")
    if save.resolve() == film.resolve():
        raise UserError(f"--save would overwrite the film {film} itself; choose another place.")
    outside_runs(save)


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
                one["exemplars"][0]["film"] if one["exemplars"] else "withheld",
            )
            for one in told["concepts"]
        ],
    )  # fmt: skip
    for warning in told["warnings"]:
        note(f"warning: {warning}")
    note(f"{told['notice']}")
