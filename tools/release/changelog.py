"""The version is the same everywhere, and the changelog begins with it."""

import json
import re
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from release.steps import RefusedError
from release.workspace import Workspace

HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
TITLE = re.compile(r"^(\d+)\.(\d+)\.(\d+) \((unreleased|\d{4}-\d{2}-\d{2})\)$")
CITED = re.compile(r'^(version|date-released): "?([^"\n]+)"?$', re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """The changes of one version."""

    version: tuple[int, int, int]
    day: date | None
    """Day of its release; None: unreleased."""
    text: str

    @property
    def name(self) -> str:
        """The version as text."""
        return ".".join(map(str, self.version))


def check_versions(workspace: Workspace) -> str:
    """Compare the package's version with the changelog, the citation and the page."""
    sections = read_changelog((workspace.root / "CHANGELOG.md").read_text("utf-8"))
    check_changelog(sections, workspace.version, release=workspace.release, today=date.today())
    check_citation((workspace.root / "CITATION.cff").read_text("utf-8"), sections[0])
    page = json.loads((workspace.root / "ui" / "package.json").read_text("utf-8"))["version"]
    if page != workspace.version:
        raise RefusedError(f"ui/package.json says {page}, the package says {workspace.version}.")
    day = sections[0].day
    return (
        f"{workspace.version} ({day or 'unreleased'}) in the package, CHANGELOG.md, CITATION.cff and ui/package.json."
    )


def read_changelog(text: str) -> list[Section]:
    """Return the sections, the newest first."""
    pieces = HEADING.split(text)[1:]
    return [_section(pieces[at], pieces[at + 1]) for at in range(0, len(pieces), 2)]


def check_changelog(sections: list[Section], version: str, *, release: bool, today: date) -> None:
    """Raise an error if the changelog is out of order or does not begin with ``version``."""
    if not sections or sections[0].name != version:
        raise RefusedError(f"CHANGELOG.md must begin with a section for {version}.")
    for newer, older in pairwise(sections):
        if newer.version <= older.version or older.day is None or (newer.day is not None and newer.day < older.day):
            raise RefusedError(f"CHANGELOG.md: {newer.name} above {older.name} is out of order, or has no date.")
    if empty := [section.name for section in sections if "- " not in section.text]:
        raise RefusedError(f"CHANGELOG.md has no entry for {', '.join(empty)}.")
    day = sections[0].day
    if release and (day is None or day > today):
        raise RefusedError(f"To release {version}, write its day into CHANGELOG.md: ## {version} ({today}).")


def check_citation(text: str, newest: Section) -> None:
    """Raise an error if the citation has another version or day."""
    cited = dict(CITED.findall(text))
    wanted = {"version": newest.name} | ({} if newest.day is None else {"date-released": str(newest.day)})
    if cited != wanted:
        raise RefusedError(f"CITATION.cff says {cited}, CHANGELOG.md says {wanted}.")


def _section(title: str, text: str) -> Section:
    found = TITLE.match(title.strip())
    if found is None:
        raise RefusedError(
            f"CHANGELOG.md: '## {title}' should read '## 1.2.3 (2026-01-31)' or '## 1.2.3 (unreleased)'."
        )
    major, minor, patch, day = found.groups()
    try:
        released = None if day == "unreleased" else date.fromisoformat(day)
    except ValueError:
        raise RefusedError(f"CHANGELOG.md: {day} is not a date.") from None
    return Section((int(major), int(minor), int(patch)), released, text)
