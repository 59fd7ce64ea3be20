"""The table of contents: ``folder/*`` in mkdocs.yml means all pages of the folder that are not listed."""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

Entry = Any  # a page, or a title with a page, or a title with a list of entries: as YAML has it


def named(entries: Iterable[Entry]) -> Iterator[str]:
    """Return the pages that a table of contents lists, without stars."""
    for entry in entries:
        if isinstance(entry, dict):
            for below in entry.values():
                yield from named(below if isinstance(below, list) else [below])
        elif not _is_star(entry):
            yield entry


def spread(entries: list[Entry], pages: Iterable[str]) -> list[Entry]:
    """Return the table with every star replaced by its pages; titles without pages are left out."""
    taken = set(named(entries))
    left = sorted(page for page in pages if page not in taken)
    return list(_spread(entries, left))


def _spread(entries: list[Entry], left: list[str]) -> Iterator[Entry]:
    for entry in entries:
        if isinstance(entry, dict):
            yield from _titled(entry, left)
        elif _is_star(entry):
            folder = str(PurePosixPath(entry).parent)
            yield from (page for page in left if str(PurePosixPath(page).parent) == folder)
        else:
            yield entry


def _titled(entry: dict[str, Entry], left: list[str]) -> Iterator[Entry]:
    for title, below in entry.items():
        if not isinstance(below, list):
            yield {title: below}
        elif inside := list(_spread(below, left)):
            yield {title: inside}


def _is_star(entry: str) -> bool:
    return PurePosixPath(entry).name == "*"
