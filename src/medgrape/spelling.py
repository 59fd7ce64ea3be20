"""A hint for whoever mistyped a name."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` where a known word is near, else the known words where they are few."""
    choices = sorted(known)
    close = get_close_matches(word, choices, n=1, cutoff=0.6)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(choices)})" if 0 < len(choices) <= 30 else ""
