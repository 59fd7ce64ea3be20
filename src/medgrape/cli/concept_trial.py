"""``medgrape concept trial``: how well does a model learn a concept again from few films?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import note, print_json, table, track
from medgrape.cli.options import Json, RunOption, outside_runs
from medgrape.errors import UserError

if TYPE_CHECKING:  # torch is slow to import
    from medgrape.evaluation.vocabulary_figures import Shots, VocabularyTrial


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
    from medgrape.evaluation.vocabulary import TrialPlan, leave_one_out, write_trial
    from medgrape.model.checkpoint import load_run

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
