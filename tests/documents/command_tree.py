"""Checks typed commands against the existing ones: names, options, number of arguments."""

import re
import shlex
from typing import Literal, get_args, get_origin

import typer
from document_blocks import Block
from typer.main import get_command

from benchmarks.commands import app as benchmarks
from medgrape.cli.app import app

UsageError = typer.BadParameter.__mro__[1]
"""The error of the parser."""
_PLACEHOLDER = re.compile(r"-?[A-Z][A-Z0-9_.:,|-]*(\.\.\.)?|.*(\.\.\.|…|\{).*")
"""Placeholders: RUN, FILM..., X1,Y1, {key}."""
APPS = {"medgrape": app, "benchmarks": benchmarks}
"""``medgrape ...`` and ``python -m benchmarks ...``."""
_CALLERS = ("srun", "torchrun", "python", "nohup")


def typed(block: Block) -> list[list[str]]:
    """Return our commands in a bash block, each as a list of words."""
    found, rest = list[list[str]](), ""
    for line in block.text.replace("\\\n", " ").splitlines():
        rest += line
        try:
            words = _split(rest)
        except ValueError:  # a quotation goes on in the next line
            rest += "\n"
            continue
        rest = ""
        found += [command for command in map(_our_command, _commands(words)) if command]
    return found


def _split(line: str) -> list[str]:
    """Split a line into words with their quotes, so that quoted semicolons differ from those that end a command."""
    shlex.split(line, comments=True)  # raises ValueError if a quotation is not closed
    shell = shlex.shlex(line, posix=False, punctuation_chars="|&;()")
    shell.whitespace_split = True
    return list(shell)


def _commands(words: list[str]) -> list[list[str]]:
    """Split words into commands at pipes, semicolons and brackets."""
    found: list[list[str]] = [[]]
    for word in words:
        if set(word) <= set("|&;()"):
            found.append([])
        else:
            found[-1].append(word)
    return found


def _our_command(words: list[str]) -> list[str]:
    """Return the words from ``medgrape`` on, if it is the program called, possibly after variables or a launcher."""
    place = next((place for place, word in enumerate(words) if word in APPS), len(words))
    before = words[:place]
    if before and before[0] not in _CALLERS and not all("=" in word for word in before):
        return []
    return words_of(" ".join(words[place:]))


def words_of(line: str) -> list[str]:
    """Split a line like a shell, or at blanks if a quotation is not closed."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    return [word for word in words if word != "&"]


def complaint(words: list[str], *, whole: bool = True) -> str | None:
    """Return what is wrong with a command, or None; ``whole``: required arguments must be present."""
    command, rest = get_command(APPS[words[0]]), words[1:]
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in command.commands:
            return None if _PLACEHOLDER.fullmatch(name) else f"there is no command {name!r}"
        command = command.commands[name]
    rest, context = [word for word in rest if word not in ("...", "…", "[OPTIONS]")], typer.Context(command)
    if not whole and rest and rest[-1].startswith("--"):  # a sentence may name an option without its value
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
    """Check that required values are present, and that numbers and fixed words are valid."""
    for option in context.command.params:
        value = given.get(option.name)
        report = value if isinstance(value, tuple | list) else () if value is None else (value,)
        if whole and option.required and not report:
            return f"{option.name} is missing"
        for one in report:
            if isinstance(one, str) and not _PLACEHOLDER.fullmatch(one) and not _fits(option.bare_type, one):
                return f"{option.name} cannot be {one!r}"
    return None


def _fits(kind: object, word: str) -> bool:
    """Whether a word is valid for a number or a choice; paths and texts always are."""
    if kind in (int, float):
        return re.fullmatch(r"-?\d+" if kind is int else r"-?[\d.]+(e-?\d+)?|inf|\$\w+", word) is not None
    if get_origin(kind) is Literal:
        return word in get_args(kind)
    return True
