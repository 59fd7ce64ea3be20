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
from medgrape.hospital.pacs.chest_reader import ChestReader
from medgrape.hospital.pacs.ledger import Ledger
from medgrape.hospital.pacs.readings_folder import ReadingsFolder
from medgrape.hospital.pacs.servers import configured_server

MOMENTS = {
    "films were noted": (Ledger, "add_films", "after", None),
    "the film was begun": (Ledger, "begin_attempt", "after", None),
    "the film was fetched": (watching, "fetch", "after", None),
    "the reading was made": (ChestReader, "read", "after", None),
    "the reading was kept": (ReadingsFolder, "keep", "after", None),
    "the reading was settled": (Ledger, "set_state", "after", "unsent"),
    "one object was stored": (watching, "store", "after", None),
    "all objects were stored": (Ledger, "set_state", "before", "sent"),
    "storing was settled": (Ledger, "set_state", "after", "sent"),
    "copies were removed": (ReadingsFolder, "remove_objects", "after", None),
}
"""What has just happened -> object, function, before or after, argument."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def make_die(owner: object, name: str, when: str, word: str | None) -> None:
    """Kill this process at the next call of a function that has ``word`` among its arguments."""
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


def attempt(options: watching.WatchOptions, moment: str | None, seconds: float | None = None) -> str:
    """Run a watch that is killed at a moment, after some seconds, or not; return how it ended."""
    child = os.fork()
    if child == 0:
        if moment is not None:
            make_die(*MOMENTS[moment])
        watching.watch(options, lambda _: None)
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
    payload = json.loads(sys.argv[1])
    server = configured_server("hospital", Path(payload["servers"]))
    options = watching.WatchOptions(
        server, Path(payload["model"]), Path(payload["out"]), since="always", push=True, once=True
    )  # fmt: skip
    orthanc = Orthanc(Path(payload["folder"]), payload["port"])
    ended = {}
    for film, (key, seconds) in zip(payload["films"], payload["kills"], strict=True):
        orthanc.receive(Path(film))
        ended[key] = attempt(options, key if seconds is None else None, seconds)
    ended["at last"] = attempt(options, None)
    sys.stdout.write(json.dumps(ended))


if __name__ == "__main__":
    main()
