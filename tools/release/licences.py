"""Under which licences a release comes to people: a rule for each, and nothing that nobody has judged."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from license_expression import LicenseSymbol, LicenseWithExceptionSymbol, get_spdx_licensing

RULES = Path(__file__).with_name("licences.toml")
SPDX = get_spdx_licensing()


@dataclass(frozen=True)
class Package:
    """Something that is installed or built in, and what it says of its licence."""

    name: str
    version: str
    licence: str
    """As it says itself; empty if it says nothing."""
    kind: str = "PyPI"


@dataclass(frozen=True)
class Judgement:
    """A package's licence as SPDX calls it, and whether it may come along."""

    package: Package
    expression: str
    complaint: str = ""
    """Why it may not; empty if it may."""
    note: str = ""
    """What a person found who looked at it."""


@dataclass(frozen=True)
class Rules:
    """Which licences may come along."""

    accepted: frozenset[str]
    refused: tuple[str, ...]
    names: Mapping[str, str]
    reviewed: Mapping[str, tuple[str, str]]
    """Package -> its licence, and why that is so."""
    mentions: Mapping[str, str]
    """Package that carries a text of the GPL family -> what that is about."""

    @classmethod
    def load(cls, path: Path = RULES) -> "Rules":
        """As the table has them."""
        told: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        return cls(
            frozenset(told["accepted"]), tuple(told["refused"]), told["names"],
            {_normal(one["package"]): (one["licence"], one["reason"]) for one in told["reviewed"]},
            {_normal(one["package"]): one["reason"] for one in told["mentions"]},
        )  # fmt: skip

    def judged(self, package: Package) -> Judgement:
        """What to think of a package."""
        licence, reason = self.reviewed.get(
            _normal(package.name), (self.names.get(package.licence, package.licence), "")
        )
        if not licence:
            return Judgement(package, "", "names no licence; look at it, and add it to `reviewed`")
        try:
            tree = SPDX.parse(licence)
        except Exception:  # the library has many of its own, and all mean the same
            return Judgement(package, licence, f"{licence!r} is no licence that SPDX knows; add it to `names`")
        return Judgement(package, str(tree), self._complaint(tree), reason)

    def unexplained(self, packages: Iterable[str]) -> list[str]:
        """Packages that carry a text of the GPL family which nobody has explained."""
        return [name for name in packages if _normal(name) not in self.mentions]

    def _complaint(self, tree: Any) -> str:  # noqa: ANN401 (the library's trees have no types)
        """Why an expression may not come along: of an OR one side must be fine, of an AND all."""
        if isinstance(tree, LicenseSymbol | LicenseWithExceptionSymbol):
            return self._complaint_about(str(tree))
        complaints = [self._complaint(side) for side in tree.args]
        if isinstance(tree, SPDX.OR):
            return "" if "" in complaints else complaints[0]
        return next((one for one in complaints if one), "")

    def _complaint_about(self, licence: str) -> str:
        if licence in self.accepted:
            return ""
        if licence.startswith(self.refused):
            return f"{licence} is refused in the default install; put it into an extra of its own"
        return f"nobody has judged {licence} yet; add it to `accepted` or `refused`"


def explained(rules: Rules, name: str) -> str:
    """What a package's text of the GPL family is about."""
    return rules.mentions[_normal(name)]


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
