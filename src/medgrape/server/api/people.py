"""Users and tokens, kept by admins; everybody keeps their own tokens."""

from fastapi import Query
from pydantic import ConfigDict, Field

from medgrape.server.api.common import LINE, Asked, Identifier, TokenId, Told, UserName, When
from medgrape.server.problems import Problem, forbidden, not_found
from medgrape.server.security import accounts
from medgrape.server.security.credentials import hash_password
from medgrape.server.security.roles import Role, User
from medgrape.server.services import CurrentUser, Services, problem_responses, router
from medgrape.server.storage.tables import TokenRow, UserRow, stamp


class UserTold(Told):
    """Somebody who may use the server."""

    name: str = Field(examples=["ada"])
    role: Role
    disabled: bool
    has_password: bool
    locked_until: When | None
    added_at: When


class AddUser(Asked):
    """A new user."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"name": "ada", "role": "reader", "password": "correct horse battery"}]},
    )

    name: str = Field(min_length=1, max_length=63)
    role: Role
    password: str | None = Field(default=None, max_length=256)


class ChangeUser(Asked):
    """What is to be another way; what is left out stays."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"role": "curator"}]})

    role: Role | None = None
    disabled: bool | None = None
    password: str | None = Field(default=None, max_length=256)


class TokenTold(Told):
    """A key for a machine."""

    id: Identifier
    user: str = Field(examples=["pacs"])
    name: str = Field(examples=["orthanc"])
    role: Role
    created_at: When
    expires_at: When | None
    revoked_at: When | None


class CreateToken(Asked):
    """A new key, for oneself or, by an admin, for somebody else."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "orthanc", "role": "reader", "days": 90}]}
    )

    name: str = Field(min_length=1, max_length=64, pattern=LINE)
    role: Role
    days: float | None = Field(default=90, gt=0, le=3650, description="null: it never ends by itself.")
    user: str | None = Field(default=None, min_length=1, max_length=64)


class TokenCreated(Told):
    """A key that is shown this once."""

    token: str = Field(examples=["mg_5f2b8c0a9d3e4f17_..."])
    told: TokenTold


def user_told(row: UserRow) -> UserTold:
    """A user."""
    locked = None if row.locked_until is None else stamp(row.locked_until)
    return UserTold(
        name=row.name, role=Role(row.role), disabled=row.disabled, has_password=row.password is not None,
        locked_until=locked, added_at=stamp(row.added_at),
    )  # fmt: skip


def token_told(row: TokenRow, user: str) -> TokenTold:
    """A token, without its secret."""
    return TokenTold(
        id=row.id, user=user, name=row.name, role=Role(row.role), created_at=stamp(row.created_at),
        expires_at=None if row.expires_at is None else stamp(row.expires_at),
        revoked_at=None if row.revoked_at is None else stamp(row.revoked_at),
    )  # fmt: skip


routes, keeping = router("people", Role.READER), router("people", Role.ADMIN)


@keeping.get("/users")
def list_users(services: Services) -> tuple[UserTold, ...]:
    """List everybody."""
    with services.room.database.reading() as session:
        return tuple(user_told(row) for row in accounts.users(session))


@keeping.post("/users", status_code=201)
def add_user(asked: AddUser, services: Services, caller: CurrentUser) -> UserTold:
    """Let somebody in."""
    with services.room.database.writing() as session:
        row = accounts.add_user(session, asked.name, Role(asked.role), asked.password)
        services.room.store.record(session, caller, "user.added", user=row.name, role=row.role)
        return user_told(row)


@keeping.patch("/users/{user}", responses=problem_responses(409))
def change_user(user: UserName, asked: ChangeUser, services: Services, caller: CurrentUser) -> UserTold:
    """Change a user's role or password, or keep them out. They are logged out everywhere."""
    kept = None if asked.password is None else hash_password(asked.password)
    with services.room.database.writing() as session:
        row = accounts.user_row(session, user.replace("\0", ""))
        if row is None:
            raise not_found("user", user)
        told = accounts.change(session, row, asked.role, asked.disabled, kept)
        services.room.store.record(session, caller, "user.changed", **told)
        # Asked once the log's end is ours: two admins who demote each other at the same moment come one after another.
        if not accounts.keeps_an_admin(session, login=services.room.login):
            raise Problem(409, "last_admin", "That would leave nobody who may let others in.")
        return user_told(row)


@routes.get("/tokens")
def list_tokens(
    services: Services, caller: CurrentUser, everybody: bool = Query(False, description="For admins.")
) -> tuple[TokenTold, ...]:
    """List one's tokens, without their secrets."""
    if everybody and not caller.role.covers(Role.ADMIN):
        raise forbidden("Only an admin sees everybody's tokens.")
    with services.room.database.reading() as session:
        own = None if everybody else session.get_one(UserRow, caller.id)
        return tuple(token_told(row, name) for row, name in accounts.tokens(session, own))


@routes.post("/tokens", status_code=201)
def create_token(asked: CreateToken, services: Services, caller: CurrentUser) -> TokenCreated:
    """Make a key for a machine. It is shown this once; the server keeps only a hash of it."""
    _check_may(caller, asked)
    with services.room.database.writing() as session:
        user = accounts.user_row(session, (asked.user or caller.name).replace("\0", ""))
        if user is None:
            raise not_found("user", asked.user or caller.name)
        token = accounts.create_token(session, user, asked.name, Role(asked.role), asked.days)
        session.flush()
        row = session.get_one(TokenRow, token.id)
        services.room.store.record(session, caller, "token.created", token=row.id, user=user.name, role=row.role)
        return TokenCreated(token=str(token), told=token_told(row, user.name))


@routes.delete("/tokens/{token}", status_code=204)
def revoke_token(token: TokenId, services: Services, caller: CurrentUser) -> None:
    """Let a token open nothing from now on."""
    with services.room.database.writing() as session:
        row = session.get(TokenRow, token)
        if row is None or not (row.user_id == caller.id or caller.role.covers(Role.ADMIN)):
            raise not_found("token", token)
        accounts.revoke(session, token)
        services.room.store.record(session, caller, "token.revoked", token=token)


def _check_may(caller: User, asked: CreateToken) -> None:
    if asked.user not in (None, caller.name) and not caller.role.covers(Role.ADMIN):
        raise forbidden("Only an admin makes tokens for others.")
    if not caller.role.covers(Role(asked.role)):
        raise forbidden(f"You come as {caller.role}, so your token cannot be {asked.role}.")
