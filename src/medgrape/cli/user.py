"""``medgrape user`` and ``medgrape token``: manage who may use the server of a reading room."""

import sys
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer, prompt

from medgrape.cli.console import note, print_json, table
from medgrape.cli.options import Json
from medgrape.cli.room import COMMAND_LINE, ROOM, Database, Room, ServerConfig, open_room
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.server.accounts import Role

users = Typer(no_args_is_help=True, help="Add, list and change users of a server.")
tokens = Typer(no_args_is_help=True, help="Create, list and revoke access tokens for programs.")
_ROLES = "reader, curator or admin"
RoleOption = Annotated[str, Option(help=f"Role: {_ROLES}.")]
FromInput = Annotated[bool, Option("--password-stdin", help="Read the password from standard input.")]


@users.command("add")
def add_user(
    name: Annotated[str, Argument(help="Lower-case letters, digits and . _ @ -")],
    role: RoleOption = "reader",
    room: Room = ROOM,
    database: Database = None,
    config: ServerConfig = None,
    password_stdin: FromInput = False,
    no_password: Annotated[bool, Option("--no-password", help="For a program that uses a token only.")] = False,
) -> None:
    """Add a user; asks for the password.

    Example: medgrape user add ada --role curator
    """
    store = open_room(room, database, config)
    from medgrape.server import accounts

    password = None if no_password else _read_password(from_input=password_stdin)
    with store.database.writing() as session:
        accounts.add_user(session, name, _parse_role(role), password)
        store.record(session, COMMAND_LINE, "user.added", user=name, role=role)
    note(f"{name} may use {room} as {role}. If its server runs without login, restart it.")


@users.command("list")
def list_users(
    room: Room = ROOM, database: Database = None, config: ServerConfig = None, as_json: Json = False
) -> None:
    """List the users.

    Example: medgrape user list
    """
    store = open_room(room, database, config)
    from medgrape.server import accounts

    with store.database.reading() as session:
        rows = [(user.name, user.role, user.disabled) for user in accounts.users(session)]
    if as_json:
        print_json([{"name": name, "role": role, "disabled": disabled} for name, role, disabled in rows])
    else:
        shown = [(name, role, "disabled" if disabled else "") for name, role, disabled in rows]
        table(f"Users of {room}", ("name", "role", ""), shown)


@users.command("change")
def change_user(
    name: Annotated[str, Argument(help="Name of the user.")],
    role: Annotated[str | None, Option(help=f"New role: {_ROLES}.")] = None,
    disable: Annotated[bool | None, Option("--disable/--enable", help="Forbid or allow to log in.")] = None,
    new_password: Annotated[bool, Option("--new-password", help="Ask for a new password.")] = False,
    password_stdin: FromInput = False,
    room: Room = ROOM,
    database: Database = None,
    config: ServerConfig = None,
) -> None:
    """Change the role or password of a user, or disable the account. This ends all sessions of the user.

    Example: medgrape user change ada --disable
    """
    store = open_room(room, database, config)
    from medgrape.server import accounts
    from medgrape.server.accounts import hash_password

    new_role = None if role is None else _parse_role(role)
    wants_password = new_password or password_stdin
    password_hash = hash_password(_read_password(from_input=password_stdin)) if wants_password else None
    with store.database.writing() as session:
        user = accounts.user_named(session, name)
        changes = accounts.change(session, user, new_role, disable, password_hash)
        store.record(session, COMMAND_LINE, "user.changed", **changes)
    note(f"{name} is {user.role}{', disabled' if user.disabled else ''}.")


@tokens.command("create")
def create_token(
    user: Annotated[str, Option(help="User that the program acts for.")],
    name: Annotated[str, Option(help="Name of the token, such as that of the program.")] = "token",
    role: RoleOption = "reader",
    days: Annotated[float, Option(min=0.01, max=3650, help="Days until the token expires.")] = 90,
    room: Room = ROOM,
    database: Database = None,
    config: ServerConfig = None,
) -> None:
    """Create a token for a program and print it. It is shown only once: the server stores a hash of it.

    Example: medgrape token create --user pacs --name orthanc
    """
    store = open_room(room, database, config)
    from medgrape.server import accounts

    with store.database.writing() as session:
        account = accounts.user_named(session, user)
        token = accounts.create_token(session, account, name[:64], _parse_role(role), days)
        store.record(session, COMMAND_LINE, "token.created", token=token.id, user=user, role=role)
    sys.stdout.write(f"{token}\n")


@tokens.command("list")
def list_tokens(
    room: Room = ROOM, database: Database = None, config: ServerConfig = None, as_json: Json = False
) -> None:
    """List the tokens, without their secrets.

    Example: medgrape token list
    """
    store = open_room(room, database, config)
    from medgrape.server import accounts
    from medgrape.server.storage.tables import stamp

    with store.database.reading() as session:
        tokens_and_users = accounts.tokens(session)
    rows = [
        (row.id, user, row.name, row.role, "-" if row.expires_at is None else stamp(row.expires_at), row.revoked_at)
        for row, user in tokens_and_users
    ]
    if as_json:
        keys = ("id", "user", "name", "role", "expires_at")
        print_json([dict(zip(keys, row, strict=False)) | {"revoked": row[-1] is not None} for row in rows])
    else:
        shown = [(*row[:-1], "revoked" if row[-1] else "") for row in rows]
        table(f"Tokens of {room}", ("id", "user", "name", "role", "expires", ""), shown)


@tokens.command("revoke")
def revoke_token(
    token: Annotated[str, Argument(help="Id of the token, as medgrape token list shows it.")],
    room: Room = ROOM,
    database: Database = None,
    config: ServerConfig = None,
) -> None:
    """Revoke a token: the server refuses it from now on.

    Example: medgrape token revoke 5f2b8c0a9d3e4f17
    """
    store = open_room(room, database, config)
    from medgrape.server import accounts

    with store.database.writing() as session:
        accounts.revoke(session, token)
        store.record(session, COMMAND_LINE, "token.revoked", token=token)
    note(f"{token} is revoked.")


def _parse_role(text: str) -> "Role":
    from medgrape.server.accounts import Role

    if text not in set(Role):
        raise UserError(f"A role is {_ROLES}, not {text!r}.")
    return Role(text)


def _read_password(*, from_input: bool) -> str:
    if from_input:
        return sys.stdin.readline().rstrip("\n")
    if not sys.stdin.isatty():
        raise UserError("There is no terminal to ask for a password; use --password-stdin.")
    return str(prompt("Password", hide_input=True, confirmation_prompt=True))
