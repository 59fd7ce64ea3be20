"""``medgrape data prepare``: one command for each data source."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from medgrape.cli.console import note, track
from medgrape.config import MAX_SEED
from medgrape.datasets.dataset import SPLITS, Dataset, SplitRule
from medgrape.datasets.draft import Draft, finish
from medgrape.datasets.sources import DataSource, built_in_sources, read_own
from medgrape.datasets.sources.phantoms import PhantomOrder, draw_dataset
from medgrape.errors import UserError
from medgrape.phantoms.cohort import Shortcut

app = typer.Typer(
    no_args_is_help=True, help="Make a prepared data set from a published one, your own, or from nothing."
)
Folder = Annotated[Path, typer.Argument(metavar="SOURCE", exists=True, file_okay=False, help="The data set's folder.")]
Out = Annotated[Path, typer.Option(help="Folder for the prepared data set; it must be new or empty.")]
AllowMissing = Annotated[bool, typer.Option("--allow-missing", help="Go on without what is missing or contradictory.")]
Validation = Annotated[float, typer.Option(help="Share of the training patients to validate on.")]
Test = Annotated[float, typer.Option(help="Share of the patients to test on, where no published test film is there.")]
Seed = Annotated[int, typer.Option(help="Seed of the split.")]


def tell_dataset(dataset: Dataset, out: Path) -> None:
    """Print a summary of a data set that was just written."""
    for line in dataset.source.notes:
        note(f"note: {line}")
    counts = ", ".join(f"{len(dataset.in_split(split)):,} {split}" for split in SPLITS)
    note(f"{dataset.name}: {len(dataset.films):,} films ({counts}), {len(dataset.boxes):,} boxes -> {out}")
    if not dataset.in_split("test"):
        note("there are no test films: to cut some from training, prepare again with --test 0.2")
    note(f"next: medgrape data check {out}")


def _finish(draft: Draft, out: Path, rule: SplitRule, allow_missing: bool) -> None:
    tell_dataset(finish(draft, out, rule, allow_missing=allow_missing), out)


def _command(data: DataSource) -> Callable[..., None]:
    """Return the command of a source: its own options between those that all sources share."""

    def run(
        source: Path, out: Path, allow_missing: bool, validation: float, test: float, seed: int, **options: object
    ) -> None:
        draft = data.read(source, **options, track=track)
        _finish(draft, out, SplitRule(validation, test, seed), allow_missing)

    path: object = Folder
    if data.file:
        path = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help=data.file)]
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    own = [
        parameter.replace(annotation=_typer_annotation(parameter.annotation))
        for parameter in inspect.signature(data.read).parameters.values()
        if parameter.kind is keyword_only and parameter.name != "track"
    ]
    shared: dict[str, tuple[object, Any]] = {
        "allow_missing": (AllowMissing, False),
        "validation": (Validation, 0.15),
        "test": (Test, data.test),
        "seed": (Seed, 0),
    }
    parameters = [
        inspect.Parameter("source", keyword_only, annotation=path),
        inspect.Parameter("out", keyword_only, annotation=Out),
        *own,
        *(inspect.Parameter(name, keyword_only, annotation=kind, default=value)
          for name, (kind, value) in shared.items()),
    ]  # fmt: skip
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = f"{data.help}\n\nExample: medgrape data prepare {data.example}"
    return run


def _typer_annotation(annotation: object) -> object:
    """An annotation with our ``Option`` as one with typer's."""
    kind, option = get_args(annotation)
    flags = [] if option.flag is None else [option.flag]
    limits: dict[str, Any] = {"min": option.min, "max": option.max}
    if option.file:
        limits |= {"exists": True, "dir_okay": False}
    return Annotated[kind, typer.Option(*flags, help=option.help, **limits)]


for _source in built_in_sources():
    app.command(_source.name)(_command(_source))


@app.command()
def own(
    name: Annotated[str, typer.Argument(help="A source that medgrape parts lists.")],
    source: Annotated[Path, typer.Argument(exists=True, help="What it reads, mostly a folder.")],
    out: Out,
    option: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE for the source itself; as often as needed.")
    ] = None,
    allow_missing: AllowMissing = False,
    validation: Validation = 0.15,
    test: Test = 0.2,
    seed: Seed = 0,
) -> None:
    """A source that another installed package brings along.

    Example: medgrape data prepare own folders films-by-finding --option normal=healthy --out data/mine
    """
    options = {}
    for text in option or ():
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise UserError(f"--option takes KEY=VALUE, not {text!r}.")
        options[key.replace("-", "_")] = value
    draft = read_own(name, source, options, track=track)
    _finish(draft, out, SplitRule(validation, test, seed), allow_missing)


@app.command()
def phantom(
    out: Out,
    profile: Annotated[str, typer.Option(help="What to draw: tb or nih.")] = "tb",
    films: Annotated[int, typer.Option(min=1, help="How many films.")] = 1200,
    size: Annotated[int, typer.Option(min=64, max=2048, help="Side of a film in pixels.")] = 224,
    dicom: Annotated[bool, typer.Option("--dicom", help="Write DICOM instead of PNG.")] = False,
    masks: Annotated[bool, typer.Option("--masks", help="Also write the exact mask of every lesion.")] = False,
    shortcut: Annotated[
        bool, typer.Option("--shortcut", help="Let a pacemaker come with one finding, as a trap for models.")
    ] = False,
    shortcut_lies: Annotated[
        bool, typer.Option("--shortcut-lies", help="Put the pacemaker on the wrong films, to test who fell for it.")
    ] = False,
    validation: Validation = 0.15,
    test: Test = 0.2,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of the drawing and of the split.")] = 0,
) -> None:
    """Drawn chests: films, boxes and patients from nothing, the same for the same seed.

    Example: medgrape data prepare phantom --profile tb --films 1200 --out data/tb
    """
    planted = Shortcut(lies=shortcut_lies) if shortcut or shortcut_lies else None
    order = PhantomOrder(profile, films, size, seed, planted, dicom, masks)
    workers = 1 if films < 200 else os.cpu_count() or 1
    tell_dataset(draw_dataset(order, out, SplitRule(validation, test, seed), workers=workers, track=track), out)
