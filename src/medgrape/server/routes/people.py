"""Users and tokens, kept by admins; everybody keeps their own tokens."""

from fastapi import Query

from medgrape.server.desk import Desk, Who, problems, router
from medgrape.server.problems import Problem, forbidden, not_found
from medgrape.server.routes.params import TokenId, UserName
from medgrape.server.schemas.people import AddUser, ChangeUser, CreateToken, TokenCreated, TokenTold, UserTold
from medgrape.server.security import accounts
from medgrape.server.security.passwords import hashed
from medgrape.server.security.roles import Person, Role
from medgrape.server.storage.tables import TokenRow, UserRow
from medgrape.server.telling import token_told, user_told

routes, keeping = router("people", Role.READER), router("people", Role.ADMIN)


@keeping.get("/users")
def list_users(desk: Desk) -> tuple[UserTold, ...]:
    """List everybody."""
    with desk.room.database.reading() as session:
        return tuple(user_told(row) for row in accounts.users(session))


@keeping.post("/users", status_code=201)
def add_user(asked: AddUser, desk: Desk, who: Who) -> UserTold:
    """Let somebody in."""
    with desk.room.database.writing() as session:
        row = accounts.add_user(session, asked.name, Role(asked.role), asked.password)
        desk.room.archive.note(session, who, "user.added", user=row.name, role=row.role)
        return user_told(row)


@keeping.patch("/users/{user}", responses=problems(409))
def change_user(user: UserName, asked: ChangeUser, desk: Desk, who: Who) -> UserTold:
    """Change a user's role or password, or keep them out. They are logged out everywhere."""
    kept = None if asked.password is None else hashed(asked.password)
    with desk.room.database.writing() as session:
        row = accounts.user_row(session, user.replace("\0", ""))
        if row is None:
            raise not_found("user", user)
        told = accounts.change(session, row, asked.role, asked.disabled, kept)
        desk.room.archive.note(session, who, "user.changed", **told)
        # Asked once the log's end is ours: two admins who demote each other at the same moment come one after another.
        if not accounts.keeps_an_admin(session, login=desk.room.login):
            raise Problem(409, "last_admin", "That would leave nobody who may let others in.")
        return user_told(row)


@routes.get("/tokens")
def list_tokens(
    desk: Desk, who: Who, everybody: bool = Query(False, description="For admins.")
) -> tuple[TokenTold, ...]:
    """List one's tokens, without their secrets."""
    if everybody and not who.role.covers(Role.ADMIN):
        raise forbidden("Only an admin sees everybody's tokens.")
    with desk.room.database.reading() as session:
        own = None if everybody else session.get_one(UserRow, who.id)
        return tuple(token_told(row, name) for row, name in accounts.tokens(session, own))


@routes.post("/tokens", status_code=201)
def create_token(asked: CreateToken, desk: Desk, who: Who) -> TokenCreated:
    """Make a key for a machine. It is shown this once; the server keeps only a hash of it."""
    _check_may(who, asked)
    with desk.room.database.writing() as session:
        user = accounts.user_row(session, (asked.user or who.name).replace("\0", ""))
        if user is None:
            raise not_found("user", asked.user or who.name)
        token = accounts.create_token(session, user, asked.name, Role(asked.role), asked.days)
        session.flush()
        row = session.get_one(TokenRow, token.id)
        desk.room.archive.note(session, who, "token.created", token=row.id, user=user.name, role=row.role)
        return TokenCreated(token=str(token), told=token_told(row, user.name))


@routes.delete("/tokens/{token}", status_code=204)
def revoke_token(token: TokenId, desk: Desk, who: Who) -> None:
    """Let a token open nothing from now on."""
    with desk.room.database.writing() as session:
        row = session.get(TokenRow, token)
        if row is None or not (row.user_id == who.id or who.role.covers(Role.ADMIN)):
            raise not_found("token", token)
        accounts.revoke(session, token)
        desk.room.archive.note(session, who, "token.revoked", token=token)


def _check_may(who: Person, asked: CreateToken) -> None:
    if asked.user not in (None, who.name) and not who.role.covers(Role.ADMIN):
        raise forbidden("Only an admin makes tokens for others.")
    if not who.role.covers(Role(asked.role)):
        raise forbidden(f"You come as {who.role}, so your token cannot be {asked.role}.")
