"""Jobs on a Ray cluster: independent jobs run in parallel, and a shared stage is trained only once.

Results, runs and kept stages are files below ``--out``, which every node must see. A job claims the runs and stages
that it needs and that do not exist yet; a job that needs a claimed one waits until it exists.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from medgrape.bulk.ray_cluster import cluster_cores, import_ray
from medgrape.config import Config
from medgrape.datasets.cache import FilmCache
from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError, os_error_message
from medgrape.paper.jobs import PaperJob, Tell, tell_done
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.runs.manifest import MANIFEST
from medgrape.training.plan import shared_stages

MOST_DEATHS = 3
"""How many workers may die while doing a job before it is given up."""


@dataclass
class Waiting:
    """A job to do, and the runs and stages that it claims."""

    number: int
    job: PaperJob
    claims: frozenset[str]
    deaths: int = 0


@dataclass
class Board:
    """Jobs that wait, and jobs that run."""

    waiting: list[Waiting]
    made: set[str] = field(default_factory=set)
    """Claims of the jobs that are done."""
    running: dict[Any, Waiting] = field(default_factory=dict)
    """By Ray task."""

    def next(self) -> Waiting | None:
        """Take the first job whose claims are free. Latency is measured last, with nothing else running."""
        if any(waiting.job.kind == "latency" for waiting in self.running.values()):
            return None
        claimed = {claim for waiting in self.running.values() for claim in waiting.claims} - self.made
        for waiting in self.waiting:
            alone = waiting.job.kind == "latency"
            if alone and (self.running or any(other.job.kind != "latency" for other in self.waiting)):
                continue
            if not claimed & waiting.claims:
                self.waiting.remove(waiting)
                return waiting
        return None

    def give_back(self, waiting: Waiting) -> None:
        """Put back a job whose worker died, unless it has killed several workers."""
        waiting.deaths += 1
        if waiting.deaths == MOST_DEATHS:
            raise UserError(
                f"{waiting.job.name} ended {MOST_DEATHS} workers; finished jobs are kept: give the command again."
            )
        self.waiting.insert(0, waiting)


def do_all_on_cluster(
    jobs: Sequence[PaperJob], tell: Tell, track: Track, watch: Watch, after_each: Callable[[], object] = lambda: None
) -> None:
    """Do the jobs like ``do_all``, in the open Ray session, at most one for each core of the cluster."""
    del watch  # parallel trainings share no progress bar
    ray = import_ray()
    tell_done(jobs, tell)
    left = [(number, on_any_node(job)) for number, job in enumerate(jobs, 1) if job.found() is None]
    board = Board([Waiting(number, job, claims(job)) for number, job in left])
    _cache_films([job for _, job in left], track)
    task = ray.remote(max_retries=0)(_do)
    while board.waiting or board.running:
        while len(board.running) < cluster_cores() and (waiting := board.next()) is not None:
            tell(f"{waiting.number} of {len(jobs)}: {waiting.job.title}")
            board.running[task.options(num_cpus=1).remote(waiting.job)] = waiting
        (done, *_), _ = ray.wait(list(board.running))
        waiting = board.running.pop(done)
        try:
            mistake = ray.get(done)
        except ray.exceptions.RayTaskError:  # a bug in the task, not a failure of the node
            raise
        except ray.exceptions.RayError:
            board.give_back(waiting)
            continue
        if mistake is not None:
            raise UserError(f"{waiting.job.name}: {mistake}")
        board.made |= waiting.claims
        after_each()


def _do(job: PaperJob) -> str | None:
    """Do a job on some node; return a mistake that the user can correct."""
    try:
        job.do(quietly, unwatched)
    except UserError as mistake:
        return str(mistake)
    except OSError as error:
        return os_error_message(error)
    return None


def claims(job: PaperJob) -> frozenset[str]:
    """Return the runs that a job trains, and the stages that these share with other trainings."""
    found = set[str]()
    for recipe, config in job.configs.items():
        run = job.run_of(recipe)
        if not (run / MANIFEST).is_file():
            found |= {str(run), *(f"{job.role} {stage}" for stage in shared_stages(config))}
    return frozenset(found)


def _cache_films(jobs: Sequence[PaperJob], track: Track) -> None:
    """Decode the films once, before many processes need them."""
    wanted: dict[tuple[str, str], tuple[PaperJob, Config]] = {}
    for job in jobs:
        config = job.configs[job.recipe]
        wanted[job.role, f"{config.preprocessing} {config.limits}"] = (job, config)
    for job, config in wanted.values():
        dataset = Dataset.load(job.folder)
        paths = [dataset.film_path(film) for film in dataset.pictured]
        FilmCache(job.folder / "cache", config).films(paths, track=track)


def on_any_node(job: PaperJob) -> PaperJob:
    """Make the paths of a job absolute, because a node works in another folder."""
    data = {
        role: facts.model_copy(update={"folder": facts.folder and facts.folder.resolve()})
        for role, facts in job.workspace.data.items()
    }
    return replace(job, workspace=replace(job.workspace, data=data, out=job.workspace.out.resolve()))
