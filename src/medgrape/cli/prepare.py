"""``medgrape data prepare``: one command for each source."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from medgrape.cli.console import note, track
from medgrape.config import MAX_SEED
from medgrape.datasets.dataset import SPLITS, Dataset
from medgrape.datasets.draft import Draft, finish
from medgrape.datasets.sources.annotated import read_folder
from medgrape.datasets.sources.nih import read_nih
from medgrape.datasets.sources.phantoms import PhantomOrder, draw_dataset
from medgrape.datasets.sources.plugin import read_own
from medgrape.datasets.sources.table import BoxColumns, FilmColumns, read_table
from medgrape.datasets.sources.tbx11k import read_tbx11k
from medgrape.datasets.sources.vindr import read_vindr
from medgrape.datasets.splits import SplitRule
from medgrape.errors import UserError
from medgrape.phantoms.devices import Shortcut

app = typer.Typer(
    no_args_is_help=True, help="Make a prepared data set from a published one, your own, or from nothing."
)
Folder = Annotated[Path, typer.Argument(metavar="SOURCE", exists=True, file_okay=False, help="The data set's folder.")]
Out = Annotated[Path, typer.Option(help="Folder for the prepared data set; it must be new or empty.")]
AllowMissing = Annotated[bool, typer.Option("--allow-missing", help="Go on without what is missing or contradictory.")]
Validation = Annotated[float, typer.Option(help="Share of the training patients to validate on.")]
Test = Annotated[float, typer.Option(help="Share of the patients to test on, where no published test film is there.")]
Vocabulary = Annotated[str | None, typer.Option(help="Take concepts from tbx11k, nih or vindr.")]
Seed = Annotated[int, typer.Option(help="Seed of the split.")]


def _finish(draft: Draft, out: Path, rule: SplitRule, allow_missing: bool) -> None:
    tell_dataset(finish(draft, out, rule, allow_missing=allow_missing), out)


def tell_dataset(dataset: Dataset, out: Path) -> None:
    """What is in a set that was just written."""
    for line in dataset.source.notes:
        note(f"note: {line}")
    counts = ", ".join(f"{len(dataset.in_split(split)):,} {split}" for split in SPLITS)
    note(f"{dataset.name}: {len(dataset.films):,} films ({counts}), {len(dataset.boxes):,} boxes -> {out}")
    if not dataset.in_split("test"):
        note("there are no test films: to cut some from training, prepare again with --test 0.2")
    note(f"next: medgrape data check {out}")


@app.command()
def tbx11k(
    source: Folder,
    out: Out,
    extra: Annotated[
        bool, typer.Option("--extra", help="Also take imgs/extra (Shenzhen, Montgomery, DA, DB).")
    ] = False,
    allow_missing: AllowMissing = False,
    validation: Validation = 0.15,
    test: Test = 0.0,
    seed: Seed = 0,
) -> None:
    """TBX11K in its official layout; its official validation films become the test films.

    Example: medgrape data prepare tbx11k TBX11K --out data/tbx11k
    """
    _finish(read_tbx11k(source, extra=extra, track=track), out, SplitRule(validation, test, seed), allow_missing)


@app.command()
def nih(
    source: Folder,
    out: Out,
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Keep rows without a film, for label statistics.")
    ] = False,
    allow_missing: AllowMissing = False,
    validation: Validation = 0.15,
    test: Test = 0.0,
    seed: Seed = 0,
) -> None:
    """NIH ChestX-ray14 in its official layout: the films that are there, with the official test list.

    Example: medgrape data prepare nih ChestX-ray14 --out data/nih
    """
    _finish(read_nih(source, all_rows=all_rows, track=track), out, SplitRule(validation, test, seed), allow_missing)


@app.command()
def vindr(
    source: Folder,
    out: Out,
    votes: Annotated[int, typer.Option(min=1, max=3, help="Readers who must agree on a training label.")] = 2,
    allow_missing: AllowMissing = False,
    validation: Validation = 0.15,
    test: Test = 0.0,
    seed: Seed = 0,
) -> None:
    """VinDr-CXR in the layout of its full release.

    Example: medgrape data prepare vindr vindr-cxr --out data/vindr
    """
    _finish(read_vindr(source, votes=votes, track=track), out, SplitRule(validation, test, seed), allow_missing)


@app.command()
def coco(
    source: Folder,
    out: Out,
    annotations: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="The COCO file with the boxes.")],
    vocabulary: Vocabulary = None,
    allow_missing: AllowMissing = False,
    validation: Validation = 0.15,
    test: Test = 0.2,
    seed: Seed = 0,
) -> None:
    """A folder of films with boxes in a COCO file.

    Example: medgrape data prepare coco films --annotations boxes.json --out data/mine
    """
    draft = read_folder(source, annotations, vocabulary=vocabulary, track=track)
    _finish(draft, out, SplitRule(validation, test, seed), allow_missing)


@app.command()
def labelstudio(
    source: Folder,
    out: Out,
    annotations: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="What Label Studio exports as JSON.")],
    vocabulary: Vocabulary = None,
    allow_missing: AllowMissing = False,
    validation: Validation = 0.15,
    test: Test = 0.2,
    seed: Seed = 0,
) -> None:
    """A folder of films that were annotated in Label Studio.

    Example: medgrape data prepare labelstudio films --annotations project-1.json --out data/mine
    """
    draft = read_folder(source, annotations, "labelstudio", vocabulary=vocabulary, track=track)
    _finish(draft, out, SplitRule(validation, test, seed), allow_missing)


@app.command()
def cvat(
    source: Folder,
    out: Out,
    annotations: Annotated[
        Path, typer.Option(exists=True, dir_okay=False, help="What CVAT exports as: CVAT for images 1.1.")
    ],
    vocabulary: Vocabulary = None,
    allow_missing: AllowMissing = False,
    validation: Validation = 0.15,
    test: Test = 0.2,
    seed: Seed = 0,
) -> None:
    """A folder of films that were annotated in CVAT.

    Example: medgrape data prepare cvat films --annotations annotations.xml --out data/mine
    """
    draft = read_folder(source, annotations, "cvat", vocabulary=vocabulary, track=track)
    _finish(draft, out, SplitRule(validation, test, seed), allow_missing)


@app.command()
def table(
    source: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A CSV with a row for each film.")],
    out: Out,
    path: Annotated[str, typer.Option(help="Column with the film's path.")],
    concepts: Annotated[str, typer.Option(help="Columns with one finding each, yes or no, parted by commas.")] = "",
    labels: Annotated[str | None, typer.Option(help="Or: the column that lists the findings present.")] = None,
    separator: Annotated[str, typer.Option(help="What parts the findings in --labels.")] = "|",
    id_column: Annotated[str | None, typer.Option("--id", help="Column with the film's name.")] = None,
    class_column: Annotated[str | None, typer.Option("--class", help="Column with the class.")] = None,
    patient: Annotated[str | None, typer.Option(help="Column with the patient.")] = None,
    sex: Annotated[str | None, typer.Option(help="Column with the sex.")] = None,
    age: Annotated[str | None, typer.Option(help="Column with the age in years.")] = None,
    view: Annotated[str | None, typer.Option(help="Column with the view, PA or AP.")] = None,
    split: Annotated[str | None, typer.Option(help="Column that says 'test' for test films.")] = None,
    films: Annotated[Path | None, typer.Option(help="Folder that paths start from. [default: the CSV's]")] = None,
    boxes: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="A CSV with a row for each box.")
    ] = None,
    box_film: Annotated[str, typer.Option(help="Its column with the film's name or path.")] = "film",
    box_concept: Annotated[str, typer.Option(help="Its column with the finding.")] = "concept",
    box_edges: Annotated[str, typer.Option(help="Its four columns with the edges, in film pixels.")] = "x1,y1,x2,y2",
    box_sized: Annotated[bool, typer.Option("--box-sized", help="The edges are x, y, width, height.")] = False,
    vocabulary: Vocabulary = None,
    allow_missing: AllowMissing = False,
    validation: Validation = 0.15,
    test: Test = 0.2,
    seed: Seed = 0,
) -> None:
    """A CSV of any shape, by naming its columns.

    Example: medgrape data prepare table films.csv --path file --labels findings --patient pid --out data/mine
    """
    columns = FilmColumns(
        path, _names(concepts), labels, separator, id_column, class_column, patient, sex, age, view, split
    )
    drawn = None if boxes is None else (boxes, BoxColumns(box_film, box_concept, _four(box_edges), box_sized))
    draft = read_table(source, columns, films=films, boxes=drawn, vocabulary=vocabulary, track=track)
    _finish(draft, out, SplitRule(validation, test, seed), allow_missing)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _four(text: str) -> tuple[str, str, str, str]:
    names = _names(text)
    if len(names) != 4:
        raise UserError(f"--box-edges takes four column names parted by commas; got {text!r}.")
    return names[0], names[1], names[2], names[3]


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
    draft = read_own(name, source, _pairs(option or ()), track=track)
    _finish(draft, out, SplitRule(validation, test, seed), allow_missing)


def _pairs(texts: Iterable[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise UserError(f"--option takes KEY=VALUE, not {text!r}.")
        pairs[key.replace("-", "_")] = value
    return pairs


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
