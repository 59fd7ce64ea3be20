"""Where the processes that torchrun has started find each other, whatever an earlier attempt has left lying there.

torchrun keeps one store of addresses through all its attempts (its static rendezvous, which is the default). A process
that is started anew would find the address of one that was killed, and knock there in vain. So the processes of an
attempt first agree on a name that no attempt has used, and put their addresses under that.
"""

import secrets
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from medgrape.training.films import TrainingError

_PATIENCE = timedelta(minutes=30)
"""For a process that is late, and later on for one that hangs."""
_GLANCE = 0.02
_NAME = 16
"""Bytes."""


def join(device: torch.device) -> None:
    """Let this process and the others of its attempt be a group of torch's."""
    store, rank, world = next(dist.rendezvous("env://", timeout=_PATIENCE))  # type: ignore[attr-defined]
    attempt = agreed(store, rank, world)
    dist.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        store=dist.PrefixStore(attempt.hex(), store),  # type: ignore[attr-defined]
        rank=rank,
        world_size=world,
        timeout=_PATIENCE,
        device_id=None if device.type == "cpu" else device,
    )


def agreed(store: Any, rank: int, world: int) -> bytes:  # noqa: ANN401 (torch's, which has no common type)
    """A name that all processes of this attempt have heard from its first process, and no other process.

    The first one calls out a name of its own, each other one answers with that and a name of its own, and the first one
    repeats what it heard. Whoever hears its own name knows that the first one is alive; words of the dead are never
    answered.
    """
    mine, end = secrets.token_bytes(_NAME), time.monotonic() + _PATIENCE.total_seconds()
    while time.monotonic() < end:
        name = _called(store, mine, world) if rank == 0 else _answered(store, rank, mine)
        if name is not None:
            return name
        time.sleep(_GLANCE)
    raise TrainingError(f"Process {rank} of {world} has waited for the others in vain.")


def _called(store: Any, mine: bytes, world: int) -> bytes | None:  # noqa: ANN401
    store.set("call", mine)
    answers = [f"answer {rank}" for rank in range(1, world)]
    if not store.check(answers):
        return None
    heard = [store.get(answer) for answer in answers]
    if any(not answer.startswith(mine) for answer in heard):
        return None
    store.set("heard", b"".join([mine, *(answer[_NAME:] for answer in heard)]))
    return mine


def _answered(store: Any, rank: int, mine: bytes) -> bytes | None:  # noqa: ANN401
    if not store.check(["call"]):
        return None
    store.set(f"answer {rank}", store.get("call") + mine)
    heard = store.get("heard") if store.check(["heard"]) else b""
    return heard[:_NAME] if heard[rank * _NAME :][:_NAME] == mine else None
