"""Links between files of the repository, made to hold on the site, where only ``docs/`` and some pages of ours are."""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BESIDE = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changes.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "README.md": "index.md",
}
"""Files beside docs/ that people can read on the site, and where."""
MADE_FROM = {"src/medgrape/cli": "reference/cli/medgrape.md", "ui/openapi.json": "reference/http.md"}
"""What pages are made from: a link to the source is a link to the page."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def rehomed(text: str, source: str, page: str) -> str:
    """The text of the file ``source`` (in the repository) with links that hold where it is ``page`` (on the site).

    A link to a file that is no part of the site becomes its own words. One that leads nowhere is left as it is, so that
    the build, which takes warnings for errors, says so.
    """
    return LINK.sub(lambda link: _rehomed(link, source, page), text)


def _rehomed(link: re.Match[str], source: str, page: str) -> str:
    picture, words, target, anchor = link.groups()
    if re.match(r"[a-z]+:", target) or target.startswith("/"):
        return link[0]
    place = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    there = (BESIDE | MADE_FROM).get(place, place.removeprefix("docs/") if place.startswith("docs/") else None)
    if there is not None:
        return f"{picture}[{words}]({posixpath.relpath(there, posixpath.dirname(page) or '.')}{anchor or ''})"
    return words if (ROOT / place).exists() else link[0]
