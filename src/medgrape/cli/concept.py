"""``medgrape concept``: what does a model know, and what more should it learn?"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medgrape.cli.atlas import print_refit
from medgrape.cli.console import note, print_json, printable, table, track, watch
from medgrape.cli.options import Json, RunOption, outside_runs
from medgrape.config import MAX_SEED
from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError
from medgrape.geometry import Box

if TYPE_CHECKING:
    from medgrape.evaluation.few_shot import Shots, VocabularyTrial
    from medgrape.reader import Reader
    from medgrape.training.refit import RefitFigures
    from medgrape.vocabulary.learning import ExamplePoint


def trial(
    model: RunOption,
    data: Annotated[Path, typer.Option(help="A prepared data set with boxes on training and test films.")],
    examples: Annotated[str, typer.Option(help="How many films teach a concept; 0 is its description.")] = "0,1,5,20",
    seeds: Annotated[int, typer.Option(min=1, help="How often the films are drawn.")] = 5,
    without_boxes: Annotated[bool, typer.Option("--without-boxes", help="Hide the boxes of those films.")] = False,
    split: Annotated[str, typer.Option(help="Films to point at: val while choosing how, test once.")] = "test",
    out: Annotated[Path | None, typer.Option(help="Write all figures to this JSON file.")] = None,
    as_json: Json = False,
) -> None:
    """Leave each concept out in turn, learn it again from few films, and count where it points.

    Example: medgrape concept trial --model runs/demo --data demo/data --examples 0,1,5 --seeds 3
    """
    from medgrape.evaluation.few_shot import TrialPlan, leave_one_out, write_trial
    from medgrape.runs.checkpoint import load_run

    if out is not None:
        outside_runs(out)
    plan = TrialPlan(_numbers(examples), seeds, not without_boxes, split)
    tried = leave_one_out(load_run(model), data, plan, track=track)
    if out is not None:
        write_trial(tried, out)
    if as_json:
        print_json(tried.to_json())
        return
    print_trial(tried)
    if out is not None:
        note(f"figures: {out}")


def print_trial(tried: "VocabularyTrial") -> None:
    """One row for each concept, and their mean."""
    average = tried.average
    numbers = [f"{shots.films} {'film' if shots.films == 1 else 'films'}" for shots in average.shots]
    table(
        f"Learnt again {'with' if tried.boxes else 'without'} boxes, pointing game on {tried.split} films of "
        f"{tried.data_set} (mean ± standard error over {len(average.shots[0].by_seed)} seeds)",
        ("concept", "pairs", *numbers, "full supervision", "fixed point", "random point"),
        [
            (one.title, one.pairs, *map(_pointing, one.shots), *(f"{v:.3f}" for v in (one.full, one.fixed, one.chance)))
            for one in (*tried.concepts, average)
        ],
    )
    for shots in average.shots:
        note(_share(tried, shots))
    note("More films never teach less, within one standard error." if tried.monotone else "More films can teach less.")
    for warning in tried.warnings:
        note(f"warning: {warning}")


def _share(tried: "VocabularyTrial", shots: "Shots") -> str:
    share = tried.share_of_full(shots)
    told = "full supervision points nowhere" if share is None else f"{share.mean:.0%} of full supervision"
    error = "" if share is None or share.se is None else f" (± {share.se:.0%})"
    return f"{shots.films} films: {told}{error}, learnt in {shots.seconds:.2f} s once encoded."


def _pointing(shots: "Shots") -> str:
    found = shots.pointing
    return f"{found.mean:.3f}" if found.se is None else f"{found.mean:.3f} ± {found.se:.3f}"


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise UserError(f"--examples takes whole numbers with commas, such as 0,1,5,20; not {text!r}.") from None


app = typer.Typer(no_args_is_help=True, help="Concepts that a model learns after training: add, list, try.")


@dataclass(frozen=True)
class _Lesson:
    """What adding a concept came to."""

    saved: "Reader"
    name: str
    changes: list[str]
    points: "tuple[ExamplePoint, ...]"
    figures: "RefitFigures | None"


@app.callback()
def _group() -> None:
    """Concepts that a model learns after training: add, list, try."""


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="A short name for the new concept, e.g. cavity.")],
    model: RunOption,
    out: Annotated[Path, typer.Option(help="Folder for the new run; it names its parent.")],
    description: Annotated[str, typer.Option(help="One sentence on how it looks on a chest film.")],
    title: Annotated[str | None, typer.Option(help="As people read it; else made from the name.")] = None,
    example: Annotated[
        list[str] | None, typer.Option(help="FILM or FILM:x1,y1,x2,y2, a film that shows it; may be given again.")
    ] = None,
    grow: Annotated[bool, typer.Option("--grow", help="Let the head listen to it; no class changes yet.")] = False,
    refit: Annotated[bool, typer.Option("--refit", help="Grow the head and fit it again; needs --data.")] = False,
    data: Annotated[Path | None, typer.Option(help="The prepared data set to fit the head on, for --refit.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=MAX_SEED, help="Of the small differences between its prototypes.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Teach a model one more concept, from its description, from films with or without a box, or both.

    Example: medgrape concept add cavity --model runs/demo --out runs/cavity --description "Thick-walled lucency."
    """
    from medgrape.reader import load
    from medgrape.vocabulary.learning import point_at

    _check_place(out)
    if refit != (data is not None):
        raise UserError("--refit and --data DIR go together: the head is fitted again on that data set.")
    shown = [parsed_example(text) for text in example or ()]
    if data is not None:
        Dataset.load(data)  # one that is none is refused before the work
    before = load(model)
    learnt = before.learn(name, description, shown, title=title, seed=seed, track=track)
    points = point_at(learnt.loaded.run, name, shown, track)
    learnt, figures = _judging(learnt.grow_head() if grow or refit else learnt, data, before)
    saved = learnt.save(out)
    changes = [change.what for change in saved.loaded.run.changes[len(before.loaded.run.changes) :]]
    lesson = _Lesson(saved, name, changes, points, figures)
    if as_json:
        print_json(_told(lesson, out))
    else:
        _print_lesson(lesson, out)


