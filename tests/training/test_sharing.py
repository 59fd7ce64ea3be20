"""Films of a batch are shared between processes, and what one process has written is waited for."""

from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st

from medgrape.training import processes
from medgrape.training.films import TrainingError, shuffled, whole_batch
from medgrape.training.processes import Barrier, agree_on_name

COUNTS = {"films": st.integers(1, 300), "batch": st.integers(1, 64), "world": st.integers(1, 8)}
SEEDS = st.integers(0, 2**32 - 1)


def shares(films, batch, world, *seed):
    """For each process, its part of every batch of an epoch."""
    return [list(shuffled(range(films), batch, (rank, world), *seed)) for rank in range(world)]


@given(**COUNTS, seed=SEEDS)
def test_no_film_is_seen_twice_in_an_epoch_and_only_an_incomplete_batch_is_left_over(films, batch, world, seed):
    if min(films, batch) < world:
        with pytest.raises(TrainingError, match="too few"):
            shares(films, batch, world, seed)
        return
    seen = [film for share in shares(films, batch, world, seed) for part in share for film in part]
    assert len(seen) == len(set(seen))
    assert films - len(seen) == films % whole_batch(films, batch, world)


@given(films=st.integers(8, 300), parts=st.integers(1, 8), world=st.integers(1, 8), seed=SEEDS)
def test_processes_together_see_the_batches_of_a_single_process(films, parts, world, seed):
    batch = parts * world
    if films < batch:
        batch = films - films % world
    alone = [set(part) for part in shuffled(range(films), batch, (0, 1), seed)]
    together = [set(chain(*parts)) for parts in zip(*shares(films, batch, world, seed), strict=True)]
    assert together == alone


@given(**COUNTS, seed=SEEDS)
def test_every_process_gets_equal_and_reproducible_batches(films, batch, world, seed):
    if min(films, batch) < world:
        return
    found = shares(films, batch, world, seed)
    assert {tuple(len(part) for part in share) for share in found} == {tuple(len(part) for part in found[0])}
    assert found == shares(films, batch, world, seed)


@given(batch=st.integers(1, 16), accumulate=st.integers(1, 4), films=st.integers(64, 300), seed=SEEDS)
def test_consecutive_batches_make_up_a_larger_batch(batch, accumulate, films, seed):
    small = [set(part) for part in shuffled(range(films), batch, (0, 1), seed)]
    large = [set(part) for part in shuffled(range(films), batch * accumulate, (0, 1), seed)]
    for number, whole in enumerate(large):
        assert set().union(*small[number * accumulate : (number + 1) * accumulate]) == whole


def test_disks_that_are_not_shared_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_SHARED_WITHIN", 0.3)
    monkeypatch.setattr(dist, "get_rank", lambda: 5)
    with pytest.raises(TrainingError, match=r"process 5 does not see it.*disks that all processes share"):
        Barrier(group=object()).wait_until((tmp_path / "plan.json").is_file, tmp_path / "plan.json")


def test_a_file_that_appears_later_is_waited_for(tmp_path):
    looks = iter([False, False, True])
    Barrier(group=object()).wait_until(lambda: next(looks), tmp_path)
    assert next(looks, None) is None


def test_a_single_process_does_not_wait(tmp_path):
    alone = Barrier()
    alone.wait()
    alone.wait_for_file(tmp_path / "never")
    assert alone.broadcast("a word") == "a word"


@given(world=st.integers(2, 5), dead=st.lists(st.integers(0, 4), max_size=4, unique=True))
@settings(max_examples=10, deadline=None)
def test_processes_agree_on_a_name_whatever_earlier_attempts_stored(world, dead):
    """The store is that of an attempt that came to its end, or of which some processes had spoken."""
    store = dist.HashStore()
    with ThreadPoolExecutor(world) as crowd:
        before = set(crowd.map(lambda rank: agree_on_name(store, rank, world), range(world)))
        for rank in dead:  # an attempt of which only these had begun to speak
            store.set("call" if rank == 0 else f"answer {rank}", b"D" * (16 if rank == 0 else 32))
        after = set(crowd.map(lambda rank: agree_on_name(store, rank, world), reversed(range(world))))
    assert len(before) == len(after) == 1
    assert before != after
