"""Jobs are done one after the other: train what is not trained yet, measure, write the result."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from medgrape.baselines.methods import load_any
from medgrape.evaluation.evaluate import Loaded
from medgrape.paper.jobs import Job, Place
from medgrape.paper.measures.films import measure_films
from medgrape.paper.measures.methods import measure_faithfulness, measure_few_shot, measure_latency
from medgrape.paper.measures.pictures import draw_pictures
from medgrape.paper.measures.safety import measure_safety
from medgrape.paper.recipes import Recipe
from medgrape.progress import Track, Watch
from medgrape.runs.checkpoint import LoadedRun
from medgrape.training.preflight import refuse_settings
from medgrape.training.run import TrainingJob, train

Tell = Callable[[str], None]
Work = Callable[[Sequence[Job], Place, Tell, Track, Watch], None]
"""A way to do jobs: one after the other, or on many machines."""


def do_all(jobs: Sequence[Job], place: Place, tell: Tell, track: Track, watch: Watch) -> None:
    """Whatever has no result yet; a job that was broken off goes on with the epoch at which its training was."""
    for number, job in undone(jobs, place, tell):
        tell(f"{number} of {len(jobs)}: {job.name}")
        do_one(job, place, track, watch)


def undone(jobs: Sequence[Job], place: Place, tell: Tell) -> list[tuple[int, Job]]:
    """Jobs without a result, each with its number; whatever no training could use is refused."""
    for job in jobs:  # before the first of them, not after hours
        for recipe in (job.recipe, *job.others):
            refuse_settings(place.config(recipe, job.seed, job.role))
    left = [(number, job) for number, job in enumerate(jobs, 1) if place.found(job) is None]
    if len(left) < len(jobs):
        tell(f"{len(jobs) - len(left)} of {len(jobs)} jobs are done already.")
    return left


def do_one(job: Job, place: Place, track: Track, watch: Watch) -> None:
    """One job, with its result on disk."""
    began = time.monotonic()
    figures = do(job, place, track, watch)
    place.write(job, figures, time.monotonic() - began)


def do(job: Job, place: Place, track: Track, watch: Watch) -> dict[str, Any]:
    """The figures of one job."""
    data = place.folder(job.role)

    def run(recipe: Recipe) -> Loaded:
        config, out = place.config(recipe, job.seed, job.role), place.run(recipe, job.seed, job.role)
        return load_any(
            train(TrainingJob(config, data, out, stage_cache=place.out / "stages"), track=track, watch=watch)
        )

    loaded = run(job.recipe)
    if job.kind == "films":
        return measure_films(loaded, data, track)
    if job.kind == "faithfulness":
        return measure_faithfulness(loaded, data, place.faithful, track)
    if job.kind == "pictures":
        compared = {recipe.title: run(recipe) for recipe in job.others}
        return draw_pictures(compared, data, place.out / "pictures", loaded, job.name)
    assert isinstance(loaded, LoadedRun)  # noqa: S101 (suites ask these of GRAPE only)
    return _of_grape(job, loaded, [run(recipe) for recipe in job.others], place, track)


def _of_grape(job: Job, loaded: LoadedRun, others: list[Loaded], place: Place, track: Track) -> dict[str, Any]:
    data = place.folder(job.role)
    if job.kind == "safety":
        return measure_safety(loaded, data, track)
    if job.kind == "few-shot":
        return measure_few_shot(loaded, data, place.draws, track)
    (linear,) = others
    assert isinstance(linear, LoadedRun)  # noqa: S101
    return measure_latency(linear, loaded)
