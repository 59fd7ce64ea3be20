"""Users, and proving to be one: by password, by cookie, by token."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.orm import Session

from medgrape.errors import UserError
from medgrape.server.security.credentials import BearerToken, constant_time_equal, digest, hash_password, new_key
from medgrape.server.security.roles import Role, User, lesser
from medgrape.server.storage.tables import SessionRow, TokenRow, UserRow

LOCAL, SERVER = "local", "server"
"""The one user of a server without login, and who did what nobody asked for."""
FREE_ATTEMPTS, LONGEST_LOCK = 5, timedelta(minutes=15)
_USER, _KEY = UserRow.__table__.c, TokenRow.__table__.c
_TOKEN = (
    select(_USER.id, _USER.name, _USER.role, _USER.disabled, _KEY.key, _KEY.role.label("token_role"))
    .add_columns(_KEY.expires_at, _KEY.revoked_at)
    .where(_KEY.user_id == _USER.id, _KEY.id == bindparam("token"))
)
"""Asked with every request, and so without the detour over objects."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,62}")


class AccountError(UserError):
    """A user or token that is not there, there already, or badly named."""


def add_user(session: Session, name: str, role: Role, password: str | None, subject: str | None = None) -> UserRow:
    """A new user; without a password they come by token or through OIDC."""
    if not _NAME.fullmatch(name):
        raise AccountError(f"A user's name is lower case letters, digits and . _ @ -; {name!r} is not.")
    if name == SERVER or session.scalar(select(UserRow).where(UserRow.name == name)) is not None:
        raise AccountError(f"There is a user {name} already; choose another name.")
    kept = None if password is None else hash_password(password)
    user = UserRow(name=name, role=role, password=kept, subject=subject, disabled=False, failures=0, added_at=_now())
    session.add(user)
    session.flush()
    return user


def user_row(session: Session, name: str) -> UserRow | None:
    """The user, if there is one."""
    return session.scalar(select(UserRow).where(UserRow.name == name))


def user_named(session: Session, name: str) -> UserRow:
    """The user, or a sentence that there is none."""
    user = user_row(session, name)
    if user is None:
        raise AccountError(f"There is no user {name!r}.")
    return user


def users(session: Session) -> Sequence[UserRow]:
    """Everybody, by name."""
    return session.scalars(select(UserRow).order_by(UserRow.name)).all()


def has_users(session: Session) -> bool:
    """Whether anybody but the local user is known, so that people have to log in."""
    return bool(session.scalar(select(func.count()).select_from(UserRow).where(UserRow.name != LOCAL)))


def keeps_an_admin(session: Session, *, login: bool) -> bool:
    """Whether somebody could still let others in; where people log in, the local user cannot."""
    wanted = select(func.count()).select_from(UserRow).where(UserRow.role == Role.ADMIN, UserRow.disabled.is_(False))
    return bool(session.scalar(wanted.where(UserRow.name != LOCAL) if login else wanted))


def local_user(session: Session) -> User:
    """Whoever sits at this machine; the user is made when first needed."""
    user = session.scalar(select(UserRow).where(UserRow.name == LOCAL))
    return as_user(user or add_user(session, LOCAL, Role.ADMIN, None))


def admitted(user: UserRow | None, *, right: bool) -> bool:
    """Whether a user whose password was ``right`` or not may come in now; wrong ones lock them for ever longer.

    The password was compared in any case: neither the clock nor the answer tells whether a user exists or is locked.
    """
    if user is None or user.disabled or (user.locked_until is not None and user.locked_until > _now()):
        return False
    if right:
        user.failures, user.locked_until = 0, None
        return True
    user.failures += 1
    if user.failures >= FREE_ATTEMPTS:
        wait = timedelta(seconds=2 ** min(user.failures - FREE_ATTEMPTS + 1, 16))
        user.locked_until = _now() + min(wait, LONGEST_LOCK)
    return False


