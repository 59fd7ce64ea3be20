"""``medgrape atlas``: which prototypes does a model go by, and which should it not?"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import note, print_json, printable, table, track, watch
from medgrape.cli.options import Json, RunArgument, outside_runs, picture_place
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.reader import Reader
    from medgrape.training.assessment import ValidationMetrics
    from medgrape.training.refit import Refit, RefitFigures
    from medgrape.vocabulary.curation import PrototypeCard

app = typer.Typer(no_args_is_help=True, help="The prototypes that a model goes by: list, discard, restore.")
Name = Annotated[str, typer.Argument(help="A concept's short name, e.g. active_tb.")]
Numbers = Annotated[str, typer.Argument(help="Prototypes of that concept, counted from 0: 3,7,12-15.")]
Out = Annotated[Path, typer.Option(help="Folder for the changed run; RUN itself changes it in place.")]
RefitToo = Annotated[bool, typer.Option("--refit", help="Fit the head again without them; needs --data.")]
RefitData = Annotated[Path | None, typer.Option(help="The prepared data set to fit the head on, for --refit.")]


@app.callback()
def _group() -> None:
    """The prototypes that a model goes by: list, discard, restore."""


@app.command("list")
def list_(
    run: RunArgument,
    concept: Annotated[str | None, typer.Option(help="Only this concept's. [default: all]")] = None,
    data: Annotated[
        Path | None, typer.Option(help="A prepared data set: also tell what each does on its training films.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Draw the films behind them on one sheet, a .png file.")] = None,
    as_json: Json = False,
) -> None:
    """List prototypes: the film behind each, what it moves, and with --data how often it speaks.

    Example: medgrape atlas list runs/demo --concept active_tb --save sheet.png
    """
    from medgrape.explain.atlas_sheet import save_sheet
    from medgrape.reader import load
    from medgrape.vocabulary.curation import prototypes_of

    if save is not None:
        picture_place(save)
    loaded = load(run).loaded.run
    usage = None
    if data is not None:
        from medgrape.training.film_scores import usage_of

        usage = usage_of(loaded, data, track)
    cards = prototypes_of(loaded, concept, usage)
    if save is not None:
        save_sheet(loaded, cards, save)
    if as_json:
        print_json({"saved": None if save is None else str(save), "prototypes": [card.to_json() for card in cards]})
        return
    _print_cards(run, cards)
    if save is not None:
        note(f"sheet: {save}")


@app.command()
def discard(
    run: RunArgument,
    concept: Name,
    numbers: Numbers,
    out: Out,
    refit: RefitToo = False,
    data: RefitData = None,
    as_json: Json = False,
) -> None:
    """Let a model go by all other prototypes of a concept only; they can be restored.

    Example: medgrape atlas discard runs/demo active_tb 3,7,12-15 --out runs/curated --refit --data demo/data
    """
    _change(run, out, lambda reader, chosen: reader.discard(concept, chosen), numbers, refit, data, as_json)


@app.command()
def restore(
    run: RunArgument,
    concept: Name,
    numbers: Numbers,
    out: Out,
    refit: RefitToo = False,
    data: RefitData = None,
    as_json: Json = False,
) -> None:
    """Take discarded prototypes back.

    Example: medgrape atlas restore runs/curated active_tb 7 --out runs/again
    """
    _change(run, out, lambda reader, chosen: reader.restore(concept, chosen), numbers, refit, data, as_json)


def _change(
    run: Path,
    out: Path,
    curate: "Callable[[Reader, Iterable[int]], Reader]",
    numbers: str,
    refit: bool,
    data: Path | None,
    as_json: bool,
) -> None:
    from medgrape.reader import load
    from medgrape.vocabulary.curation import numbers_in

    _check_place(run, out)
    original = load(run)
    changed, figures = curate(original, numbers_in(numbers)), None
    fitted = _refitted(changed, original, data) if _wanted(refit, data) else None
    if fitted is not None:
        changed, figures = fitted.reader, fitted.figures
    saved = changed.save(out).loaded
    done = [change.what for change in saved.run.changes[len(original.loaded.run.changes) :]]
    if as_json:
        told = {"run": str(out), "fingerprint": saved.manifest.fingerprint, "changes": done}
        print_json(told | {"refit": None if figures is None else figures.to_json()})
        return
    for sentence in done:
        note(sentence)
    if figures is not None:
        print_refit(figures)
    note(f"run: {out}")


def _wanted(refit: bool, data: Path | None) -> bool:
    if refit != (data is not None):
        raise UserError("--refit and --data DIR go together: the head is fitted again on that data set.")
    return refit


def _refitted(changed: "Reader", original: "Reader", data: Path | None) -> "Refit | None":
    from medgrape.training.refit import refit

    return None if data is None else refit(changed, data, original=original, track=track, watch=watch)


def _check_place(run: Path, out: Path) -> None:
    """A place that cannot be written to is refused before the work."""
    if out.resolve() == run.resolve():
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is there already and not empty; choose another --out.")
    outside_runs(out)


def print_refit(figures: "RefitFigures") -> None:
    """What changed on validation films."""
    rows: list[tuple[str, ValidationMetrics]] = [
        ("before", figures.before), ("changed, head as it was", figures.unfitted), ("head fitted again", figures.after),
        (f"always {figures.trivial_answer!r}", figures.trivial),
    ]  # fmt: skip
    table(
        f"{figures.films:,} validation films of {figures.data_set}",
        ("run", "macro-F1", "accuracy"),
        [(name, f"{one.macro_f1:.3f}", f"{one.accuracy:.3f}") for name, one in rows],
    )
    note(f"{figures.changed:,} of them are now of another class than before.")


def _print_cards(run: Path, cards: "tuple[PrototypeCard, ...]") -> None:
    used = any(card.shown is not None for card in cards)
    columns = ("prototype", "like film", "patch", "similarity", "without it", "typical", "raises", "by")
    table(
        printable(str(run)),
        (*columns, "strongest on", "in its box") if used else columns,
        [(*_row(card), *(_usage(card) if used else ())) for card in cards],
    )
    gone = sum(not card.kept for card in cards)
    note(f"{len(cards):,} prototypes, {gone:,} of them discarded.")


def _row(card: "PrototypeCard") -> tuple[str, ...]:
    return (
        f"{card.concept} {card.number}{'' if card.kept else ' (discarded)'}",
        card.film or "withheld", "-" if card.patch is None else f"{card.patch[0]}, {card.patch[1]}",
        _figure(card.similarity), _figure(card.absent), _figure(card.typical), card.raises or "-", _figure(card.gain),
    )  # fmt: skip


def _usage(card: "PrototypeCard") -> tuple[str, str]:
    return f"{card.strongest} of {card.shown}", _figure(card.in_box)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
