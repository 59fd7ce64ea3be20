"""The error that commands show to the user, and the text of such errors."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """A mistake that the user can correct; commands print its message alone and exit with code 2."""


def os_error_message(error: OSError) -> str:
    """Format an OSError as one sentence."""
    return f"Cannot use {error.filename or 'a file'}: {error.strerror or error}."


def first_line(error: Exception) -> str:
    """Return the first line of the error's message, or the name of its class if there is none."""
    message = str(error).strip()
    return message.splitlines()[0] if message else type(error).__name__


def escape_undecodable(text: str) -> str:
    """Replace bytes of a file name that are not text by their codes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` if a known word is close, else the known words if they are few."""
    choices = sorted(known)
    close = get_close_matches(word, choices, n=1, cutoff=0.6)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(choices)})" if 0 < len(choices) <= 30 else ""
