"""``medgrape atlas``: list, discard and restore the prototypes of a model."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer

from medgrape.cli.changed_run import RefitData, RefitFlag, check_refit_options, check_run_folder, save_changed
from medgrape.cli.console import note, print_json, table, track
from medgrape.cli.options import Json, RunArgument, check_picture_path

if TYPE_CHECKING:
    from medgrape.reader import Reader
    from medgrape.vocabulary.curation import PrototypeCard

app = Typer(no_args_is_help=True, help="List, discard or restore the prototypes of a model.")


@app.command("list")
def list_(
    run: RunArgument,
    concept: Annotated[str | None, Option(help="List this concept only. (default: all concepts)")] = None,
    data: Annotated[Path | None, Option(help="Prepared data set: also print how often each is the strongest.")] = None,
    save: Annotated[Path | None, Option(help="Write a .png file with the training film of each one.")] = None,
    as_json: Json = False,
) -> None:
    """List the prototypes of a model: the training film of each, and its effect on the classes.

    Example: medgrape atlas list runs/demo --concept active_tb --save sheet.png
    """
    from medgrape.explain.atlas_sheet import save_sheet
    from medgrape.reader import load
    from medgrape.vocabulary.curation import prototypes_of

    if save is not None:
        check_picture_path(save)
    loaded = load(run).loaded.run
    usage = None
    if data is not None:
        from medgrape.training.film_scores import usage_of

        usage = usage_of(loaded, data, track)
    cards = prototypes_of(loaded, concept, usage)
    if save is not None:
        save_sheet(loaded, cards, save)
    if as_json:
        print_json({"saved": save, "prototypes": cards})
        return
    _print_cards(run, cards)
    if save is not None:
        note(f"sheet: {save}")


def _change_command(name: str, change: "Callable[[Reader, str, tuple[int, ...]], Reader]", help_text: str) -> None:
    """Register a command that changes prototypes of a concept and saves the run."""

    @app.command(name, help=help_text)
    def command(
        run: RunArgument,
        concept: Annotated[str, Argument(help="Short name of a concept, such as active_tb.")],
        numbers: Annotated[str, Argument(help="Numbers of its prototypes, counted from 0, such as 3,7,12-15.")],
        out: Annotated[Path, Option(help="Folder for the changed run. Give RUN itself to change it in place.")],
        refit: RefitFlag = False,
        data: RefitData = None,
        as_json: Json = False,
    ) -> None:
        from medgrape.reader import load
        from medgrape.vocabulary.curation import numbers_in

        check_refit_options(refit, data)
        if out.resolve() != run.resolve():
            check_run_folder(out)
        original = load(run)
        saved = save_changed(change(original, concept, numbers_in(numbers)), original, out, data)
        if as_json:
            fingerprint = saved.reader.loaded.manifest.fingerprint
            print_json({"run": out, "fingerprint": fingerprint, "changes": saved.changes, "refit": saved.figures})
        else:
            saved.print()


_change_command(
    "discard",
    lambda reader, concept, numbers: reader.discard(concept, numbers),
    "Discard prototypes of a concept: the changed model does not use them. They can be restored.\n\n"
    "Example: medgrape atlas discard runs/demo active_tb 3,7,12-15 --out runs/curated --refit --data demo/data",
)
_change_command(
    "restore",
    lambda reader, concept, numbers: reader.restore(concept, numbers),
    "Restore discarded prototypes of a concept.\n\n"
    "Example: medgrape atlas restore runs/curated active_tb 7 --out runs/again",
)


def _print_cards(run: Path, cards: "tuple[PrototypeCard, ...]") -> None:
    columns = ["prototype", "like film", "patch", "similarity", "without it", "typical", "raises", "by"]
    with_usage = any(card.shown is not None for card in cards)
    if with_usage:
        columns += ["strongest on", "in its box"]
    rows = []
    for card in cards:
        row = [
            f"{card.concept} {card.number}{'' if card.kept else ' (discarded)'}",
            card.film or "withheld", "-" if card.patch is None else f"{card.patch[0]}, {card.patch[1]}",
            card.similarity, card.absent, card.typical, card.raises or "-", card.gain,
        ]  # fmt: skip
        rows.append([*row, f"{card.strongest} of {card.shown}", card.in_box] if with_usage else row)
    table(str(run), columns, rows)
    discarded = sum(not card.kept for card in cards)
    note(f"{len(cards):,} prototypes, {discarded:,} of them discarded.")
