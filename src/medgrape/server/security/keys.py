"""Long random keys: session cookies and bearer tokens. Only hashes are kept, so a stolen database opens nothing."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass

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


def same(one: str, other: str) -> bool:
    """Compared in a time that tells nothing."""
    return hmac.compare_digest(one.encode(), other.encode())


def csrf_token(key: bytes, session: str) -> str:
    """What a page must send along with a session's cookie: no other page can know it."""
    return hmac.new(key, b"csrf " + session.encode(), hashlib.sha256).hexdigest()
