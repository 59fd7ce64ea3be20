"""Bulk reading on a Ray cluster of two nodes, one of which is lost."""

import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest
from bulk_scenes import bulk_request, copies, rows

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # loopback only; Ray reads it when it is imported
ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402

from medgrape.bulk.ray_cluster import RayEngine, cluster, cluster_cores  # noqa: E402
from medgrape.bulk.run import read_in_bulk  # noqa: E402
from medgrape.errors import UserError  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves its processes' pipes to the collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.xdist_group("ray"),
]
SOON = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 200, "health_check_failure_threshold": 3}


@pytest.fixture(scope="module")
def nodes():
    """A head with one core, and another node with one; both listen to this machine alone."""
    here = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 1, "include_dashboard": False, "object_store_memory": 100 * 2**20, "_system_config": SOON,
        },
    )  # fmt: skip
    other = here.add_node(num_cpus=1, object_store_memory=100 * 2**20)
    yield here, other
    here.shutdown()


def readers() -> list[psutil.Process]:
    """Processes of actors that are reading: by their ids, those of our own cluster alone."""
    ours = psutil.Process().children(recursive=True)
    return [one for one in ours if one.status() != psutil.STATUS_ZOMBIE and "RemoteReader" in one.name()]


def once_there(out, count, do) -> threading.Thread:
    def wait() -> None:
        deadline = time.monotonic() + 90
        while len(list(out.glob("part-*"))) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        do()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_killed_actor_and_a_lost_node_neither_lose_nor_duplicate_rows(nodes, tiny, films, tmp_path):
    here, other = nodes
    folder, out, killed = copies(films, tmp_path / "many", 600), tmp_path / "out", []
    done_then = []

    def kill_one() -> None:
        killed.append(readers()[0].pid)
        os.kill(killed[0], signal.SIGKILL)

    first = once_there(out, 3, kill_one)

    def lose_node() -> None:
        here.remove_node(other, allow_graceful=False)
        done_then.append(len(list(out.glob("part-*"))))

    second = once_there(out, 40, lose_node)
    with cluster(here.address):
        summary = read_in_bulk(bulk_request(folder, tiny, out), RayEngine(cluster_cores()))
    first.join()
    second.join()
    assert len(killed) == 1
    assert done_then[0] < 150  # there was still something to lose
    assert (summary.workers, summary.all.films, summary.all.refused) == (2, 600, 0)
    assert [row["film"] for row in rows(out)] == [str(film) for film in sorted(folder.iterdir())]


def test_a_model_that_a_node_cannot_load_gives_an_error_of_one_sentence(nodes, tiny):
    from medgrape.bulk.film_reader import WorkerConfig
    from medgrape.bulk.ray_cluster import RayWorkerSlot

    with cluster(nodes[0].address):
        slot = RayWorkerSlot(WorkerConfig(model=tiny, version="0123456789abcdef"))
        slot.launch()
        with pytest.raises(UserError, match="another model here"):
            slot.wait(lambda: True)
        slot.close()


def test_a_wrong_address_and_a_machine_without_ray_give_errors_of_one_sentence(monkeypatch):
    with pytest.raises(UserError, match=r"No Ray cluster answers at 127.0.0.1:1:"), cluster("127.0.0.1:1"):
        pass
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"pip install 'medgrape\[cluster\]'"), cluster(None):
        pass


@pytest.mark.slow
def test_a_cluster_started_by_medgrape_listens_only_to_this_machine(tiny, films, tmp_path):
    command = [sys.executable, "-m", "medgrape", "predict", str(films[0].parent), "--model", str(tiny)]
    running = subprocess.Popen([*command, "--out", str(tmp_path / "out"), "--engine", "ray"], stdout=subprocess.PIPE)
    heard = set()
    while running.poll() is None:
        heard |= ears(running.pid)
        time.sleep(0.2)
    assert b"8 films: 8 read, 0 refused" in running.stdout.read()
    running.stdout.close()
    assert heard
    assert heard <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


def ears(process: int) -> set[str]:
    found = set()
    for one in [psutil.Process(process), *psutil.Process(process).children(recursive=True)]:
        try:
            found |= {port.laddr.ip for port in one.net_connections("inet") if port.status == psutil.CONN_LISTEN}
        except psutil.NoSuchProcess:
            continue
    return found
