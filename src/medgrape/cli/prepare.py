"""``medgrape data prepare``: one command per data source."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

from typer import Argument, Option, Typer

from medgrape.cli.console import note, track
from medgrape.config import MAX_SEED
from medgrape.datasets.dataset import SPLITS, Dataset, SplitRule
from medgrape.datasets.draft import finish
from medgrape.datasets.sources import DataSource, built_in_sources, read_with_plugin
from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset
from medgrape.errors import UserError
from medgrape.phantoms.cohort import Shortcut

app = Typer(no_args_is_help=True, help="Convert a published data set, or your own, to a prepared one; or draw one.")
Folder = Annotated[Path, Argument(metavar="SOURCE", exists=True, file_okay=False, help="Folder of the data set.")]
Out = Annotated[Path, Option(help="Folder for the prepared data set; it must be new or empty.")]
AllowMissing = Annotated[bool, Option("--allow-missing", help="Leave out what is missing or contradictory.")]
Validation = Annotated[float, Option(help="Fraction of the training patients for validation.")]
_TEST = "Fraction of the patients for testing; ignored if the data set has an official test split."
Test = Annotated[float, Option(help=_TEST)]
Seed = Annotated[int, Option(help="Random seed of the split.")]


def print_dataset(dataset: Dataset, out: Path) -> None:
    """Print a summary of a new data set."""
    for line in dataset.source.notes:
        note(f"note: {line}")
    counts = ", ".join(f"{len(dataset.in_split(split)):,} {split}" for split in SPLITS)
    note(f"{dataset.name}: {len(dataset.films):,} films ({counts}), {len(dataset.boxes):,} boxes -> {out}")
    if not dataset.in_split("test"):
        note("there are no test films: to take some from the training films, prepare again with --test 0.2")
    note(f"next: medgrape data check {out}")


def _command(data: DataSource) -> Callable[..., None]:
    """Return the command of a source: the options of the source and those that all sources share."""

    def run(
        source: Path, out: Path, allow_missing: bool, validation: float, test: float, seed: int, **options: object
    ) -> None:
        draft = data.read(source, **options, track=track)
        print_dataset(finish(draft, out, SplitRule(validation, test, seed), allow_missing=allow_missing), out)

    def parameter(name: str, annotation: object, default: object = inspect.Parameter.empty) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)

    file = Annotated[Path, Argument(exists=True, dir_okay=False, help=data.file)]
    parameters = [
        parameter("source", file if data.file else Folder),
        parameter("out", Out),
        *(
            option.replace(annotation=_typer_annotation(option.annotation))
            for option in inspect.signature(data.read).parameters.values()
            if option.kind is inspect.Parameter.KEYWORD_ONLY and option.name != "track"
        ),
        parameter("allow_missing", AllowMissing, False),
        parameter("validation", Validation, 0.15),
        parameter("test", Test, data.test),
        parameter("seed", Seed, 0),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by typer
    run.__annotations__ = {option.name: option.annotation for option in parameters}
    run.__doc__ = f"{data.help}\n\nExample: medgrape data prepare {data.example}"
    return run


def _typer_annotation(annotation: object) -> object:
    """Convert an annotation with an ``Option`` of ours to one with an option of typer."""
    option_type, option = get_args(annotation)
    flags = [] if option.flag is None else [option.flag]
    limits: dict[str, Any] = {"min": option.min, "max": option.max}
    if option.file:
        limits |= {"exists": True, "dir_okay": False}
    return Annotated[option_type, Option(*flags, help=option.help, **limits)]


for _source in built_in_sources():
    app.command(_source.name)(_command(_source))


@app.command()
def own(
    name: Annotated[str, Argument(help="Name of a source that medgrape parts lists.")],
    source: Annotated[Path, Argument(exists=True, help="Folder or file for the source.")],
    out: Out,
    option: Annotated[list[str] | None, Option(help="KEY=VALUE, an option of the source; repeatable.")] = None,
    allow_missing: AllowMissing = False,
    validation: Validation = 0.15,
    test: Test = 0.2,
    seed: Seed = 0,
) -> None:
    """Convert a data set with a source of another installed package.

    Example: medgrape data prepare own folders films-by-finding --option normal=healthy --out data/mine
    """
    options = {}
    for text in option or ():
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise UserError(f"--option takes KEY=VALUE, not {text!r}.")
        options[key.replace("-", "_")] = value
    draft = read_with_plugin(name, source, options, track=track)
    print_dataset(finish(draft, out, SplitRule(validation, test, seed), allow_missing=allow_missing), out)


@app.command()
def phantom(
    out: Out,
    profile: Annotated[str, Option(help="Findings to draw: tb or nih.")] = "tb",
    films: Annotated[int, Option(min=1, help="Number of films.")] = 1200,
    size: Annotated[int, Option(min=64, max=2048, help="Side of a film in pixels.")] = 224,
    dicom: Annotated[bool, Option("--dicom", help="Write DICOM instead of PNG.")] = False,
    masks: Annotated[bool, Option("--masks", help="Also write the exact mask of every lesion.")] = False,
    shortcut: Annotated[bool, Option("--shortcut", help="Draw a pacemaker on most films with one finding.")] = False,
    shortcut_lies: Annotated[
        bool, Option("--shortcut-lies", help="Draw it on the other films instead, for testing.")
    ] = False,
    validation: Validation = 0.15,
    test: Test = 0.2,
    seed: Annotated[int, Option(min=0, max=MAX_SEED, help="Random seed of the drawings and of the split.")] = 0,
) -> None:
    """Draw chest films with findings, boxes and patients. The same seed draws the same films.

    Example: medgrape data prepare phantom --profile tb --films 1200 --out data/tb
    """
    planted = Shortcut(lies=shortcut_lies) if shortcut or shortcut_lies else None
    options = PhantomOptions(profile, films, size, seed, planted, dicom, masks)
    workers = 1 if films < 200 else os.cpu_count() or 1
    print_dataset(draw_dataset(options, out, SplitRule(validation, test, seed), workers=workers, track=track), out)
