"""Trains in a child process and kills it at moments drawn by lot, until there were enough kills.

Run as a script: nothing here uses torch's threads before it forks.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from medgrape.training.run import TrainingJob, resumable, train
from small_settings import small


def attempt(job: TrainingJob, patience: float | None) -> bool:
    """Whether the training came to its end; with patience, it is killed after so many seconds."""
    child = os.fork()
    if child == 0:
        train(job)
        os._exit(0)
    end = None if patience is None else time.monotonic() + patience
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            if status != 0:
                sys.exit(f"the training failed by itself with status {status}")
            return True
        if end is not None and time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.01)


def main() -> None:
    drawn_dataset, folder, kills, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    chance = random.Random(seed)  # noqa: S311
    began = time.monotonic()
    attempt(TrainingJob(small(), drawn_dataset, folder / "timed"), None)
    whole = time.monotonic() - began
    killed, midway, finished, number = 0, 0, [str(folder / "timed")], 0
    while killed < kills:
        number += 1
        job = TrainingJob(small(), drawn_dataset, folder / f"run{number}")
        while not attempt(job, chance.uniform(0.05, 0.6) * whole if killed < kills else None):
            killed += 1
            midway += resumable(job)
        finished.append(str(job.out))
    sys.stdout.write(json.dumps({"kills": killed, "midway": midway, "finished": finished}))


if __name__ == "__main__":
    main()
