"""The packages of an environment and their licences."""

import json
import re
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePath

from release.licences import Package
from release.programs import run_checked, tool
from release.workspace import Workspace

FAMILY = re.compile(r"GNU\s+(?:\w+\s+)?General\s+Public\s+Licen[sc]e", re.IGNORECASE)
TEXTS = ("licen", "copying", "notice", "metadata")
SHORT = 60
"""Longer texts are the licence itself, not its name."""


def packages(workspace: Workspace) -> list[Package]:
    """Return all installed packages except medgrape."""
    listing = run_checked(
        [tool("pip-licenses"), "--python", workspace.python, "--from=all", "--format=json", "--with-system"],
        workspace.folder,
    ).out
    return [
        Package(one["Name"], one["Version"], licence(one)) for one in json.loads(listing) if one["Name"] != "medgrape"
    ]


def licence(fields: dict[str, str]) -> str:
    """Return the most exact statement of a package: an SPDX expression, a short name, else a classifier."""
    expression, classifier, plain = (
        fields.get(f"License-{source}", "UNKNOWN") for source in ("Expression", "Classifier", "Metadata")
    )
    if expression != "UNKNOWN":
        return expression
    if plain != "UNKNOWN" and len(plain) < SHORT and "\n" not in plain:
        return plain
    return "" if classifier == "UNKNOWN" else classifier


def carriers(site: Path) -> list[str]:
    """Return packages with a licence text of the GPL family, their own or of a built-in part."""
    return sorted({one.name for one in distributions(path=[str(site)]) if _carries(one)})


def _carries(package: Distribution) -> bool:
    texts = (Path(str(file.locate())) for file in package.files or () if _is_text(file))
    return any(FAMILY.search(file.read_text("utf-8", "replace")) for file in texts if file.is_file())


def _is_text(file: PurePath) -> bool:
    return any(word in file.name.lower() for word in TEXTS) and file.suffix not in (".py", ".pyc", ".so", ".h")
