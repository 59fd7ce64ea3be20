"""Jobs on a Ray cluster: independent jobs run in parallel, and a shared stage is trained only once.

Results, runs and shared stages are files below ``--out``, which every node must see. A job claims the runs and stages
that it needs and that do not exist yet; a job that needs a claimed one waits until it exists.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from medgrape.bulk.ray_cluster import cluster_cores, import_ray
from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError, os_error_message
from medgrape.paper.jobs import PaperJob, Tell, tell_done
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.runs.manifest import MANIFEST
from medgrape.training.plan import shared_stages

MOST_DEATHS = 3  # workers that may die over a job before it is given up


@dataclass
class QueuedJob:
    """A job to do, and the runs and stages that it claims."""

    number: int
    job: PaperJob
    claims: frozenset[str]
    deaths: int = 0


@dataclass
class JobQueue:
    """Jobs that wait, and jobs that run."""

    waiting: list[QueuedJob]
    done: set[str] = field(default_factory=set)  # claims of the jobs that are done
    running: dict[Any, QueuedJob] = field(default_factory=dict)  # by Ray task

    def next(self) -> QueuedJob | None:
        """Take the first job whose claims are free. Latency is measured last, with nothing else running."""
        if any(queued.job.kind == "latency" for queued in self.running.values()):
            return None
        claimed = {claim for queued in self.running.values() for claim in queued.claims} - self.done
        for queued in self.waiting:
            busy = self.running or any(other.job.kind != "latency" for other in self.waiting)
            if not claimed & queued.claims and not (queued.job.kind == "latency" and busy):
                self.waiting.remove(queued)
                return queued
        return None

    def give_back(self, queued: QueuedJob) -> None:
        """Put back a job whose worker died; raise a ``UserError`` if several workers died over it."""
        queued.deaths += 1
        if queued.deaths == MOST_DEATHS:
            raise UserError(
                f"{queued.job.name} ended {MOST_DEATHS} workers; finished jobs are kept: give the command again."
            )
        self.waiting.insert(0, queued)


def do_all_on_cluster(
    jobs: Sequence[PaperJob], tell: Tell, track: Track, watch: Watch, after_each: Callable[[], object] = lambda: None
) -> None:
    """Do the jobs like ``do_all``, in the open Ray session, at most one for each core of the cluster."""
    del watch  # parallel trainings share no progress bar
    ray = import_ray()
    tell_done(jobs, tell)
    left = [(number, on_any_node(job)) for number, job in enumerate(jobs, 1) if job.load_result() is None]
    queue = JobQueue([QueuedJob(number, job, claims(job)) for number, job in left])
    _cache_films([job for _, job in left], track)
    task = ray.remote(max_retries=0)(_do)
    while queue.waiting or queue.running:
        while len(queue.running) < cluster_cores() and (queued := queue.next()) is not None:
            tell(f"{queued.number} of {len(jobs)}: {queued.job.title}")
            queue.running[task.options(num_cpus=1).remote(queued.job)] = queued
        (done, *_), _ = ray.wait(list(queue.running))
        queued = queue.running.pop(done)
        try:
            error = ray.get(done)
        except ray.exceptions.RayTaskError:  # a bug in the task, not a failure of the node
            raise
        except ray.exceptions.RayError:
            queue.give_back(queued)
            continue
        if error is not None:
            raise UserError(f"{queued.job.name}: {error}")
        queue.done |= queued.claims
        after_each()


def _do(job: PaperJob) -> str | None:
    """Do a job on a node; return the message of an error that the user can correct."""
    try:
        job.do(quietly, unwatched)
    except UserError as error:
        return str(error)
    except OSError as error:
        return os_error_message(error)
    return None


def claims(job: PaperJob) -> frozenset[str]:
    """Return the runs that a job trains, and the stages that these share with other trainings."""
    claimed = set[str]()
    for recipe, config in job.configs.items():
        run = job.run_of(recipe)
        if not (run / MANIFEST).is_file():
            claimed |= {str(run), *(f"{job.role} {stage}" for stage in shared_stages(config))}
    return frozenset(claimed)


def _cache_films(jobs: Sequence[PaperJob], track: Track) -> None:
    """Decode the films once, before many processes need them."""
    configs = {}
    for job in jobs:
        config = job.configs[job.recipe]
        configs[job.folder, f"{config.preprocessing} {config.limits}"] = config
    for (folder, _), config in configs.items():
        cached_films(config, Dataset.load(folder), folder, track)


def on_any_node(job: PaperJob) -> PaperJob:
    """Make the paths of a job absolute, because a node works in another folder."""
    data = {
        role: facts.model_copy(update={"folder": facts.folder and facts.folder.resolve()})
        for role, facts in job.workspace.data.items()
    }
    return replace(job, workspace=replace(job.workspace, data=data, out=job.workspace.out.resolve()))
