"""Users, roles, passwords, login sessions and bearer tokens."""

import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.orm import Session

from medgrape.errors import UserError
from medgrape.server.storage.tables import SessionRow, TokenRow, UserRow

LOCAL, SERVER = "local", "server"  # the user of a server without login; the actor of events without a user
FREE_ATTEMPTS, MAX_LOCK = 5, timedelta(minutes=15)
SHORTEST, LONGEST = 12, 256
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,62}")
_hasher = PasswordHasher()  # the library's defaults follow RFC 9106
_hashing = threading.Semaphore(2)  # each hash takes 64 MiB and a core


class AccountError(UserError):
    """A user, token or password that is invalid, missing or taken."""


class Role(StrEnum):
    """Rights of a user; each role includes the ones before it."""

    READER = "reader"  # uploads films, reads them, corrects their own studies
    CURATOR = "curator"  # also sees everybody's studies, teaches and curates models and chooses the one in use
    ADMIN = "admin"  # also manages users and tokens, and reads the log

    def covers(self, other: "Role") -> bool:
        """Whether this role includes the other."""
        return list(Role).index(self) >= list(Role).index(other)


@dataclass(frozen=True)
class User:
    """The user who sends a request."""

    id: int
    name: str
    role: Role
    session: str | None = None  # hash of the cookie; None: by token, which pages of other sites cannot forge


@dataclass(frozen=True)
class BearerToken:
    """``mg_ID_SECRET``, shown once."""

    id: str
    secret: str

    @classmethod
    def new(cls) -> "BearerToken":
        """Create a random token."""
        return cls(new_id(), new_key())

    @classmethod
    def parse(cls, text: str) -> "BearerToken | None":
        """Parse a token; return None if the text is not one."""
        match = re.fullmatch(r"mg_([^_]{16})_(.+)", text, re.DOTALL)
        return None if match is None else cls(*match.groups())

    def __str__(self) -> str:
        return f"mg_{self.id}_{self.secret}"


def new_key() -> str:
    """Return 256 random bits as text."""
    return secrets.token_urlsafe(32)


def new_id() -> str:
    """Return a random identifier for a row or a file."""
    return secrets.token_hex(8)


def digest(secret: str) -> str:
    """Return the stored form of a key; keys are random and long, so a plain hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def constant_time_equal(text: str, other: str) -> bool:
    """Compare secrets in constant time."""
    return hmac.compare_digest(text.encode(), other.encode())


def csrf_token(key: bytes, session: str) -> str:
    """Return the token that the page sends with a session's cookie; pages of other sites cannot know it."""
    return hmac.new(key, b"csrf " + session.encode(), hashlib.sha256).hexdigest()


def hash_password(password: str) -> str:
    """Return the stored form of a password (Argon2)."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise AccountError(f"A password has {SHORTEST} to {LONGEST} characters; this one has {len(password)}.")
    if len(set(password)) < 5:
        raise AccountError("This password is too easy to guess: use at least five different characters.")
    return _hasher.hash(password)


def verify_password(stored: str | None, password: str) -> bool:
    """Return whether the password is correct; takes as long for a user without one."""
    try:
        with _hashing:
            return _hasher.verify(stored or _dummy_hash(), password) and stored is not None
    except (VerificationError, InvalidHashError):
        return False


@cache
def _dummy_hash() -> str:
    return _hasher.hash("a password that nobody has")


def add_user(session: Session, name: str, role: Role, password: str | None, subject: str | None = None) -> UserRow:
    """Add a user; without a password they log in by token or OIDC."""
    if not _NAME.fullmatch(name):
        raise AccountError(f"A user's name has lower case letters, digits and . _ @ - only; {name!r} is invalid.")
    if name == SERVER or user_row(session, name) is not None:
        raise AccountError(f"There is a user {name} already; choose another name.")
    stored = None if password is None else hash_password(password)
    user = UserRow(name=name, role=role, password=stored, subject=subject, disabled=False, failures=0, added_at=_now())
    session.add(user)
    session.flush()
    return user


def user_row(session: Session, name: str) -> UserRow | None:
    """Return the user of this name, or None."""
    return session.scalar(select(UserRow).where(UserRow.name == name.replace("\0", "")))  # PostgreSQL refuses NUL


def user_named(session: Session, name: str) -> UserRow:
    """Return the user of this name."""
    user = user_row(session, name)
    if user is None:
        raise AccountError(f"There is no user {name!r}.")
    return user


def users(session: Session) -> Sequence[UserRow]:
    """Return all users, sorted by name."""
    return session.scalars(select(UserRow).order_by(UserRow.name)).all()


def has_users(session: Session) -> bool:
    """Return whether there are users other than the local one, so that a login is required."""
    return bool(session.scalar(select(func.count()).select_from(UserRow).where(UserRow.name != LOCAL)))


def has_admin(session: Session, *, login: bool) -> bool:
    """Return whether there is an enabled admin; with login, the local user does not count."""
    admins = select(func.count()).select_from(UserRow).where(UserRow.role == Role.ADMIN, UserRow.disabled.is_(False))
    return bool(session.scalar(admins.where(UserRow.name != LOCAL) if login else admins))


def local_user(session: Session) -> User:
    """Return the user of a server without login, created when first needed."""
    return as_user(user_row(session, LOCAL) or add_user(session, LOCAL, Role.ADMIN, None))


def as_user(user: UserRow, session: str | None = None) -> User:
    """Return the user of a row."""
    return User(user.id, user.name, Role(user.role), session)


def admit(user: UserRow, *, correct: bool) -> bool:
    """Return whether a user may log in; each wrong password locks the user for longer.

    The caller compares the password in any case, so that neither the time nor the response reveals whether the user
    exists or is locked.
    """
    if user.disabled or (user.locked_until is not None and user.locked_until > _now()):
        return False
    if correct:
        user.failures, user.locked_until = 0, None
        return True
    user.failures += 1
    if user.failures >= FREE_ATTEMPTS:
        wait = timedelta(seconds=2 ** min(user.failures - FREE_ATTEMPTS + 1, 16))
        user.locked_until = _now() + min(wait, MAX_LOCK)
    return False


def change(
    session: Session, user: UserRow, role: Role | None, disabled: bool | None, password_hash: str | None
) -> dict[str, Any]:
    """Change what is not None, and end the user's sessions; return the new state for the log."""
    user.role = role or user.role
    user.disabled = user.disabled if disabled is None else disabled
    if password_hash is not None:
        user.password, user.failures, user.locked_until = password_hash, 0, None
    session.execute(delete(SessionRow).where(SessionRow.user_id == user.id))
    password_changed = password_hash is not None
    return {"user": user.name, "role": user.role, "disabled": user.disabled, "password_changed": password_changed}


