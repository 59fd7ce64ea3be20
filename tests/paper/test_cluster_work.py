"""Jobs on a Ray cluster: at once where they can be, once where they share something, again where a worker dies."""

import json
import os
import signal
import threading
import time

import psutil
import pytest

from medgrape.bulk.ray_cluster import cluster
from medgrape.errors import UserError
from medgrape.paper.jobs import Job
from medgrape.paper.ray_jobs import MOST_DEATHS, Board, Waiting, claims, do_all_on_cluster
from medgrape.paper.recipes import fixed_recipes
from medgrape.paper.reproduce import Request, jobs_of, reproduce
from medgrape.paper.suites.registry import chosen

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves its processes' pipes to the collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.xdist_group("ray"),
]


def board(request):
    place = request.results().place
    jobs = jobs_of(request, request.results())
    return Board([Waiting(number, job, claims(job, place)) for number, job in enumerate(jobs, 1)])


def started(board):
    one = board.next()
    if one is not None:
        board.under_way[one.number] = one
    return one and one.job.name


def test_jobs_that_would_learn_the_same_stage_wait_for_each_other_and_other_seeds_do_not(
    drawn_dataset, brief, tmp_path
):
    shared = board(
        Request(chosen(["compare"]), drawn_dataset, tmp_path / "out", seeds=(0, 1), config=brief, quick=True)
    )
    assert [started(shared) for _ in range(3)] == ["films-first-csr-seed0", "films-first-csr-seed1", None]
    shared.made |= shared.under_way.pop(1).claims
    assert started(shared) == "films-first-grape-seed0"
    assert started(shared) is None


def test_times_are_measured_last_and_alone(drawn_dataset, brief, tmp_path):
    shared = board(
        Request(chosen(["latency", "eta"]), drawn_dataset, tmp_path / "out", seeds=(0,), config=brief, quick=True)
    )
    assert [started(shared), started(shared)] == ["safety-first-grape-seed0", None]
    shared.made |= shared.under_way.popitem()[1].claims
    assert started(shared) == "latency-first-grape-seed0"
    assert shared.busy_with_times


def test_a_job_that_ends_every_worker_is_given_up():
    lone = Waiting(1, Job("films", fixed_recipes()["csr"], 0), frozenset())
    shared = Board([])
    for _ in range(MOST_DEATHS - 1):
        shared.give_back(lone)
    with pytest.raises(UserError, match="films-first-csr-seed0 ended 3 workers"):
        shared.give_back(lone)


def kill_one_worker(out, killed) -> None:
    """By its id: a process of our own cluster that is training."""
    deadline = time.monotonic() + 120
    while not killed and time.monotonic() < deadline:
        if list(out.glob("runs/.*.training/plan.json")):
            busy = [one for one in psutil.Process().children(recursive=True) if one.name() == "ray::_do"]
            if busy:
                os.kill(busy[0].pid, signal.SIGKILL)
                killed.append(busy[0].pid)
        time.sleep(0.05)


@pytest.mark.slow
def test_a_killed_worker_costs_no_result(drawn_dataset, brief, tmp_path):
    request = Request(chosen(["compare"]), drawn_dataset, tmp_path / "out", seeds=(0,), config=brief, quick=True)
    killed, told = [], []
    killer = threading.Thread(target=kill_one_worker, args=(request.out, killed))
    killer.start()
    with cluster(None):
        made = reproduce(request, tell=told.append, work=do_all_on_cluster)
    killer.join()
    assert len(killed) == 1
    assert told == ["1 of 2: films-first-csr-seed0"] * 2 + ["2 of 2: films-first-grape-seed0"]
    assert [one["suite"] for one in made["tables"] if one["suite"] == "compare"] == ["compare"]
    results = [json.loads(path.read_text()) for path in sorted(request.out.glob("results/*.json"))]
    assert [one["job"] for one in results] == ["films-first-csr-seed0", "films-first-grape-seed0"]
    assert not any("Jobs that are not done" in warning for warning in made["warnings"])


@pytest.mark.slow
def test_what_a_person_has_to_mend_comes_back_from_a_node_as_a_sentence(drawn_dataset, brief, tmp_path):
    request = Request(chosen(["eta"]), drawn_dataset, tmp_path / "out", seeds=(0,), config=brief, quick=True)
    (request.out / "runs").mkdir(parents=True)
    (request.out / "runs" / "first-grape-seed0").write_text("a file where a folder should be")
    with cluster(None), pytest.raises(UserError, match="safety-first-grape-seed0: "):
        reproduce(request, work=do_all_on_cluster)
