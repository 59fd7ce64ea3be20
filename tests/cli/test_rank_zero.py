"""With several training processes, only rank 0 prints."""

import pytest

from medgrape.cli import rank_zero
from medgrape.cli.rank_zero import BAD_INPUT, INTERRUPTED, only_rank_zero_prints
from medgrape.errors import UserError
from medgrape.training.launchers import PeerExitedError

TORCHRUN_VARIABLES = {
    "TORCHELASTIC_RUN_ID": "none",
    "WORLD_SIZE": "4",
    "LOCAL_WORLD_SIZE": "4",
    "GROUP_WORLD_SIZE": "1",
}


@pytest.fixture
def rank(monkeypatch):
    """Put this process where torchrun would."""

    def take(number):
        for name, value in {**TORCHRUN_VARIABLES, "RANK": str(number)}.items():
            monkeypatch.setenv(name, value)

    monkeypatch.setattr(rank_zero, "_DELAY", 0.0)
    return take


def test_a_single_process_prints():
    with only_rank_zero_prints() as may_print:
        assert may_print


@pytest.mark.parametrize(("number", "may"), [(0, True), (1, False), (3, False)])
def test_of_several_processes_only_rank_zero_prints(rank, number, may):
    rank(number)
    with only_rank_zero_prints() as may_print:
        assert may_print == may


def test_an_error_of_another_rank_names_the_rank(rank):
    rank(2)
    with pytest.raises(UserError, match=r"^Process 2 of 4: There is no disk\.$"), only_rank_zero_prints():
        raise UserError("There is no disk.")


def test_an_error_of_rank_zero_is_printed_like_that_of_a_single_process(rank):
    rank(0)
    with pytest.raises(UserError, match=r"^There is no disk\.$"), only_rank_zero_prints():
        raise UserError("There is no disk.")


def test_other_ranks_end_silently_when_interrupted(rank):
    rank(1)
    with pytest.raises(SystemExit) as left, only_rank_zero_prints():
        raise KeyboardInterrupt
    assert left.value.code == INTERRUPTED


def test_an_interruption_during_the_delay_is_silent_too(rank, monkeypatch):
    """What torchrun does as soon as the first process has ended."""

    def interrupted(_seconds):
        raise KeyboardInterrupt

    rank(1)
    monkeypatch.setattr(rank_zero.time, "sleep", interrupted)
    with pytest.raises(SystemExit) as left, only_rank_zero_prints():
        raise UserError("There is no disk.")
    assert left.value.code == INTERRUPTED


def test_a_rank_whose_peer_ended_exits_at_once(rank, monkeypatch):
    """On another machine no launcher ends it, and a new attempt waits for it."""
    rank(1)
    monkeypatch.setattr(rank_zero.time, "sleep", pytest.fail)
    with pytest.raises(SystemExit) as left, only_rank_zero_prints():
        raise PeerExitedError
    assert left.value.code == BAD_INPUT


def test_rank_zero_prints_that_another_process_has_ended(rank):
    rank(0)
    with pytest.raises(UserError, match="goes on after the last whole epoch"), only_rank_zero_prints():
        raise PeerExitedError
