"""Jobs on a Ray cluster: in parallel unless they share a stage, and again when a worker dies."""

import json
import os
import signal
import threading
import time

import psutil
import pytest

from medgrape.bulk.ray_cluster import cluster
from medgrape.errors import UserError
from medgrape.paper.ray_jobs import MOST_DEATHS, JobQueue, QueuedJob, claims, do_all_on_cluster
from medgrape.paper.reproduce import PaperRequest, reproduce
from medgrape.paper.suites import chosen_suites

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves its processes' pipes to the collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.xdist_group("ray"),
]


def queue_of(request):
    return JobQueue([QueuedJob(number, job, claims(job)) for number, job in enumerate(request.jobs(), 1)])


def started(queue):
    queued = queue.next()
    if queued is not None:
        queue.running[queued.number] = queued
    return queued and queued.job.name


def test_jobs_that_share_a_stage_wait_for_each_other_but_other_seeds_do_not(drawn_dataset, brief, tmp_path):
    shared = queue_of(
        PaperRequest(
            chosen_suites(["compare"]), drawn_dataset, tmp_path / "out", seeds=(0, 1), config=brief, quick=True
        )
    )
    assert [started(shared) for _ in range(3)] == ["films-first-csr-seed0", "films-first-csr-seed1", None]
    shared.done |= shared.running.pop(1).claims
    assert started(shared) == "films-first-grape-seed0"
    assert started(shared) is None


def test_latency_is_measured_last_and_alone(drawn_dataset, brief, tmp_path):
    shared = queue_of(
        PaperRequest(
            chosen_suites(["latency", "eta"]), drawn_dataset, tmp_path / "out", seeds=(0,), config=brief, quick=True
        )
    )
    assert [started(shared), started(shared)] == ["safety-first-grape-seed0", None]
    shared.done |= shared.running.popitem()[1].claims
    assert started(shared) == "latency-first-grape-seed0"
    assert shared.next() is None


def test_a_job_that_kills_three_workers_is_given_up(drawn_dataset, brief, tmp_path):
    request = PaperRequest(chosen_suites(["compare"]), drawn_dataset, tmp_path, seeds=(0,), config=brief, quick=True)
    lone = QueuedJob(1, request.jobs()[0], frozenset())
    shared = JobQueue([])
    for _ in range(MOST_DEATHS - 1):
        shared.give_back(lone)
    with pytest.raises(UserError, match="films-first-csr-seed0 ended 3 workers"):
        shared.give_back(lone)


def kill_one_worker(out, killed) -> None:
    """Kill one process of this test's cluster that is training, by its id."""
    deadline = time.monotonic() + 120
    while not killed and time.monotonic() < deadline:
        if list(out.glob("runs/.*.training/plan.json")):
            busy = [child for child in psutil.Process().children(recursive=True) if child.name() == "ray::_do"]
            if busy:
                os.kill(busy[0].pid, signal.SIGKILL)
                killed.append(busy[0].pid)
        time.sleep(0.05)


@pytest.mark.slow
def test_no_result_is_lost_when_a_worker_is_killed(drawn_dataset, brief, tmp_path):
    request = PaperRequest(
        chosen_suites(["compare"]), drawn_dataset, tmp_path / "out", seeds=(0,), config=brief, quick=True
    )
    killed, sentences = [], []
    killer = threading.Thread(target=kill_one_worker, args=(request.out, killed))
    killer.start()
    with cluster(None):
        made = reproduce(request, tell=sentences.append, work=do_all_on_cluster)
    killer.join()
    assert len(killed) == 1
    assert sentences == ["1 of 2: films-first-csr-seed0"] * 2 + ["2 of 2: films-first-grape-seed0"]
    assert [table["suite"] for table in made["tables"] if table["suite"] == "compare"] == ["compare"]
    results = [json.loads(path.read_text()) for path in sorted(request.out.glob("results/*.json"))]
    assert [result["job"] for result in results] == ["films-first-csr-seed0", "films-first-grape-seed0"]
    assert not any("Jobs that are not done" in warning for warning in made["warnings"])


@pytest.mark.slow
def test_an_error_of_the_user_on_a_node_is_reported_as_one_sentence(drawn_dataset, brief, tmp_path):
    request = PaperRequest(
        chosen_suites(["eta"]), drawn_dataset, tmp_path / "out", seeds=(0,), config=brief, quick=True
    )
    (request.out / "runs").mkdir(parents=True)
    (request.out / "runs" / "first-grape-seed0").write_text("a file where a folder should be")
    with cluster(None), pytest.raises(UserError, match="safety-first-grape-seed0: "):
        reproduce(request, work=do_all_on_cluster)
