"""Trains with two processes on the CPU. A script, so that the processes it spawns can import it."""

import sys
from pathlib import Path

from medgrape.training.run import TrainingJob, train
from small_settings import small

if __name__ == "__main__":
    config = small(training={"processes": 2, "threads": 1, "device": "cpu"})
    train(TrainingJob(config, Path(sys.argv[1]), Path(sys.argv[2])))
