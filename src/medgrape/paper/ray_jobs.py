"""Jobs on a Ray cluster: independent ones at once, and whatever would be learnt twice only once.

Results, runs and kept stages are files below ``--out``, which every node must see. A job claims the runs and the stages
that it needs and that nobody has made yet; another that needs one of them waits until it is there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from medgrape.bulk.ray_cluster import cluster_cores, import_ray
from medgrape.config import Config
from medgrape.datasets.cache import FilmCache
from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError, os_error_message
from medgrape.paper.jobs import Job, Place, Role
from medgrape.paper.work import Tell, do_one, undone
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.runs.manifest import MANIFEST
from medgrape.training.plan import shared_stages

MOST_DEATHS = 3
"""How many workers may die over one job before it is given up."""


@dataclass
class Waiting:
    """A job that is still to be done, and what nobody else may make meanwhile."""

    number: int
    job: Job
    claims: frozenset[str]
    deaths: int = 0


@dataclass
class Board:
    """Which jobs wait, and what is being made."""

    waiting: list[Waiting]
    made: set[str] = field(default_factory=set)
    under_way: dict[Any, Waiting] = field(default_factory=dict)
    """By the task that does it."""

    def next(self) -> Waiting | None:
        """The first job that shares nothing unmade with those under way. Times are measured last, and alone."""
        claimed = {claim for one in self.under_way.values() for claim in one.claims} - self.made
        for one in self.waiting:
            alone = one.job.kind == "latency"
            if alone and (self.under_way or any(other.job.kind != "latency" for other in self.waiting)):
                continue
            if not claimed & one.claims:
                self.waiting.remove(one)
                return one
        return None

    @property
    def busy_with_times(self) -> bool:
        """Whether nothing else may be started."""
        return any(one.job.kind == "latency" for one in self.under_way.values())

    def give_back(self, one: Waiting) -> None:
        """A job whose worker died; a job that ends every worker is given up."""
        one.deaths += 1
        if one.deaths == MOST_DEATHS:
            raise UserError(
                f"{one.job.name} ended {MOST_DEATHS} workers; what is done is kept: give the command again."
            )
        self.waiting.insert(0, one)


def do_all_on_cluster(jobs: Sequence[Job], place: Place, tell: Tell, track: Track, watch: Watch) -> None:
    """As ``do_all``, in the session that is open; no more jobs are handed out than the cluster has cores."""
    del watch  # the epochs of many trainings at once make no bar
    ray, seen = import_ray(), _seen_from_anywhere(place)
    board = Board([Waiting(number, job, claims(job, seen)) for number, job in undone(jobs, place, tell)])
    _cache_films([one.job for one in board.waiting], seen, track)
    task = ray.remote(max_retries=0)(_do)
    while board.waiting or board.under_way:
        for one in _startable(board, cluster_cores()):
            tell(f"{one.number} of {len(jobs)}: {one.job.name}")
            board.under_way[task.options(num_cpus=1).remote(one.job, seen)] = one
        (done, *_), _ = ray.wait(list(board.under_way))
        _settle(ray, done, board)


def _startable(board: Board, cores: int) -> Iterator[Waiting]:
    while len(board.under_way) < cores and not board.busy_with_times:
        one = board.next()
        if one is None:
            return
        yield one


def _settle(ray: Any, task: Any, board: Board) -> None:  # noqa: ANN401 (untyped)
    one = board.under_way.pop(task)
    try:
        mistake = ray.get(task)
    except ray.exceptions.RayTaskError:  # a fault of ours, not of the node
        raise
    except ray.exceptions.RayError:
        board.give_back(one)
        return
    if mistake is not None:
        raise UserError(f"{one.job.name}: {mistake}")
    board.made |= one.claims


def _do(job: Job, place: Place) -> str | None:
    """On some node; what a person has to mend, if anything."""
    try:
        do_one(job, place, quietly, unwatched)
    except UserError as mistake:
        return str(mistake)
    except OSError as error:
        return os_error_message(error)
    return None


def claims(job: Job, place: Place) -> frozenset[str]:
    """The runs that a job trains, and the stages that these share with other trainings."""
    found = set[str]()
    for recipe in (job.recipe, *job.others):
        run = place.run(recipe, job.seed, job.role)
        if not (run / MANIFEST).is_file():
            stages = shared_stages(place.config(recipe, job.seed, job.role))
            found |= {str(run), *(f"{job.role} {stage}" for stage in stages)}
    return frozenset(found)


def _cache_films(jobs: Sequence[Job], place: Place, track: Track) -> None:
    """Once, before many processes want to decode the same films."""
    wanted: dict[tuple[Role, str], Config] = {}
    for job in jobs:
        config = place.config(job.recipe, job.seed, job.role)
        wanted[job.role, f"{config.preprocessing} {config.limits}"] = config
    for (role, _), config in wanted.items():
        dataset = Dataset.load(place.folder(role))
        paths = [dataset.film_path(film) for film in dataset.pictured]
        FilmCache(place.folder(role) / "cache", config).films(paths, track=track)


def _seen_from_anywhere(place: Place) -> Place:
    """Nodes work in folders of their own."""
    data = {
        role: facts if facts.folder is None else replace(facts, folder=facts.folder.resolve())
        for role, facts in place.data.items()
    }
    return replace(place, out=place.out.resolve(), data=data)
