"""Passwords: argon2, and no way to tell by the clock whether somebody exists."""

import hashlib
import hmac
import secrets
import threading
from dataclasses import dataclass
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from medgrape.errors import UserError

PREFIX = "mg"


@dataclass(frozen=True)
class BearerToken:
    """``mg_ID_SECRET``, shown once."""

    id: str
    secret: str

    @classmethod
    def new(cls) -> "BearerToken":
        """A fresh one."""
        return cls(secrets.token_hex(8), secrets.token_urlsafe(32))

    @classmethod
    def parsed(cls, text: str) -> "BearerToken | None":
        """None where it has not the form."""
        prefix, _, rest = text.partition("_")
        number, _, secret = rest.partition("_")
        return cls(number, secret) if prefix == PREFIX and len(number) == 16 and secret else None

    def __str__(self) -> str:
        return f"{PREFIX}_{self.id}_{self.secret}"


def new_key() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def new_id() -> str:
    """A name for a row or a file."""
    return secrets.token_hex(8)


def digest(secret: str) -> str:
    """What is kept of a key; it is random and long, so a plain hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def constant_time_equal(one: str, other: str) -> bool:
    """Compared in a time that tells nothing."""
    return hmac.compare_digest(one.encode(), other.encode())


def csrf_token(key: bytes, session: str) -> str:
    """What a page must send along with a session's cookie: no other page can know it."""
    return hmac.new(key, b"csrf " + session.encode(), hashlib.sha256).hexdigest()


SHORTEST, LONGEST = 12, 256
_hasher = PasswordHasher()  # the library's defaults follow RFC 9106
_few = threading.Semaphore(2)  # each comparison takes 64 MiB and a core


class PasswordError(UserError):
    """A password that is too easy or too long."""


def hash_password(password: str) -> str:
    """What is kept of a password."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise PasswordError(f"A password has {SHORTEST} to {LONGEST} characters; this one has {len(password)}.")
    if len(set(password)) < 5:
        raise PasswordError("This password is too easy to guess: take at least five different characters.")
    return _hasher.hash(password)


def verify_password(kept: str | None, password: str) -> bool:
    """Whether it is the right one; somebody without a password takes as long to refuse."""
    try:
        with _few:
            return _hasher.verify(kept or _nobodys(), password) and kept is not None
    except (VerificationError, InvalidHashError):
        return False


@cache
def _nobodys() -> str:
    return _hasher.hash("a password that nobody has")