def open_session(session: Session, user: UserRow, hours: float) -> str:
    """Log a user in; what the cookie holds. Sessions that ended are forgotten on the way."""
    session.execute(delete(SessionRow).where(SessionRow.expires_at < _now()))
    key = new_key()
    expires = _now() + timedelta(hours=hours)
    session.add(SessionRow(key=digest(key), user_id=user.id, opened_at=_now(), expires_at=expires))
    return key


def close_session(session: Session, key: str) -> None:
    """Log out; ``key`` is the hash of what the cookie holds."""
    session.execute(delete(SessionRow).where(SessionRow.key == key))


def change(
    session: Session, user: UserRow, role: Role | None, disabled: bool | None, kept: str | None
) -> dict[str, Any]:
    """Another role, another password (``kept`` is its hash), let in or kept out; None stays. They are logged out.

    What is now, for the log.
    """
    user.role = role or user.role
    user.disabled = user.disabled if disabled is None else disabled
    if kept is not None:
        user.password, user.failures, user.locked_until = kept, 0, None
    end_sessions(session, user)
    return {"user": user.name, "role": user.role, "disabled": user.disabled, "password_changed": kept is not None}


def end_sessions(session: Session, user: UserRow) -> None:
    """Log somebody out everywhere."""
    session.execute(delete(SessionRow).where(SessionRow.user_id == user.id))


def by_cookie(session: Session, cookie: str) -> User | None:
    """Who logged in with this cookie."""
    key = digest(cookie)
    wanted = select(UserRow).join(SessionRow, SessionRow.user_id == UserRow.id)
    user = session.scalar(wanted.where(SessionRow.key == key, SessionRow.expires_at > _now()))
    return None if user is None or user.disabled else as_user(user, session=key)


def create_token(session: Session, user: UserRow, name: str, role: Role, days: float | None) -> BearerToken:
    """A key for a machine that acts for a user, with no more rights than they have."""
    if not Role(user.role).covers(role):
        raise AccountError(f"{user.name} is {user.role}, so a token of theirs cannot be {role}.")
    token = BearerToken.new()
    expires = None if days is None else _now() + timedelta(days=days)
    row = TokenRow(
        id=token.id, user_id=user.id, name=name, role=role, key=digest(token.secret), created_at=_now(),
        expires_at=expires,
    )  # fmt: skip
    session.add(row)
    return token


def by_token(session: Session, text: str) -> User | None:
    """Whom a bearer token speaks for."""
    token = BearerToken.parsed(text)
    found = None if token is None else session.execute(_TOKEN, {"token": token.id}).one_or_none()
    if token is None or found is None or not constant_time_equal(found.key, digest(token.secret)):
        return None
    ended = found.revoked_at is not None or (found.expires_at is not None and found.expires_at <= _now())
    if ended or found.disabled:
        return None
    return User(found.id, found.name, lesser(Role(found.role), Role(found.token_role)))


def tokens(session: Session, user: UserRow | None = None) -> Sequence[tuple[TokenRow, str]]:
    """All tokens, or those of one user, with their users' names."""
    wanted = select(TokenRow, UserRow.name).join(UserRow, TokenRow.user_id == UserRow.id).order_by(TokenRow.created_at)
    found = session.execute(wanted if user is None else wanted.where(TokenRow.user_id == user.id))
    return [(row, name) for row, name in found]


def revoke(session: Session, token: str) -> TokenRow:
    """Let a token open nothing from now on."""
    row = session.get(TokenRow, token)
    if row is None:
        raise AccountError(f"There is no token {token!r}; medgrape token list shows them.")
    row.revoked_at = row.revoked_at or _now()
    return row


def as_user(user: UserRow, session: str | None = None) -> User:
    """The user as somebody who asks."""
    return User(user.id, user.name, Role(user.role), session)


def _now() -> datetime:
    return datetime.now(UTC)
