"""A watch that is killed, or a PACS that goes away: every film is still read and stored once."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import dying_watch
import pytest
from orthanc import environment
from ward_films import uid_of
from watch_scenes import readings, reports, run_watch

from medgrape.hospital.pacs.watch import watch

HERE = Path(__file__).parent


def run_killed_watches(orthanc, options, films, kills, tmp_path):
    """Return how each child process ended."""
    payload = {
        "servers": str(tmp_path / "pacs.toml"), "model": str(options.model), "out": str(options.out),
        "folder": str(orthanc.folder), "port": orthanc.port, "films": [str(film) for film in films], "kills": kills,
    }  # fmt: skip
    places = os.pathsep.join([str(HERE), str(HERE.parents[1]), *sys.path])
    ended = subprocess.run(
        [sys.executable, str(HERE / "dying_watch.py"), json.dumps(payload)],
        capture_output=True, text=True, env=environment(PYTHONPATH=places), check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def check_each_once(orthanc, options, films):
    """Check that every film is read and reported once, and that no temporary file is left."""
    uids = sorted(map(uid_of, films))
    assert sorted(readings(options.out)) == uids
    assert reports(orthanc) == uids
    made = Counter(one["Modality"] for one in orthanc.holds())
    assert made.pop("CR") == len(films)
    assert set(made.values()) == {len(films)}
    assert not (options.out / ".draft").exists()
    assert list(options.out.rglob("*.dcm")) == []
    assert run_watch(options) == ([], {"read": len(films)})


def test_a_watch_that_is_killed_at_any_step_reads_and_stores_each_film_once(orthanc, cabinet, options, tmp_path):
    moments = list(dying_watch.MOMENTS)
    films = [cabinet.film(number) for number in range(len(moments))]
    ended = run_killed_watches(orthanc, options, films, [(moment, None) for moment in moments], tmp_path)
    assert ended == dict.fromkeys(moments, "killed") | {"at last": "ended with 0"}
    check_each_once(orthanc, options, films)


@pytest.mark.slow
def test_a_watch_that_is_killed_forty_times_at_random_reads_and_stores_each_film_once(
    orthanc,
    cabinet,
    options,
    tmp_path,
):
    chance = random.Random(1)  # noqa: S311
    films = [cabinet.film(number) for number in range(40)]
    kills = [(f"{number}", chance.uniform(0.2, 4.0)) for number in range(40)]
    ended = run_killed_watches(orthanc, options, films, kills, tmp_path)
    assert list(ended.values()).count("killed") > 15
    check_each_once(orthanc, options, films)


class StopWatchError(Exception):
    """Ends an endless watch."""


@pytest.mark.parametrize("push", [False, True], ids=["reading", "storing"])
def test_a_pacs_that_goes_away_midway_is_waited_for_and_reported_once(orthanc, cabinet, options, push):
    films = [cabinet.film(number) for number in range(3)]
    assert set(map(orthanc.receive, films)) == {"Success"}
    events, waits = [], []

    def on_event(event):
        events.append(event.kind)
        if events == ["read"]:
            orthanc.stop(signal.SIGKILL)

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            orthanc.start()
        if len(waits) == 5:
            raise StopWatchError

    with pytest.raises(StopWatchError):
        watch(replace(options, push=push, once=False, every=7.0), on_event, wait)
    assert waits == [1.0, 2.0, 4.0, 7.0, 7.0]
    stored = {"stored": 3} if push else {}
    assert Counter(events) == {"read": 3, "away": 1, "back": 1} | stored
    uids = sorted(map(uid_of, films))
    assert sorted(readings(options.out)) == uids
    assert reports(orthanc) == uids[: len(uids) * push]


def test_a_watch_that_is_terminated_stops_cleanly_and_continues_when_started_again(
    orthanc,
    cabinet,
    options,
    tmp_path,
):
    orthanc.receive(cabinet.film(0))
    words = [
        "pacs",
        "watch",
        "hospital",
        "--model",
        options.model,
        "--out",
        options.out,
        "--since",
        "always",
        "--every",
        0.1,
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "medgrape", *map(str, words)],
        cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline().startswith("read: ")
    late = cabinet.film(1)
    orthanc.receive(late)
    assert process.stdout.readline().startswith(f"read: {uid_of(late)}")
    process.terminate()
    output, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (0, "")
    assert "Stopped" in output
    assert run_watch(options) == ([], {"read": 2})