def parsed_example(text: str) -> Path | tuple[Path, Box]:
    """``FILM:x1,y1,x2,y2`` or ``FILM``; the box is read from the right, for a file's name may hold a colon."""
    film, colon, corners = text.rpartition(":")
    try:
        numbers = [float(corner) for corner in corners.split(",")] if colon else []
    except ValueError:
        return Path(text)
    if not numbers or (len(numbers) != 4 and Path(text).exists()):
        return Path(text)
    if not film or len(numbers) != 4:
        raise UserError(f"--example takes FILM or FILM:x1,y1,x2,y2, as in chest.png:310,120,420,260; not {text!r}.")
    return Path(film), Box(*numbers)


@app.command("grow")
def grow_(
    model: RunOption,
    out: Annotated[Path, typer.Option(help="Folder for the new run; it names its parent.")],
    data: Annotated[
        Path | None, typer.Option(help="Fit the head again on this prepared data set; else no class changes yet.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Let the head of a model listen to the concepts that it learnt later, and perhaps fit it again.

    Example: medgrape concept grow --model runs/cavity --out runs/grown --data data/tb
    """
    from medgrape.reader import load

    _check_place(out)
    if data is not None:
        Dataset.load(data)
    before = load(model)
    ungrown = before.loaded.run.model.judged < len(before.concepts)
    grown = before.grow_head() if ungrown or data is None else before
    fitted, figures = _judging(grown, data, before)
    saved = fitted.save(out)
    changes = [change.what for change in saved.loaded.run.changes[len(before.loaded.run.changes) :]]
    if as_json:
        refitted = None if figures is None else figures.to_json()
        print_json({"run": str(out), "changes": changes, "refit": refitted})
        return
    for sentence in changes:
        note(sentence)
    if figures is not None:
        print_refit(figures)
    note(f"saved: {out}")


@app.command("list")
def list_(model: RunOption, as_json: Json = False) -> None:
    """List the concepts of a model: trained or learnt later, and whether its head judges by them.

    Example: medgrape concept list --model runs/demo
    """
    from medgrape.reader import load
    from medgrape.vocabulary.new_concept import known_concepts

    known = known_concepts(load(model).loaded.run)
    if as_json:
        print_json([one.to_json() for one in known])
        return
    table(
        printable(str(model)),
        ("concept", "title", "came", "taught by films", "judged by the head"),
        [
            (
                one.name,
                one.title,
                "at training" if one.trained else "later",
                _yes(one.taught_by_films),
                _yes(one.judged),
            )
            for one in known
        ],
    )


def _check_place(out: Path) -> None:
    """A place that cannot be written to is refused before the work."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is there already and not empty; choose another --out.")
    outside_runs(out)


def _judging(grown: "Reader", data: Path | None, before: "Reader") -> "tuple[Reader, RefitFigures | None]":
    if data is None:
        return grown, None
    from medgrape.training.refit import refit

    fitted = refit(grown, data, original=before, track=track, watch=watch)
    return fitted.reader, fitted.figures


def _told(lesson: _Lesson, out: Path) -> dict[str, Any]:
    from medgrape.vocabulary.new_concept import known_concepts

    loaded, figures = lesson.saved.loaded, lesson.figures
    (known,) = (one for one in known_concepts(loaded.run) if one.name == lesson.name)
    return {
        "run": str(out),
        "fingerprint": loaded.manifest.fingerprint,
        "parent": loaded.run.changes[-1].parent,
        "changes": lesson.changes,
        "concept": known.to_json(),
        "examples": [{"film": str(p.path), "x": p.x, "y": p.y, "in_box": p.in_box} for p in lesson.points],
        "refit": None if figures is None else figures.to_json(),
    }


def _print_lesson(lesson: _Lesson, out: Path) -> None:
    for sentence in lesson.changes:
        note(sentence)
    if lesson.points:
        table(
            f"Where it sees {lesson.saved.concepts[lesson.name].title} on the examples",
            ("film", "strongest at (x, y)", "in its box"),
            [(printable(str(p.path)), f"{p.x:.0f}, {p.y:.0f}", _yes(p.in_box)) for p in lesson.points],
        )
    else:
        note("No film has shown it yet: where it points is a guess, and how strongly it is seen cannot be told.")
    if lesson.figures is not None:
        print_refit(lesson.figures)
    note(f"run: {out}")


def _yes(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "-"}[value]


app.command()(trial)
