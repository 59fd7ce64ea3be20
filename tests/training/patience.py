"""Two processes, the first one slow: on the line for gradients the other gives up, at the meeting it does not."""

import sys
import time
from datetime import timedelta

import torch.distributed as dist
from lightning_fabric import Fabric

from medgrape.training.barrier import Meeting

SHORT = 1.0

if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=SHORT))
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    meeting, slow = Meeting.of(fabric), dist.get_rank() == 0
    time.sleep(2 * SHORT if slow else 0)
    meeting.wait()
    time.sleep(2 * SHORT if slow else 0)
    heard = meeting.told("at last" if slow else "nothing")
    if not slow:
        sys.stdout.write(f"heard: {heard}\n")
        try:
            dist.barrier()
        except RuntimeError:
            sys.stdout.write("the line for gradients gave up\n")
    else:
        time.sleep(3 * SHORT)
