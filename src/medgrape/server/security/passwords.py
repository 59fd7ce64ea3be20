"""Passwords: argon2, and no way to tell by the clock whether somebody exists."""

import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from medgrape.errors import UserError

SHORTEST, LONGEST = 12, 256
_hasher = PasswordHasher()  # the library's defaults follow RFC 9106
_few = threading.Semaphore(2)  # each comparison takes 64 MiB and a core


class PasswordError(UserError):
    """A password that is too easy or too long."""


def hashed(password: str) -> str:
    """What is kept of a password."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise PasswordError(f"A password has {SHORTEST} to {LONGEST} characters; this one has {len(password)}.")
    if len(set(password)) < 5:
        raise PasswordError("This password is too easy to guess: take at least five different characters.")
    return _hasher.hash(password)


def matches(kept: str | None, password: str) -> bool:
    """Whether it is the right one; somebody without a password takes as long to refuse."""
    try:
        with _few:
            return _hasher.verify(kept or _nobodys(), password) and kept is not None
    except (VerificationError, InvalidHashError):
        return False


@cache
def _nobodys() -> str:
    return _hasher.hash("a password that nobody has")
