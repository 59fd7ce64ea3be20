"""What a watch waits out, and for how long."""

import time
from collections.abc import Callable

from medgrape.data.decoder import DecoderLostError
from medgrape.errors import UserError
from medgrape.interchange.pacs.failures import AwayError, BarredError, PacsError, SecretError
from medgrape.interchange.pacs.ledger import Entry
from medgrape.interchange.pacs.news import News, Tell

_FAILURES = 5
"""Rounds in which a server may fail to give a film, or to take a report, before that counts as its answer."""
_PATIENCE = 86400.0
"""Seconds, besides, for which trouble may last that can pass: somebody has to notice, and to mend it."""
_LONGEST_WAIT = 60.0


class StrainError(UserError):
    """This machine could not read a film: it had too little memory, as a rule."""


MAY_PASS = AwayError | BarredError | DecoderLostError | StrainError


def is_enough(entry: Entry, error: UserError) -> bool:
    """Whether a film has failed for the last time; trouble that may pass needs to last for long, too."""
    if not isinstance(error, MAY_PASS):
        return entry.failures + 1 >= _FAILURES
    return entry.troubles + 1 >= _FAILURES and time.time() - entry.troubled >= _PATIENCE


def go_round(look: Callable[[], None], every: float, server: str, tell: Tell, wait: Callable[[float], None]) -> None:
    """Look again and again, for ever; while the server is no use, less and less often, which is told once.

    Before the first look that went well, only a server that is away is waited for: anything else is a wrong set-up.
    """
    failed, well, told = 0, False, set[type[UserError]]()
    while True:
        try:
            look()
        except (PacsError, SecretError) as trouble:
            if not well and not isinstance(trouble, AwayError):
                raise
            if type(trouble) not in told:
                tell(News("away", words=f"{trouble} Waiting for it."))
            told.add(type(trouble))
            wait(min(2.0 ** min(failed, 10), _LONGEST_WAIT))
            failed += 1
            continue
        if failed:
            tell(News("back", words=f"{server} answers again."))
        failed, well, told = 0, True, set()
        wait(every)
