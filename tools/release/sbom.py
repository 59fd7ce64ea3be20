"""The bill of materials (SBOM): what is installed, and what is built into the page, in one CycloneDX file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from release.packages import page_notices
from release.page_parts import PagePart, page_parts
from release.programs import run_checked, tool
from release.steps import RefusedError
from release.workspace import Workspace

FILE = "sbom.cdx.json"
SCHEMA = SchemaVersion.V1_6


def write_sbom(workspace: Workspace) -> str:
    """List the environment, add the parts of the page, and validate the result against the CycloneDX schema."""
    command: list[str | Path] = [
        tool("cyclonedx-py"), "environment", workspace.python, "--pyproject", workspace.source / "pyproject.toml",
        "--spec-version", SCHEMA.to_version(), "--output-reproducible",
    ]  # fmt: skip
    listed = json.loads(run_checked(command, workspace.folder).out)
    parts = page_parts(page_notices(workspace), workspace.source / "ui" / "package-lock.json")
    bill = merged(listed, workspace.version, parts)
    text = json.dumps(bill, indent=1, sort_keys=True) + "\n"
    if (fault := JsonStrictValidator(SCHEMA).validate_str(text)) is not None:
        raise RefusedError(f"The bill of materials does not fit CycloneDX {SCHEMA.to_version()}: {fault}.")
    (workspace.made / FILE).write_text(text, "utf-8")
    installed = len(list(workspace.environment.glob("lib/*/site-packages/*.dist-info")))
    if len(bill["components"]) != installed - 1 + len(parts):
        raise RefusedError(
            f"{len(bill['components'])} parts are listed, but {installed - 1} and {len(parts)} are there."
        )
    told = f"{len(listed['components'])} packages and {len(parts)} parts of the page"
    return f"{told}; valid CycloneDX {SCHEMA.to_version()}."


def merged(listed: dict[str, Any], version: str, parts: Sequence[PagePart]) -> dict[str, Any]:
    """Return the listed environment with our version, and with the parts of the page as our components."""
    root = listed["metadata"]["component"]
    ours = root | {"version": version, "purl": f"pkg:pypi/medgrape@{version}"}
    components = [one for one in listed["components"] if one["name"] != "medgrape"]
    return listed | {
        "metadata": listed["metadata"] | {"component": ours},
        "components": [*components, *map(_component, parts)],
        "dependencies": [
            *(_with_parts(one, parts) if one["ref"] == root["bom-ref"] else one for one in listed["dependencies"]),
            *({"ref": _purl(part)} for part in parts),
        ],
    }


def _component(part: PagePart) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": _purl(part),
        "name": part.name,
        "version": part.version,
        "purl": _purl(part),
        "licenses": [{"license": {"id": part.licence}}],
        "hashes": [{"alg": "SHA-512", "content": part.sha512}],
        "description": "Built into the page, medgrape/server/page.",
    }


def _with_parts(dependency: dict[str, Any], parts: Sequence[PagePart]) -> dict[str, Any]:
    return dependency | {"dependsOn": sorted([*dependency.get("dependsOn", ()), *map(_purl, parts)])}


def _purl(part: PagePart) -> str:
    return f"pkg:npm/{quote(part.name, safe='/')}@{part.version}"
