"""What the page is made of: npm packages that are built into the wheel."""

import base64
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release.licences import Package
from release.steps import RefusedError

HEADING = re.compile(r"^## (\S+) - (\S+) \(([^)]+)\)$", re.MULTILINE)
LONG_ENOUGH = 200
"""Characters of a licence's text; less is a name alone."""
WITHOUT_NOTICE = ("Unlicense", "CC0-1.0", "0BSD", "MIT-0")
"""Licences that do not ask for their text to come along."""


@dataclass(frozen=True)
class PagePart:
    """An npm package inside the page."""

    name: str
    version: str
    licence: str
    sha512: str
    """Of the package as the registry has it, in hexadecimal digits."""

    @property
    def package(self) -> Package:
        """The same, to be judged."""
        return Package(self.name, self.version, self.licence, "npm, in the page")


def page_parts(notices: str, lock: Path) -> list[PagePart]:
    """What the notices in the wheel name, each with its text, exactly as locked."""
    locked: dict[str, dict[str, Any]] = json.loads(lock.read_text("utf-8"))["packages"]
    pieces = HEADING.split(notices)[1:]
    told = zip(pieces[0::4], pieces[1::4], pieces[2::4], pieces[3::4], strict=True)
    parts = [_part(name, version, licence, text, locked) for name, version, licence, text in told]
    wanted = json.loads(lock.with_name("package.json").read_text("utf-8"))["dependencies"]
    if missing := sorted(set(wanted) - {part.name for part in parts}):
        raise RefusedError(f"The page's notices do not name {', '.join(missing)}, which it is made of.")
    return parts


def _part(name: str, version: str, licence: str, text: str, locked: dict[str, dict[str, Any]]) -> PagePart:
    entry = locked.get(f"node_modules/{name}", {})
    if entry.get("version") != version:
        raise RefusedError(f"The page holds {name} {version}, but ui/package-lock.json has {entry.get('version')}.")
    if len(text.strip()) < LONG_ENOUGH and licence not in WITHOUT_NOTICE:
        raise RefusedError(f"The page's notices name {name} but do not hold the text of its licence.")
    algorithm, _, digest = str(entry.get("integrity", "")).partition("-")
    if algorithm != "sha512":
        raise RefusedError(f"ui/package-lock.json has no SHA-512 of {name}.")
    return PagePart(name, version, licence, base64.b64decode(digest).hex())
