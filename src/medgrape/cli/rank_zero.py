"""Of several processes of one training, one speaks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from medgrape.errors import UserError
from medgrape.training.launchers import PeerExitedError, ProcessInfo, process_info

BAD_INPUT, INTERRUPTED = 2, 130
_RESPECT = 10.0
"""Seconds that a process leaves to the first one for telling what is wrong. That one ends then, and with it all others;
whoever is still there has a complaint of its own."""


@contextmanager
def one_voice() -> Iterator[bool]:
    """Whether this process may print; one that may not speaks only when the first one had nothing to say."""
    here = process_info()
    if here is None or here.is_rank_zero:
        yield True
        return
    try:
        with _after_the_first(here):
            yield False
    except PeerExitedError:  # all that is left is to make room for another attempt
        raise SystemExit(BAD_INPUT) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


@contextmanager
def _after_the_first(here: ProcessInfo) -> Iterator[None]:
    try:
        yield
    except PeerExitedError:
        raise
    except UserError as error:
        time.sleep(_RESPECT)
        raise UserError(f"Process {here.rank} of {here.world}: {error}") from error
    except Exception:
        time.sleep(_RESPECT)
        raise
