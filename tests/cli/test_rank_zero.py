"""Which process of a training may speak."""

import pytest

from medgrape.cli import rank_zero
from medgrape.cli.rank_zero import BAD_INPUT, INTERRUPTED, only_rank_zero_prints
from medgrape.errors import UserError
from medgrape.training.launchers import PeerExitedError

BESIDE_OTHERS = {
    "TORCHELASTIC_RUN_ID": "none",
    "WORLD_SIZE": "4",
    "LOCAL_WORLD_SIZE": "4",
    "GROUP_WORLD_SIZE": "1",
}


@pytest.fixture
def rank(monkeypatch):
    """Put this process where torchrun would."""

    def take(number):
        for name, value in {**BESIDE_OTHERS, "RANK": str(number)}.items():
            monkeypatch.setenv(name, value)

    monkeypatch.setattr(rank_zero, "_DELAY", 0.0)
    return take


def test_one_process_alone_speaks():
    with only_rank_zero_prints() as speaks:
        assert speaks


@pytest.mark.parametrize(("number", "may"), [(0, True), (1, False), (3, False)])
def test_of_several_processes_the_first_one_speaks(rank, number, may):
    rank(number)
    with only_rank_zero_prints() as speaks:
        assert speaks == may


def test_a_complaint_of_another_process_says_whose_it_is(rank):
    rank(2)
    with pytest.raises(UserError, match=r"^Process 2 of 4: There is no disk\.$"), only_rank_zero_prints():
        raise UserError("There is no disk.")


def test_the_first_process_complains_as_one_alone_does(rank):
    rank(0)
    with pytest.raises(UserError, match=r"^There is no disk\.$"), only_rank_zero_prints():
        raise UserError("There is no disk.")


def test_the_others_leave_without_a_word_when_they_are_asked_to(rank):
    rank(1)
    with pytest.raises(SystemExit) as left, only_rank_zero_prints():
        raise KeyboardInterrupt
    assert left.value.code == INTERRUPTED


def test_being_asked_to_leave_while_the_first_one_complains_is_silent_too(rank, monkeypatch):
    """What torchrun does as soon as the first process has ended."""

    def interrupted(_seconds):
        raise KeyboardInterrupt

    rank(1)
    monkeypatch.setattr(rank_zero.time, "sleep", interrupted)
    with pytest.raises(SystemExit) as left, only_rank_zero_prints():
        raise UserError("There is no disk.")
    assert left.value.code == INTERRUPTED


def test_a_process_that_was_left_alone_makes_room_at_once(rank, monkeypatch):
    """On another machine nobody would end it, and a new attempt waits for it."""
    rank(1)
    monkeypatch.setattr(rank_zero.time, "sleep", pytest.fail)
    with pytest.raises(SystemExit) as left, only_rank_zero_prints():
        raise PeerExitedError
    assert left.value.code == BAD_INPUT


def test_the_first_process_says_that_it_was_left_alone(rank):
    rank(0)
    with pytest.raises(UserError, match="goes on after the last whole epoch"), only_rank_zero_prints():
        raise PeerExitedError
