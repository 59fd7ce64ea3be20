"""Every command in documents, help texts and error messages exists, with its options."""

import ast
import re

import pytest
from command_tree import complaint, typed, words_of
from document_blocks import PAGES, ROOT, blocks, name, without_blocks
from typer.main import get_command

from medgrape.cli.app import app

SOURCES = sorted((ROOT / "src/medgrape").rglob("*.py"))
SUGGESTED = re.compile(
    r"(?:with|see|or|run|first|again|:) (medgrape [a-z-]+(?: [a-z-]+)*(?: --[a-z-]+(?: [A-Z{]\S*)?)*)"
)
PROSE = [*PAGES, ROOT / "ARCHITECTURE.md"]


def commands_with_help(command=None, path=()):
    """Yield the name and the help of every command."""
    for word, below in (command or get_command(app)).commands.items():
        if hasattr(below, "commands"):
            yield from commands_with_help(below, (*path, word))
        else:
            yield " ".join((*path, word)), below.help


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_in_a_document_exists_with_its_options(page):
    """Also those that are not run."""
    for block in blocks(page):
        for words in typed(block) if block.language == "bash" else ():
            assert complaint(words) is None, f"{block.place}: {' '.join(words)}: {complaint(words)}"


@pytest.mark.parametrize("page", PROSE, ids=name)
def test_every_command_in_a_sentence_exists_with_its_options(page):
    for quoted in re.findall(r"`(?:python -m )?((?:medgrape|benchmarks) [^`]+)`", without_blocks(page)):
        problem = complaint(words_of(" ".join(quoted.split())), whole=False)
        assert problem is None, f"{name(page)}: {quoted}: {problem}"


def test_every_example_in_the_help_can_be_typed():
    wrong, seen = [], 0
    for command, report in commands_with_help():
        for example in re.findall(r"Example: (medgrape .+?)(?:\n\s*\n|$)", report, re.DOTALL):
            words = words_of(example.replace("\\\n", " "))
            seen += 1
            if not " ".join(words[1:]).startswith(command) or complaint(words):
                wrong.append(f"{command}: {' '.join(words)}: {complaint(words) or 'is an example of another command'}")
    assert wrong == []
    assert seen >= len(dict(commands_with_help()))


def suggested(path):
    """Yield the commands that messages in the code suggest."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        yield from SUGGESTED.findall(text)


def test_every_command_that_an_error_suggests_exists():
    found = [(path, words_of(line)) for path in SOURCES for line in suggested(path)]
    wrong = []
    for path, words in found:
        if all(
            complaint(words[:end], whole=False) for end in range(2, len(words) + 1)
        ):  # the sentence may continue after the command
            wrong.append(f"{path.relative_to(ROOT)}: {' '.join(words)}: {complaint(words, whole=False)}")
    assert wrong == []
    assert len(found) > 10
