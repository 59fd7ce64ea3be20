"""Rewrites links between files of the repository for the site, which has only ``docs/`` and generated pages."""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OTHER_FILES = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changes.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "README.md": "index.md",
}
"""Files outside docs/ that are on the site, and their pages."""
GENERATED_FROM = {"src/medgrape/cli": "reference/cli/medgrape.md", "ui/openapi.json": "reference/http.md"}
"""Sources of generated pages; a link to the source becomes a link to the page."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def rewrite_links(text: str, source: str, page: str) -> str:
    """Return the text of the file ``source`` with links rewritten for its place ``page`` on the site.

    A link to a file that is not on the site becomes plain text. A broken link is not changed, so that the strict build
    reports it.
    """
    return LINK.sub(lambda link: _rewrite_link(link, source, page), text)


def _rewrite_link(link: re.Match[str], source: str, page: str) -> str:
    picture, words, target, anchor = link.groups()
    if re.match(r"[a-z]+:", target) or target.startswith("/"):
        return link[0]
    place = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    target_page = (OTHER_FILES | GENERATED_FROM).get(
        place, place.removeprefix("docs/") if place.startswith("docs/") else None
    )
    if target_page is not None:
        return f"{picture}[{words}]({posixpath.relpath(target_page, posixpath.dirname(page) or '.')}{anchor or ''})"
    return words if (ROOT / place).exists() else link[0]
