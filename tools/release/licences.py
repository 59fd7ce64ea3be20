"""Rules for the licences of all packages of a release; a licence without a rule is an error."""

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
    """An installed or built-in package, and its licence."""

    name: str
    version: str
    licence: str
    """As stated by the package; empty if it states none."""
    kind: str = "PyPI"


@dataclass(frozen=True)
class Judgement:
    """The licence of a package in SPDX form, and whether it is accepted."""

    package: Package
    expression: str
    complaint: str = ""
    """Why it is refused; empty if accepted."""
    note: str = ""
    """Note of a manual review."""


@dataclass(frozen=True)
class Rules:
    """The accepted and refused licences."""

    accepted: frozenset[str]
    refused: tuple[str, ...]
    names: Mapping[str, str]
    reviewed: Mapping[str, tuple[str, str]]
    """Package to its reviewed licence, and the reason."""
    mentions: Mapping[str, str]
    """Package with a licence text of the GPL family to the reason for the text."""

    @classmethod
    def load(cls, path: Path = RULES) -> "Rules":
        """Load the rules of a TOML file."""
        told: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        return cls(
            frozenset(told["accepted"]), tuple(told["refused"]), told["names"],
            {_normal(one["package"]): (one["licence"], one["reason"]) for one in told["reviewed"]},
            {_normal(one["package"]): one["reason"] for one in told["mentions"]},
        )  # fmt: skip

    def judged(self, package: Package) -> Judgement:
        """Judge a package."""
        licence, reason = self.reviewed.get(
            _normal(package.name), (self.names.get(package.licence, package.licence), "")
        )
        if not licence:
            return Judgement(package, "", "names no licence; look at it, and add it to `reviewed`")
        try:
            tree = SPDX.parse(licence)
        except Exception:  # the library has many exceptions for an unknown licence
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
