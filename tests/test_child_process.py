"""A child process may die, hang or send nonsense, and never outlives its parent."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from medgrape.child_process import ChildDiedError, ChildProcess

ECHO = """
import os, time
from medgrape.child_process import ParentProcess

parent = ParentProcess()
print("a library prints this")
while True:
    request = parent.receive()
    if request.get("hang"):
        time.sleep(600)
    if "raw" in request:
        parent._answers.write(request["raw"].encode())
        parent._answers.flush()
    parent.send({"echo": request}, b"abc", memoryview(b"def"))
"""
PARENT = """
import sys
from medgrape.child_process import ChildProcess

child = ChildProcess("echo_module", quiet=True)
child.start()
child.send({"hang": True})
print(child.process_id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def environment(tmp_path):
    (tmp_path / "echo_module.py").write_text(ECHO)
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


@pytest.fixture
def child(environment):
    process = ChildProcess("echo_module", quiet=True)
    process.start(environment)
    yield process
    process.close()


def test_a_message_returns_with_its_bytes_and_is_not_mixed_with_prints(child):
    child.send({"text": "é", "number": 3})
    answer = child.receive(60)
    assert answer.header == {"echo": {"text": "é", "number": 3}}
    assert answer.payload == b"abcdef"


def test_a_killed_child_is_detected_and_can_be_started_again(child, environment):
    os.kill(child.process_id, signal.SIGKILL)
    with pytest.raises(ChildDiedError):
        child.receive(60)
    os.waitid(os.P_PID, child.process_id, os.WEXITED | os.WNOWAIT)  # its pipes close a moment before it ends
    assert not child.is_alive
    child.start(environment)
    child.send({})
    assert child.receive(60).header == {"echo": {}}


def test_a_child_that_takes_too_long_is_killed(child):
    child.send({"hang": True})
    with pytest.raises(ChildDiedError):
        child.receive(0.5)


@pytest.mark.parametrize("raw", ["no JSON\n", '{"payload_bytes": -1}\n', '{"payload_bytes": 1e99}\n', "[]\n", "{}\n"])
def test_a_child_that_sends_no_valid_message_counts_as_dead(child, raw):
    child.send({"raw": raw})
    with pytest.raises(ChildDiedError):
        child.receive(60)


def test_a_closed_child_leaves_no_process_and_sends_nothing(child):
    process = child.process_id
    child.close()
    assert not psutil.pid_exists(process)
    with pytest.raises(ChildDiedError):
        child.send({})
    with pytest.raises(ChildDiedError):
        child.receive()


def test_a_child_ends_with_its_parent_even_while_it_works(environment):
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    assert psutil.wait_procs([child], timeout=60)[1] == []
