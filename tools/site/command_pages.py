"""Generates the reference of the command line: one page per group of commands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typer.main import get_command

from medgrape.cli.app import app

FOLDER = "reference/cli"
UNGROUPED = "medgrape"
"""Page of the commands without a group."""
FACTS = re.compile(r"\s*(?:\[([^\]]*)\]|\((default: .*)\))$")
KINDS = {"list[str]": "text", "str": "text", "int range": "int", "float range": "float"}


@dataclass(frozen=True)
class Command:
    """A command and the words that call it."""

    words: str
    tree: Any
    """The command object of typer."""


def pages() -> dict[str, str]:
    """Return the Markdown of each page: commands without a group first, then one page per group."""
    tree = get_command(app)
    alone = [Command(f"medgrape {name}", one) for name, one in tree.commands.items() if not _is_group(one)]
    markdown = {f"{FOLDER}/{UNGROUPED}.md": _page("Commands without a group", tree.help or "", alone)}
    for name, group in tree.commands.items():
        if _is_group(group):
            words = f"medgrape {name}"
            markdown[f"{FOLDER}/{name}.md"] = _page(words, group.help or "", list(_below(group, words)))
    return markdown


def _below(group: Any, words: str) -> Iterator[Command]:  # noqa: ANN401 (typer names no type for it)
    for name, one in group.commands.items():
        if _is_group(one):
            yield from _below(one, f"{words} {name}")
        else:
            yield Command(f"{words} {name}", one)


def _is_group(one: Any) -> bool:  # noqa: ANN401
    return hasattr(one, "commands")


def _page(title: str, introduction: str, commands: list[Command]) -> str:
    listed = [
        f"- [`{one.words}`](#{one.words.replace(' ', '-')}): {_first_sentence(one.tree.help)}" for one in commands
    ]
    sections = [_section(one) for one in commands]
    return "\n\n".join([f"# {title}", introduction, "\n".join(listed), *sections]) + "\n"


def _first_sentence(help_text: str) -> str:
    return " ".join(help_text.split("\n\n")[0].split())


def _section(command: Command) -> str:
    """Return heading with anchor, description, example and options of a command."""
    context = command.tree.make_context(command.words, [], resilient_parsing=True)
    said = [paragraph.strip() for paragraph in (command.tree.help or "").split("\n\n")]
    examples = [one.removeprefix("Example:").strip() for one in said if one.startswith("Example:")]
    words = [_plain(one) for one in said if not one.startswith("Example:")]
    shown = [f"Example:\n\n```bash\n{_one_line(example)}\n```" for example in examples]
    usage = command.tree.get_usage(context).removeprefix("Usage: ")
    heading = f"## {command.words} {{ #{command.words.replace(' ', '-')} }}"
    return "\n\n".join([heading, *words, f"```text\n{usage}\n```", *shown, _options(command.tree, context)])


def _one_line(example: str) -> str:
    return " ".join(example.split())


def _plain(paragraph: str) -> str:
    return _escaped(" ".join(paragraph.split()))


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("--", "\\-\\-")


def _options(tree: Any, context: Any) -> str:  # noqa: ANN401
    records = [record for one in tree.params if (record := one.get_help_record(context)) is not None]
    rows = [_row(name, help_text or "") for name, help_text in records]
    return "\n".join(["| option | description | default |", "|---|---|---|", *rows])


def _row(name: str, help_text: str) -> str:
    """Format an option that typer describes as ``--batch <int range>`` and ``Batch size.  [default: 8; x>=1]``."""
    words, facts = help_text, []
    while found := FACTS.search(words):
        facts = [*(found[1] or found[2]).split("; "), *facts]
        words = words[: found.start()]
    shown = re.sub(r"<([^>]*)>", lambda kind: KINDS.get(kind[1], kind[1]).upper(), name)
    default = [fact.removeprefix("default: ") for fact in facts]
    return f"| `{shown}` | {_escaped(words)} | {_escaped(', '.join(default))} |".replace("`|", "`\\|")
