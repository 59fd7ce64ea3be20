"""``medgrape user`` and ``medgrape token``: who may use a server."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import note, print_json, table
from medgrape.cli.options import Json
from medgrape.cli.serve import ROOM, DatabaseOption, RoomOption, SettingsFile, archive
from medgrape.errors import UserError

if TYPE_CHECKING:
    from medgrape.server.accounts import Role

users = typer.Typer(no_args_is_help=True, help="Who may use a server: add, list, change.")
tokens = typer.Typer(no_args_is_help=True, help="Keys for machines: create, list, revoke.")
ROLES = "reader, curator or admin"
COMMAND = "command line"
"""Who did it, in the log: whoever may type commands on the server's machine."""
RoleOption = Annotated[str, typer.Option(help=f"What they may do: {ROLES}.")]
FromInput = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]


@users.command("add")
def add_user(
    name: Annotated[str, typer.Argument(help="Lower case letters, digits and . _ @ -")],
    role: RoleOption = "reader",
    room: RoomOption = ROOM,
    database: DatabaseOption = None,
    config: SettingsFile = None,
    password_stdin: FromInput = False,
    no_password: Annotated[bool, typer.Option("--no-password", help="For a machine that comes by token.")] = False,
) -> None:
    """Let somebody use the server of a room; asks for a password.

    Example: medgrape user add ada --role curator
    """
    opened = archive(room, database, config)
    from medgrape.server import accounts

    password = None if no_password else _password(from_input=password_stdin)
    with opened.database.writing() as session:
        accounts.add_user(session, name, _role(role), password)
        opened.record(session, COMMAND, "user.added", user=name, role=role)
    note(f"{name} may use {room} as {role}. If its server ran without login so far, start it again.")


@users.command("list")
def list_users(
    room: RoomOption = ROOM, database: DatabaseOption = None, config: SettingsFile = None, as_json: Json = False
) -> None:
    """List who may use a server.

    Example: medgrape user list
    """
    opened = archive(room, database, config)
    from medgrape.server import accounts

    with opened.database.reading() as session:
        rows = [(one.name, one.role, "disabled" if one.disabled else "") for one in accounts.users(session)]
    if as_json:
        print_json([{"name": name, "role": role, "disabled": bool(off)} for name, role, off in rows])
    else:
        table(f"Users of {room}", ("name", "role", ""), rows)


@users.command("change")
def change_user(
    name: Annotated[str, typer.Argument(help="Who.")],
    role: Annotated[str | None, typer.Option(help=f"A new role: {ROLES}.")] = None,
    disable: Annotated[bool | None, typer.Option("--disable/--enable", help="Keep them out, or let them in.")] = None,
    new_password: Annotated[bool, typer.Option("--new-password", help="Ask for a new password.")] = False,
    password_stdin: FromInput = False,
    room: RoomOption = ROOM,
    database: DatabaseOption = None,
    config: SettingsFile = None,
) -> None:
    """Change a user's role or password, or keep them out. They are logged out everywhere.

    Example: medgrape user change ada --disable
    """
    opened = archive(room, database, config)
    from medgrape.server import accounts
    from medgrape.server.accounts import hash_password

    wanted = None if role is None else _role(role)
    kept = hash_password(_password(from_input=password_stdin)) if new_password or password_stdin else None
    with opened.database.writing() as session:
        row = accounts.user_named(session, name)
        opened.record(session, COMMAND, "user.changed", **accounts.change(session, row, wanted, disable, kept))
    note(f"{name} is {row.role}{', disabled' if row.disabled else ''}.")


@tokens.command("create")
def create_token(
    user: Annotated[str, typer.Option(help="Whom it speaks for.")],
    name: Annotated[str, typer.Option(help="What it is for.")] = "token",
    role: RoleOption = "reader",
    days: Annotated[float, typer.Option(min=0.01, max=3650, help="How long it is valid.")] = 90,
    room: RoomOption = ROOM,
    database: DatabaseOption = None,
    config: SettingsFile = None,
) -> None:
    """Make a key for a machine. It is printed once, on standard output; the server keeps only a hash of it.

    Example: medgrape token create --user pacs --name orthanc
    """
    opened = archive(room, database, config)
    from medgrape.server import accounts

    with opened.database.writing() as session:
        row = accounts.user_named(session, user)
        token = accounts.create_token(session, row, name[:64], _role(role), days)
        opened.record(session, COMMAND, "token.created", token=token.id, user=user, role=role)
    sys.stdout.write(f"{token}\n")


@tokens.command("list")
def list_tokens(
    room: RoomOption = ROOM, database: DatabaseOption = None, config: SettingsFile = None, as_json: Json = False
) -> None:
    """List the keys of machines, without their secrets.

    Example: medgrape token list
    """
    opened = archive(room, database, config)
    from medgrape.server import accounts
    from medgrape.server.storage.tables import stamp

    with opened.database.reading() as session:
        found = accounts.tokens(session)
    rows = [
        (row.id, user, row.name, row.role, "-" if row.expires_at is None else stamp(row.expires_at), row.revoked_at)
        for row, user in found
    ]
    if as_json:
        keys = ("id", "user", "name", "role", "expires_at")
        print_json([dict(zip(keys, row, strict=False)) | {"revoked": row[-1] is not None} for row in rows])
    else:
        shown = [(*row[:-1], "revoked" if row[-1] else "") for row in rows]
        table(f"Tokens of {room}", ("id", "user", "for", "role", "until", ""), shown)


@tokens.command("revoke")
def revoke_token(
    token: Annotated[str, typer.Argument(help="Its id, as medgrape token list shows it.")],
    room: RoomOption = ROOM,
    database: DatabaseOption = None,
    config: SettingsFile = None,
) -> None:
    """Let a key open nothing from now on.

    Example: medgrape token revoke 5f2b8c0a9d3e4f17
    """
    opened = archive(room, database, config)
    from medgrape.server import accounts

    with opened.database.writing() as session:
        accounts.revoke(session, token)
        opened.record(session, COMMAND, "token.revoked", token=token)
    note(f"{token} opens nothing any more.")


def _role(text: str) -> "Role":
    from medgrape.server.accounts import Role

    if text not in set(Role):
        raise UserError(f"A role is {ROLES}; {text!r} is none.")
    return Role(text)


def _password(*, from_input: bool) -> str:
    if from_input:
        return sys.stdin.readline().rstrip("\n")
    if not sys.stdin.isatty():
        raise UserError("There is no terminal to ask for a password; use --password-stdin.")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
