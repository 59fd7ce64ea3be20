"""The fenced blocks of a page: language, place, and notes above them.

Notes are comments, invisible on the page, each on its own line directly above a fence:
``<!-- not run: REASON -->``, ``<!-- slow: REASON -->`` (only ``make test-slow`` runs it), ``<!-- fails: REASON -->``
(it must end with an error, because the page shows one).
"""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN, PARSED = ("bash", "python"), ("toml", "json", "yaml")
SHOWN = ("text", "csv", "nginx", "mermaid", "dockerfile", "http")
"""Languages of blocks that are only shown: output of commands, files of other programs."""
NOTE = re.compile(r"\s*<!-- (not run|slow|fails)(?:: (.+?))? ?-->\s*")
_FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*([^\s`]*)(.*)")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    """Number of its first line of content, from 1."""
    language: str
    text: str
    notes: dict[str, str]

    @property
    def place(self) -> str:
        """Page and line."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        """Whether a test runs or parses it, in the fast or the slow suite."""
        return self.language in (*RUN, *PARSED) and "not run" not in self.notes

    @property
    def file(self) -> str | None:
        """The file that the block shows, if its first line is a comment with a file name."""
        named = re.match(r"# ([\w./-]+\.(?:toml|py|json|yaml|txt))\b", self.text)
        return named.group(1) if named else None


def name(page: Path) -> str:
    """Return the path of a page relative to the repository, as the id of a test."""
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """Return all blocks of a page, in order."""
    lines, found, number = page.read_text("utf-8").splitlines(), [], 0
    while number < len(lines):
        opened = _FENCE.fullmatch(lines[number])
        if opened is None:
            number += 1
            continue
        end = _end(lines, number + 1, opened.group(2))
        text = textwrap.dedent("\n".join(lines[number + 1 : end])) + "\n"
        found.append(Block(page, number + 2, opened.group(3), text, _notes(lines[:number])))
        number = end + 1
    return found


def strays(page: Path) -> list[int]:
    """Return the lines with a note that is not above a fence."""
    lines = page.read_text("utf-8").splitlines()
    wrong = []
    for number, line in enumerate(lines):
        below = next((other for other in lines[number + 1 :] if not NOTE.fullmatch(other)), "")
        if NOTE.fullmatch(line) and _FENCE.fullmatch(below) is None:
            wrong.append(number + 1)
    return wrong


def without_blocks(page: Path) -> str:
    """Return the text of a page without its blocks."""
    lines = page.read_text("utf-8").splitlines()
    for block in blocks(page):
        for number in range(block.line - 2, block.line + block.text.count("\n")):
            lines[number] = ""
    return "\n".join(lines)


def _end(lines: list[str], start: int, fence: str) -> int:
    for number in range(start, len(lines)):
        if lines[number].strip().startswith(fence) and not lines[number].strip().strip(fence[0]):
            return number
    raise ValueError(f"a fence is never closed, before line {start}")


def _notes(above: list[str]) -> dict[str, str]:
    notes: dict[str, str] = {}
    for line in reversed(above):
        noted = NOTE.fullmatch(line)
        if noted is None:
            break
        notes[noted.group(1)] = noted.group(2) or ""
    return notes
