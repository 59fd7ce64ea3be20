"""A watch that is killed, and a PACS that goes away: still every film once, here and there."""

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
from watch_scenes import heard, readings, reports

from medgrape.hospital.pacs.watch import watch

HERE = Path(__file__).parent


def killed_again_and_again(orthanc, order, films, kills, tmp_path):
    """How each child ended."""
    told = {
        "servers": str(tmp_path / "pacs.toml"), "model": str(order.model), "out": str(order.out),
        "folder": str(orthanc.folder), "port": orthanc.port, "films": [str(film) for film in films], "kills": kills,
    }  # fmt: skip
    places = os.pathsep.join([str(HERE), str(HERE.parents[1]), *sys.path])
    ended = subprocess.run(
        [sys.executable, str(HERE / "dying_watch.py"), json.dumps(told)],
        capture_output=True, text=True, env=environment(PYTHONPATH=places), check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def each_once(orthanc, order, films):
    """Every film is read and reported once, by objects that occur once; nobody left anything behind."""
    uids = sorted(map(uid_of, films))
    assert sorted(readings(order.out)) == uids
    assert reports(orthanc) == uids
    made = Counter(one["Modality"] for one in orthanc.holds())
    assert made.pop("CR") == len(films)
    assert set(made.values()) == {len(films)}
    assert not (order.out / ".draft").exists()
    assert list(order.out.rglob("*.dcm")) == []
    assert heard(order) == ([], {"read": len(films)})


def test_a_watch_that_is_killed_at_any_step_reads_and_stores_each_film_once(orthanc, cabinet, order, tmp_path):
    moments = list(dying_watch.MOMENTS)
    films = [cabinet.film(number) for number in range(len(moments))]
    ended = killed_again_and_again(orthanc, order, films, [(moment, None) for moment in moments], tmp_path)
    assert ended == dict.fromkeys(moments, "killed") | {"at last": "ended with 0"}
    each_once(orthanc, order, films)


@pytest.mark.slow
def test_a_watch_that_is_killed_forty_times_by_lot_reads_and_stores_each_film_once(
    orthanc,
    cabinet,
    order,
    tmp_path,
):
    chance = random.Random(1)  # noqa: S311
    films = [cabinet.film(number) for number in range(40)]
    kills = [(f"{number}", chance.uniform(0.2, 4.0)) for number in range(40)]
    ended = killed_again_and_again(orthanc, order, films, kills, tmp_path)
    assert list(ended.values()).count("killed") > 15
    each_once(orthanc, order, films)


class EnoughError(Exception):
    """A test has seen what it wanted."""


@pytest.mark.parametrize("push", [False, True], ids=["reading", "storing"])
def test_a_pacs_that_goes_away_midway_is_waited_for_and_told_once(orthanc, cabinet, order, push):
    films = [cabinet.film(number) for number in range(3)]
    assert set(map(orthanc.receive, films)) == {"Success"}
    told, waits = [], []

    def tell(news):
        told.append(news.what)
        if told == ["read"]:
            orthanc.stop(signal.SIGKILL)

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            orthanc.start()
        if len(waits) == 5:
            raise EnoughError

    with pytest.raises(EnoughError):
        watch(replace(order, push=push, once=False, every=7.0), tell, wait)
    assert waits == [1.0, 2.0, 4.0, 7.0, 7.0]
    stored = {"stored": 3} if push else {}
    assert Counter(told) == {"read": 3, "away": 1, "back": 1} | stored
    uids = sorted(map(uid_of, films))
    assert sorted(readings(order.out)) == uids
    assert reports(orthanc) == uids[: len(uids) * push]


def test_a_watch_that_is_asked_to_end_ends_tidily_and_goes_on_when_it_is_called_again(
    orthanc,
    cabinet,
    order,
    tmp_path,
):
    orthanc.receive(cabinet.film(0))
    words = [
        "pacs",
        "watch",
        "hospital",
        "--model",
        order.model,
        "--out",
        order.out,
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
    said, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (0, "")
    assert "Stopped" in said
    assert heard(order) == ([], {"read": 2})
