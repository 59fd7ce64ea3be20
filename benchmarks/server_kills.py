"""Kill a server under load repeatedly, and check that nothing it acknowledged is missing."""

import json
import os
import random
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.server_under_test import LOST, Caller, ServerFailedError, ServerUnderTest, new_reader
from medgrape.progress import Track, quietly

READERS = 4
EARLIEST, LATEST = 0.1, 1.5
"""Seconds of load before a kill."""
MOST_STEPS = 900
PATIENCE = 60.0


@dataclass
class Reader:
    """A reader who draws boxes and records the server's answers."""

    caller: Caller
    film: str
    study: str
    acknowledged: dict[int, dict[str, Any]] = field(default_factory=dict)
    """State of the study after each acknowledged step."""
    refused: list[str] = field(default_factory=list)
    """Answers that were neither a success nor a lost connection."""

    def draw(self, chance: random.Random, stop: threading.Event) -> None:
        """Draw boxes, with undos to keep the study short, until the server is gone."""
        while not stop.is_set() and max(self.acknowledged, default=0) < MOST_STEPS:
            back = chance.random() < 0.45 and bool(self.acknowledged)
            try:
                status, body = self.caller.ask(
                    "POST", f"/studies/{self.study}/{'undo' if back else 'boxes'}", _asked(chance, back)
                )
            except LOST:
                return
            self._note(status, body)

    def _note(self, status: int, body: bytes) -> None:
        answer = json.loads(body)
        if status == 200:
            self.acknowledged[answer["study"]["revision"]] = answer["study"]
        elif answer.get("code") != "nothing_to_undo":
            self.refused.append(f"{status} {answer.get('code')}")


@dataclass(frozen=True)
class Kills:
    """The result of all kills."""

    kills: int
    acknowledged: int
    missing: int
    """Acknowledged steps that were missing or different afterwards."""
    refused: int
    slowest_start: float
    """Seconds until the server answered again."""
    whole: bool
    """Whether the log was verified after every kill and at the end."""
    worker_replaced: float | None
    """Seconds until a killed worker was replaced; None if it was not."""


def kill_again_and_again(
    tested: ServerUnderTest, admin: Caller, films: Sequence[bytes], kills: int, seed: int, track: Track = quietly
) -> Kills:
    """Load, kill, start and check, ``kills`` times."""
    chance = random.Random(seed)  # noqa: S311 (moments, not secrets)
    readers = [_reader(admin, number, films) for number in range(READERS)]
    missing, starts, whole = 0, [], True
    for _ in track(range(kills), f"killing the server {kills} times", kills):
        _load(tested, readers, chance)
        admin.hang_up()
        starts.append(tested.start())
        missing += sum(_missing(reader) for reader in readers)
        whole &= bool(admin.get("/log/verification")["whole"])
    replaced = _replaced(tested)
    whole &= bool(tested.verified()["whole"])
    acknowledged = sum(len(reader.acknowledged) for reader in readers)
    refused = sum(len(reader.refused) for reader in readers)
    return Kills(kills, acknowledged, missing, refused, max(starts), whole, replaced)


def _reader(admin: Caller, number: int, films: Sequence[bytes]) -> Reader:
    caller = new_reader(admin, f"reader{number}")
    film = caller.upload(films[number % len(films)])
    return Reader(caller, film, str(caller.post("/studies", {"film": film})["id"]))


def _load(tested: ServerUnderTest, readers: Sequence[Reader], chance: random.Random) -> None:
    stop = threading.Event()
    seeds = [random.Random(chance.random()) for _ in readers]  # noqa: S311
    threads = [
        threading.Thread(target=reader.draw, args=(own, stop)) for reader, own in zip(readers, seeds, strict=True)
    ]
    for thread in threads:
        thread.start()
    time.sleep(chance.uniform(EARLIEST, LATEST))
    tested.kill()
    stop.set()
    for thread in threads:
        thread.join()


def _missing(reader: Reader) -> int:
    """Count the acknowledged steps that are missing or different, and check the study's last state."""
    history = reader.caller.get(f"/studies/{reader.study}/history")
    lost = [
        step for step, state in reader.acknowledged.items()
        if step > len(history) or history[step - 1]["after"] != state["prediction"]
    ]  # fmt: skip
    last = max(reader.acknowledged, default=0)
    if last:
        now, state = reader.caller.get(f"/studies/{reader.study}?at={last}"), reader.acknowledged[last]
        lost += [last] if (now["prediction"], now["corrections"]) != (state["prediction"], state["corrections"]) else []
    return len(lost)


def _replaced(tested: ServerUnderTest) -> float | None:
    """Return the seconds until a killed worker was replaced and the server is ready; None if it never was."""
    before = _workers(tested)
    if not before:
        raise ServerFailedError("The server has no worker to kill.")
    began = time.perf_counter()
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    while time.perf_counter() - began < PATIENCE:
        time.sleep(0.05)
        now = _workers(tested)
        if victim not in now and now - before and tested.is_ready():
            return time.perf_counter() - began
    return None


def _workers(tested: ServerUnderTest) -> set[int]:
    """Return the ids of the processes that answer."""
    import psutil

    found = [one for one in psutil.Process(tested.process_id).children() if one.status() != psutil.STATUS_ZOMBIE]
    return {one.pid for one in found if "spawn_main" in " ".join(one.cmdline())}


def _asked(chance: random.Random, back: bool) -> dict[str, Any]:
    if back:
        return {}
    x, y = chance.uniform(0, 150), chance.uniform(0, 150)
    box = {"x1": x, "y1": y, "x2": x + chance.uniform(5, 60), "y2": y + chance.uniform(5, 60)}
    return {"box": box, "concept": None, "positive": chance.random() < 0.7}
