"""``medgrape concept``: teach a model new concepts, list its concepts, and test how well few films teach one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer

from medgrape.cli.changed_run import (
    ChangedRun,
    RefitData,
    RefitFlag,
    check_refit_options,
    check_run_folder,
    save_changed,
)
from medgrape.cli.console import note, print_json, print_result, print_warnings, table, track
from medgrape.cli.options import Json, RunOption, outside_runs, parse_numbers
from medgrape.config import MAX_SEED
from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError
from medgrape.geometry import Box

if TYPE_CHECKING:
    from medgrape.evaluation.few_shot import Shots, VocabularyTrial

app = Typer(no_args_is_help=True, help="Teach a trained model new concepts, and list its concepts.")
Out = Annotated[Path, Option(help="Folder for the new run; it records the run it was made from.")]


@app.command()
def add(
    name: Annotated[str, Argument(help="Short name of the new concept, such as cavity.")],
    model: RunOption,
    out: Out,
    description: Annotated[str, Option(help="One sentence on its appearance on a chest film.")],
    title: Annotated[str | None, Option(help="Name for display. (default: made from NAME)")] = None,
    example: Annotated[
        list[str] | None, Option(help="FILM or FILM:x1,y1,x2,y2: a film that shows it; repeatable.")
    ] = None,
    grow: Annotated[bool, Option("--grow", help="Add it to the head; no prediction changes yet.")] = False,
    refit: RefitFlag = False,
    data: RefitData = None,
    seed: Annotated[int, Option(min=0, max=MAX_SEED, help="Random seed of its prototypes.")] = 0,
    as_json: Json = False,
) -> None:
    """Teach a model a concept from a description, and from example films if given.

    With --grow or --refit the head uses the concept; otherwise the model only localises it.

    Example: medgrape concept add cavity --model runs/demo --out runs/cavity --description "Thick-walled lucency."
    """
    from medgrape.reader import load
    from medgrape.vocabulary.learning import point_at
    from medgrape.vocabulary.new_concept import known_concepts

    check_run_folder(out)
    check_refit_options(refit, data)
    examples = [parse_example(text) for text in example or ()]
    if data is not None:
        Dataset.load(data)  # an error now is better than one after the work
    original = load(model)
    learnt = original.learn(name, description, examples, title=title, seed=seed, track=track)
    points = point_at(learnt.loaded.run, name, examples, track)
    saved = save_changed(learnt.grow_head() if grow or refit else learnt, original, out, data)
    loaded = saved.reader.loaded
    if as_json:
        (concept,) = (concept for concept in known_concepts(loaded.run) if concept.name == name)
        shown = [{"film": point.path, "x": point.x, "y": point.y, "in_box": point.in_box} for point in points]
        print_json({
            "run": out, "fingerprint": loaded.manifest.fingerprint, "parent": loaded.run.changes[-1].parent,
            "changes": saved.changes, "concept": concept, "examples": shown, "refit": saved.figures,
        })  # fmt: skip
        return
    if points:
        table(
            f"Strongest point of {saved.reader.concepts[name].title} on the examples",
            ("film", "(x, y)", "in its box"),
            [(point.path, f"{point.x:.0f}, {point.y:.0f}", point.in_box) for point in points],
        )
    else:
        note("No example film was given: where the model sees the concept is a guess, and its strength is unknown.")
    saved.print()


def parse_example(text: str) -> Path | tuple[Path, Box]:
    """Parse ``FILM:x1,y1,x2,y2`` or ``FILM``; the last colon counts, as the name of a file may contain others."""
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
    out: Out,
    data: Annotated[
        Path | None, Option(help="Prepared data set to fit the head on. Without it, no prediction changes.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Add the concepts learnt after training to the inputs of the head; with --data, also fit the head again.

    Example: medgrape concept grow --model runs/cavity --out runs/grown --data data/tb
    """
    from medgrape.reader import load

    check_run_folder(out)
    if data is not None:
        Dataset.load(data)  # an error now is better than one after the work
    original = load(model)
    can_grow = original.loaded.run.model.head_concepts < len(original.concepts)
    changed = original.grow_head() if can_grow or data is None else original
    saved = save_changed(changed, original, out, data)
    print_result(saved, ChangedRun.print, as_json=as_json)


@app.command("list")
def list_(model: RunOption, as_json: Json = False) -> None:
    """List the concepts of a model, when it learnt them, and whether its head uses them.

    Example: medgrape concept list --model runs/demo
    """
    from medgrape.reader import load
    from medgrape.vocabulary.new_concept import known_concepts

    concepts = known_concepts(load(model).loaded.run)
    if as_json:
        print_json(concepts)
        return
    table(
        str(model),
        ("concept", "title", "learnt", "from films", "used by the head"),
        [(c.name, c.title, "in training" if c.trained else "later", c.taught_by_films, c.judged) for c in concepts],
    )


@app.command()
def trial(
    model: RunOption,
    data: Annotated[Path, Option(help="Prepared data set with boxes on training and test films.")],
    examples: Annotated[str, Option(help="Numbers of films to learn from; 0: from its description.")] = "0,1,5,20",
    seeds: Annotated[int, Option(min=1, help="Number of random draws of these films.")] = 5,
    without_boxes: Annotated[bool, Option("--without-boxes", help="Hide the boxes of these films.")] = False,
    split: Annotated[str, Option(help="Split: val while you choose settings, test once at the end.")] = "test",
    out: Annotated[Path | None, Option(help="Write all figures to this JSON file.")] = None,
    as_json: Json = False,
) -> None:
    """Leave out each concept in turn, learn it again from few films, and measure how well the model localises it.

    Example: medgrape concept trial --model runs/demo --data demo/data --examples 0,1,5 --seeds 3
    """
    from medgrape.evaluation.few_shot import TrialPlan, leave_one_out, write_trial
    from medgrape.runs.checkpoint import load_run

    if out is not None:
        outside_runs(out)
    plan = TrialPlan(parse_numbers("--examples", examples), seeds, not without_boxes, split)
    result = leave_one_out(load_run(model), data, plan, track=track)
    if out is not None:
        write_trial(result, out)
    if as_json:
        print_json(result)
        return
    _print_trial(result)
    if out is not None:
        note(f"figures: {out}")


def _print_trial(result: "VocabularyTrial") -> None:
    average = result.average
    numbers = [f"{shots.films} {'film' if shots.films == 1 else 'films'}" for shots in average.shots]
    table(
        f"Learnt again {'with' if result.boxes else 'without'} boxes, pointing game on {result.split} films of "
        f"{result.data_set} (mean ± standard error over {len(average.shots[0].by_seed)} seeds)",
        ("concept", "pairs", *numbers, "full supervision", "fixed point", "random point"),
        [
            (row.title, row.pairs, *map(_format_pointing, row.shots), row.full, row.fixed, row.chance)
            for row in (*result.concepts, average)
        ],
    )
    for shots in average.shots:
        share = result.share_of_full(shots)
        text = "full supervision never hits a box" if share is None else f"{share.mean:.0%} of full supervision"
        error = "" if share is None or share.se is None else f" (± {share.se:.0%})"
        note(f"{shots.films} films: {text}{error}, learnt in {shots.seconds:.2f} s, without the time for encoding.")
    trend = "are never worse than fewer, within one standard error" if result.monotone else "can be worse than fewer"
    note(f"More films {trend}.")
    print_warnings(result.warnings)


def _format_pointing(shots: "Shots") -> str:
    pointing = shots.pointing
    return f"{pointing.mean:.3f}" if pointing.se is None else f"{pointing.mean:.3f} ± {pointing.se:.3f}"
