"""Finding films by the names that other programs have for them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

_EXAMPLES = 3


class Shelf:
    """Films by path; by path without suffix; by as much of its end as tells them apart; by name as web forms save it.

    A name finds a film only where no other film, and no other listed name, has a claim to it.
    """

    def __init__(self, files: Iterable[str], listed: Iterable[str]) -> None:
        paths, names = set(files), {_forward(name) for name in listed}
        self._files = paths
        self._by_path = _unique((path, bare(path)) for path in paths)
        self._by_end = _unique((path, end) for path in paths for end in _ends(path))
        self._by_form = _unique((path, _as_uploaded(path)) for path in paths)
        self._wholes = Counter(bare(name) for name in names)
        self._claims = Counter(end for name in names for end in _ends(name))
        self._forms = Counter(_as_uploaded(name) for name in names)
        self._elsewhere: list[str] = []

    def find(self, listed: str) -> str | None:
        """The film's path, or None; a name that leads out of the folder leads nowhere."""
        found = self._found(listed)
        if found is not None and _contradict(_forward(listed), found):
            self._elsewhere.append(f"{listed} as {found}")
        return found

    def notes(self) -> tuple[str, ...]:
        """How many were found by their name although the folders before it are other ones."""
        count = len(self._elsewhere)
        told = f"{count} films were found in other folders than those that were named; look whether they are the same: "
        return (told + ", ".join(self._elsewhere[:_EXAMPLES]),) if count else ()

    def _found(self, listed: str) -> str | None:
        if listed in self._files:
            return listed
        name = _forward(listed)
        if ".." in PurePosixPath(name).parts:
            return None
        whole = self._by_path.get(bare(name)) if self._wholes[bare(name)] == 1 else None
        ends = (self._by_end[end] for end in _ends(name) if end in self._by_end and self._claims[end] == 1)
        return whole or next(ends, None) or self._uploaded(name)

    def _uploaded(self, listed: str) -> str | None:
        form = _as_uploaded(listed)
        return self._by_form.get(form) if self._forms[form] == 1 else None


def bare(path: str) -> str:
    """A path without suffix: tools and mirrors re-encode films but keep their names."""
    pure = PurePosixPath(path)
    return pure.with_suffix("").as_posix() if pure.name else path


def _contradict(listed: str, found: str) -> bool:
    """Whether the folders of two paths differ, from the last one back as far as both have any."""
    named, actual = PurePosixPath(listed).parent.parts, PurePosixPath(found).parent.parts
    return any(one != other for one, other in zip(reversed(named), reversed(actual), strict=False))


def _forward(path: str) -> str:
    """As it is written everywhere but on Windows."""
    return path.replace("\\", "/")


def _ends(path: str) -> Iterator[str]:
    """``a/b/c.png`` as ``a/b/c``, ``b/c`` and ``c``."""
    parts = [part for part in PurePosixPath(bare(path)).parts if part != "/"]
    yield from ("/".join(parts[place:]) for place in range(len(parts)))


def _as_uploaded(path: str) -> str:
    """A name as web forms save it: spaces become underscores, and all but letters, digits, dots and dashes go."""
    return re.sub(r"[^-\w.]", "", PurePosixPath(bare(path)).name.strip().replace(" ", "_"))


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Key to path, for keys that only one path has."""
    found: dict[str, str | None] = {}
    for path, key in pairs:
        found[key] = path if key not in found else None
    return {key: path for key, path in found.items() if path is not None and key}
