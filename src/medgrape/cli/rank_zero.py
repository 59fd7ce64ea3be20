"""With several training processes, only rank 0 prints."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from medgrape.errors import UserError
from medgrape.training.launchers import PeerExitedError, process_info

BAD_INPUT, INTERRUPTED = 2, 130
"""Exit codes."""
_DELAY = 10.0
"""Seconds before another rank prints its error. Rank 0 ends within this time if it has the same error, and all other
processes with it; a process that still runs then has an error of its own."""


@contextmanager
def only_rank_zero_prints() -> Iterator[bool]:
    """Yield whether this process may print. An error of another rank is printed only if rank 0 has none."""
    process = process_info()
    if process is None or process.is_rank_zero:
        yield True
        return
    try:
        try:
            yield False
        except PeerExitedError:  # not to be printed; end at once, so that the training can be started again
            raise SystemExit(BAD_INPUT) from None
        except UserError as error:
            time.sleep(_DELAY)
            raise UserError(f"Process {process.rank} of {process.world}: {error}") from error
        except Exception:
            time.sleep(_DELAY)
            raise
    except KeyboardInterrupt:  # torchrun interrupts all processes as soon as one has ended
        raise SystemExit(INTERRUPTED) from None
