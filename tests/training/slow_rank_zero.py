"""Two processes of which rank 0 is slow: the other one times out in the group for gradients, not at the barrier."""

import sys
import time
from datetime import timedelta

import torch.distributed as dist
from lightning_fabric import Fabric

from medgrape.training.processes import Barrier

SHORT = 1.0

if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=SHORT))
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    barrier, slow = Barrier.of(fabric), dist.get_rank() == 0
    time.sleep(2 * SHORT if slow else 0)
    barrier.wait()
    time.sleep(2 * SHORT if slow else 0)
    value = barrier.broadcast("at last" if slow else "nothing")
    if not slow:
        sys.stdout.write(f"broadcast: {value}\n")
        try:
            dist.barrier()
        except RuntimeError:
            sys.stdout.write("the process group for gradients timed out\n")
    else:
        time.sleep(3 * SHORT)
