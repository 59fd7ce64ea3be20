"""Typed commands against the commands that there are: names, options, how many words each takes."""

import re
import shlex

import typer
from document_blocks import Block
from typer.main import get_command

from medgrape.cli.app import app

UsageError = typer.BadParameter.__mro__[1]
"""What the parser raises for whatever is wrong with a command."""
_PLACEHOLDER = re.compile(r"-?[A-Z][A-Z0-9_.:,|-]*(\.\.\.)?|.*(\.\.\.|…|\{).*")
"""RUN, FILM..., X1,Y1, {key}: what stands for something else."""
_BEFORE = r"\s*(?:[A-Za-z_]+=\S*\s+|srun .*?|.*-m )?"


def typed(block: Block) -> list[list[str]]:
    """The medgrape commands of a bash block as words, wherever in a line they stand."""
    found = []
    for line in block.text.replace("\\\n", " ").splitlines():
        for part in re.split(r"\|\|?|&&|;|\$\(", line):
            start = re.match(rf"{_BEFORE}(medgrape )", part)
            if start:
                found.append(words_of(part[start.start(1) :].rstrip(") ")))
    return found


def words_of(line: str) -> list[str]:
    """A line as a shell would take it apart; one that ends within a quotation is taken apart at its blanks."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    return [word for word in words if word != "&"]


def complaint(words: list[str], *, whole: bool = True) -> str | None:
    """What is wrong with a command; ``whole`` also asks for everything that it requires."""
    command, rest = get_command(app), words[1:]
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in command.commands:
            return None if _PLACEHOLDER.fullmatch(name) else f"there is no command {name!r}"
        command = command.commands[name]
    rest, context = [word for word in rest if word not in ("...", "…", "[OPTIONS]")], typer.Context(command)
    if not whole and rest and rest[-1].startswith("--"):  # a sentence may name an option without saying for what
        rest += [] if _flag(command, rest[-1]) else ["X"]
    try:
        given, left, _ = command.make_parser(context).parse_args(rest)
    except UsageError as error:
        return error.format_message()
    if left:
        return f"there is no place for {' '.join(left)}"
    return _values(context, given, whole=whole and not hasattr(command, "commands"))


def _flag(command: object, word: str) -> bool:
    return any(option.is_flag for option in command.params if word in (*option.opts, *option.secondary_opts))


def _values(context: typer.Context, given: dict, *, whole: bool) -> str | None:
    """Whether what is required is there, and whether what is a number, or one of some words, is one."""
    for option in context.command.params:
        value = given.get(option.name)
        told = value if isinstance(value, tuple | list) else () if value is None else (value,)
        if whole and option.required and not told:
            return f"{option.name} is missing"
        if told and not any(isinstance(one, str) and _PLACEHOLDER.fullmatch(one) for one in told):
            try:
                option.process_value(context, value)
            except UsageError as error:
                if "does not exist" not in error.format_message():  # whoever types it has the file
                    return error.format_message()
    return None
