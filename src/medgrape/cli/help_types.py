"""How help texts name values: flags have no type, others are TEXT, PATH or NUMBER, and arguments are in capitals.

Typer shows the Python types instead, such as ``<bool>`` and ``<list[str]>``, and arguments as ``{run}``.
"""

import re

from typer import Context
from typer.core import TyperArgument, TyperOption

_NAMES = {
    "bool": "", "str": "TEXT", "int": "NUMBER", "float": "NUMBER",
    "Path": "PATH", "path": "PATH", "file": "PATH", "directory": "PATH",
}  # fmt: skip
_python_type = TyperOption.display_type


def _type_name(parameter: TyperArgument | TyperOption, ctx: Context) -> str:
    """Return the type of a value for the help; choices as ``local|ray``."""
    label = _python_type(parameter, ctx).strip("<>")
    name = re.sub(r"^list\[(.*)\]$", r"\1", label).removesuffix(" range")
    return _NAMES.get(name, name)


def _argument_name(argument: TyperArgument) -> str:
    return str(argument.metavar or argument.name.upper())


def _usage(argument: TyperArgument, _ctx: Context) -> list[str]:
    """Return an argument as in ``Usage: medgrape serve [OPTIONS] RUN...``; optional ones are in brackets."""
    name = _argument_name(argument) if argument.required else f"[{_argument_name(argument)}]"
    return [name if argument.nargs == 1 else f"{name}..."]


def use_plain_types() -> None:
    """Make all help texts and error messages of typer name values this way."""
    TyperOption.display_type = _type_name  # type: ignore[assignment]
    TyperArgument.display_type = _type_name  # type: ignore[assignment]
    TyperArgument.display_name_raw = property(_argument_name)  # type: ignore[assignment]
    TyperArgument.get_usage_pieces = _usage  # type: ignore[assignment]
