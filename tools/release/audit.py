"""Known vulnerabilities in the packages of a release; a service that does not answer is not a pass."""

import json
import re
import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from release.installed import packages
from release.programs import run_program, tool
from release.steps import OutOfReachError, RefusedError
from release.workspace import Workspace

ACCEPTED = Path(__file__).with_name("audit.toml")
SERVICES = ("pypi", "osv")


@dataclass(frozen=True)
class Vulnerability:
    """A known vulnerability of a package."""

    package: str
    version: str
    id: str
    fixed_in: str


def audit_packages(workspace: Workspace) -> str:
    """Look up every installed package; each must be known to one of the services."""
    # Services do not know local versions such as "+cpu", but their release.
    names = [f"{one.name}=={one.version.split('+')[0]}" for one in packages(workspace)]
    answers = list[dict[str, Any]]()
    for service in SERVICES:
        answers += _answers(workspace, unanswered(names, answers), service)
    if not answers:
        raise OutOfReachError("not audited: no vulnerability service (PyPI, OSV) can be reached.")
    report = {"dependencies": answers}
    (workspace.made / "audit.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    refuse(vulnerabilities(report), date.today())  # known vulnerabilities count even if other packages are unknown
    silent = unanswered(names, answers)
    if silent:
        raise OutOfReachError(f"not audited: {', '.join(silent)}: unknown to all services that can be reached.")
    return f"{len(names)} packages, no known vulnerability that is not accepted in audit.toml."


def audit_page(workspace: Workspace) -> str:
    """Look up the packages of the page at npm's registry."""
    folder = workspace.folder / "page-audit"
    folder.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(workspace.source / "ui" / name, folder / name)
    output = run_program([tool("npm"), "audit", "--package-lock-only", "--omit=dev", "--json"], folder).out
    report: dict[str, Any] = json.loads(output or "{}")
    if "vulnerabilities" not in report:
        raise OutOfReachError("not audited: npm's registry does not answer.")
    (workspace.made / "audit-page.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    if report["vulnerabilities"]:
        raise RefusedError(
            f"Vulnerabilities are known in {', '.join(sorted(report['vulnerabilities']))}; see audit-page.json."
        )
    return "no known vulnerability in the packages of the page."


def vulnerabilities(report: dict[str, Any]) -> list[Vulnerability]:
    """Return the vulnerabilities that pip-audit reports."""
    return [
        Vulnerability(one["name"], one["version"], found["id"], ", ".join(found.get("fix_versions", ())))
        for one in report["dependencies"]
        for found in one.get("vulns", ())
    ]


def unanswered(names: Sequence[str], answers: Sequence[dict[str, Any]]) -> list[str]:
    """Return those of ``name==version`` that no answer mentions."""
    known = {_normal(one["name"]) for one in answers}
    return [one for one in names if _normal(one.partition("==")[0]) not in known]


def refuse(found: Sequence[Vulnerability], today: date, path: Path = ACCEPTED) -> None:
    """Raise an error for vulnerabilities that are not accepted, or whose acceptance has expired."""
    accepted = {one["id"]: one["until"] for one in tomllib.loads(path.read_text("utf-8"))["accepted"]}
    open_ = [one for one in found if accepted.get(one.id, date.min) < today]
    if open_:
        report = (f"{one.package} {one.version}: {one.id} (fixed in {one.fixed_in or 'no version'})" for one in open_)
        raise RefusedError(f"{len(open_)} known vulnerabilities: {'; '.join(report)}.")


def _answers(workspace: Workspace, names: Sequence[str], service: str) -> list[dict[str, Any]]:
    """Return the answers of a service, without the packages that it does not know, which pip-audit skips."""
    if not names:
        return []
    wanted = workspace.folder / "audited.txt"
    wanted.write_text("\n".join(names) + "\n", "utf-8")
    command: list[str | Path] = [
        tool("pip-audit"), "--requirement", wanted, "--no-deps", "--disable-pip", "--vulnerability-service", service,
        "--format", "json", "--progress-spinner", "off",
    ]  # fmt: skip
    output = run_program(command, workspace.folder).out
    if not output.startswith("{"):
        return []
    return [one for one in json.loads(output)["dependencies"] if "skip_reason" not in one]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
