"""Watches in a child process that kills itself at named moments, one after the other, with a new film before each.

Run as a script: nothing here uses torch's threads before it forks.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import highdicom  # noqa: F401 (once, for all children)
import torch  # noqa: F401
from orthanc import Orthanc

from medgrape import reader  # noqa: F401
from medgrape.hospital import objects, report  # noqa: F401
from medgrape.hospital.pacs import watch as watching
from medgrape.hospital.pacs.chest_reader import ChestReader, Readings
from medgrape.hospital.pacs.ledger import Ledger
from medgrape.hospital.pacs.servers import configured_server

MOMENTS = {
    "films were noted": (Ledger, "note", "after", None),
    "the film was begun": (Ledger, "begin", "after", None),
    "the film was fetched": (watching, "fetch", "after", None),
    "the reading was made": (ChestReader, "read", "after", None),
    "the reading was kept": (Readings, "keep", "after", None),
    "the reading was settled": (Ledger, "settle", "after", "unsent"),
    "one object was stored": (watching, "store", "after", None),
    "all objects were stored": (Ledger, "settle", "before", "sent"),
    "storing was settled": (Ledger, "settle", "after", "sent"),
    "copies were removed": (Readings, "remove_objects", "after", None),
}
"""What has just happened, and where that is."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def make_die(owner: object, name: str, when: str, word: str | None) -> None:
    """The next call of a function, with ``word`` among what it is told, is the last thing that this process does."""
    kept = getattr(owner, name)

    def deadly(*args, **kwargs):
        meant = word is None or word in args
        if meant and when == "before":
            die()
        result = kept(*args, **kwargs)
        if meant:
            die()
        return result

    setattr(owner, name, deadly)


def attempt(order: watching.WatchOrder, moment: str | None, seconds: float | None = None) -> str:
    """How a child ended that dies at a moment, or is killed after some seconds, or neither."""
    child = os.fork()
    if child == 0:
        if moment is not None:
            make_die(*MOMENTS[moment])
        watching.watch(order, lambda _: None)
        os._exit(0)
    status = None if seconds is None else ended_within(child, seconds)
    if status is None and seconds is not None:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1] if status is None else status
    return "killed" if os.WIFSIGNALED(status) else f"ended with {status}"


def ended_within(child: int, seconds: float) -> int | None:
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.005)
    return None


def main() -> None:
    told = json.loads(sys.argv[1])
    server = configured_server("hospital", Path(told["servers"]))
    order = watching.WatchOrder(
        server, Path(told["model"]), Path(told["out"]), since="always", push=True, once=True
    )  # fmt: skip
    orthanc = Orthanc(Path(told["folder"]), told["port"])
    ended = {}
    for film, (key, seconds) in zip(told["films"], told["kills"], strict=True):
        orthanc.receive(Path(film))
        ended[key] = attempt(order, key if seconds is None else None, seconds)
    ended["at last"] = attempt(order, None)
    sys.stdout.write(json.dumps(ended))


if __name__ == "__main__":
    main()
