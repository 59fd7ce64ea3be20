"""A hint for whoever mistyped a name."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """A mistake that a person can mend; commands print it alone and end with exit code 2."""


def told_of_file(error: OSError) -> str:
    """What the machine says of a file, or of a full disk, as one sentence."""
    return f"Cannot use {error.filename or 'a file'}: {error.strerror or error}."


def first_line(error: Exception) -> str:
    """What an error says, on one line."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def nearest(word: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` where a known word is near, else the known words where they are few."""
    choices = sorted(known)
    close = get_close_matches(word, choices, n=1, cutoff=0.6)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(choices)})" if 0 < len(choices) <= 30 else ""
