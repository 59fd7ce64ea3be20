"""What an environment holds, and what its packages say of their licences."""

import json
import re
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePath

from release.bench import Bench
from release.licences import Package
from release.programs import done, tool

FAMILY = re.compile(r"GNU\s+(?:\w+\s+)?General\s+Public\s+Licen[sc]e", re.IGNORECASE)
TEXTS = ("licen", "copying", "notice", "metadata")
SHORT = 60
"""Longer than any name of a licence: then it is the licence itself."""


def packages(bench: Bench) -> list[Package]:
    """Everything that was installed but ourselves."""
    listing = done(
        [tool("pip-licenses"), "--python", bench.python, "--from=all", "--format=json", "--with-system"], bench.folder
    ).out
    return [
        Package(one["Name"], one["Version"], licence(one)) for one in json.loads(listing) if one["Name"] != "medgrape"
    ]


def licence(told: dict[str, str]) -> str:
    """The most exact of what a package says: an SPDX expression, a short name, else a classifier."""
    expression, classifier, plain = (
        told.get(f"License-{source}", "UNKNOWN") for source in ("Expression", "Classifier", "Metadata")
    )
    if expression != "UNKNOWN":
        return expression
    if plain != "UNKNOWN" and len(plain) < SHORT and "\n" not in plain:
        return plain
    return "" if classifier == "UNKNOWN" else classifier


def carriers(site: Path) -> list[str]:
    """Packages with a text of the GPL family among their own, for themselves or for what is built into them."""
    return sorted({one.name for one in distributions(path=[str(site)]) if _carries(one)})


def _carries(package: Distribution) -> bool:
    texts = (Path(str(file.locate())) for file in package.files or () if _is_text(file))
    return any(FAMILY.search(file.read_text("utf-8", "replace")) for file in texts if file.is_file())


def _is_text(file: PurePath) -> bool:
    return any(word in file.name.lower() for word in TEXTS) and file.suffix not in (".py", ".pyc", ".so", ".h")