def open_session(session: Session, user: UserRow, hours: float) -> str:
    """Log a user in and return the cookie's content. Also deletes expired sessions."""
    session.execute(delete(SessionRow).where(SessionRow.expires_at < _now()))
    key, now = new_key(), _now()
    session.add(SessionRow(key=digest(key), user_id=user.id, opened_at=now, expires_at=now + timedelta(hours=hours)))
    return key


def by_cookie(session: Session, cookie: str) -> User | None:
    """Return the user of a login session, or None."""
    key = digest(cookie)
    query = select(UserRow).join(SessionRow, SessionRow.user_id == UserRow.id)
    user = session.scalar(query.where(SessionRow.key == key, SessionRow.expires_at > _now()))
    return None if user is None or user.disabled else as_user(user, session=key)


def create_token(session: Session, user: UserRow, name: str, role: Role, days: float | None) -> BearerToken:
    """Create a token for a program that acts for a user; its role is at most the user's."""
    if not Role(user.role).covers(role):
        raise AccountError(f"{user.name} has the role {user.role}, so their token cannot have the role {role}.")
    token, now = BearerToken.new(), _now()
    row = TokenRow(
        id=token.id, user_id=user.id, name=name, role=role, key=digest(token.secret), created_at=now,
        expires_at=None if days is None else now + timedelta(days=days),
    )  # fmt: skip
    session.add(row)
    return token


_TOKEN = (  # runs with every request, so it selects columns instead of objects
    select(UserRow.id, UserRow.name, UserRow.role, UserRow.disabled)
    .add_columns(TokenRow.key, TokenRow.role.label("token_role"), TokenRow.expires_at, TokenRow.revoked_at)
    .where(TokenRow.user_id == UserRow.id, TokenRow.id == bindparam("token"))
)


def by_token(session: Session, text: str) -> User | None:
    """Return the user of a bearer token with the lower of the two roles, or None."""
    token = BearerToken.parse(text)
    row = None if token is None else session.execute(_TOKEN, {"token": token.id}).one_or_none()
    if token is None or row is None or not constant_time_equal(row.key, digest(token.secret)):
        return None
    ended = row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= _now())
    if ended or row.disabled:
        return None
    role, token_role = Role(row.role), Role(row.token_role)
    return User(row.id, row.name, token_role if role.covers(token_role) else role)


def tokens(session: Session, user: UserRow | None = None) -> Sequence[tuple[TokenRow, str]]:
    """Return all tokens, or those of one user, with the users' names."""
    query = select(TokenRow, UserRow.name).join(UserRow, TokenRow.user_id == UserRow.id).order_by(TokenRow.created_at)
    query = query if user is None else query.where(TokenRow.user_id == user.id)
    return [(row, name) for row, name in session.execute(query)]


def revoke(session: Session, token: str) -> TokenRow:
    """Revoke a token."""
    row = session.get(TokenRow, token)
    if row is None:
        raise AccountError(f"There is no token {token!r}; medgrape token list shows them.")
    row.revoked_at = row.revoked_at or _now()
    return row


def _now() -> datetime:
    return datetime.now(UTC)
