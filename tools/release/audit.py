"""Known weaknesses in what a release brings along; a service that keeps silent is never taken for good news."""

import json
import re
import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from release.bench import Bench
from release.installed import packages
from release.programs import ended, tool
from release.steps import OutOfReachError, RefusedError

ACCEPTED = Path(__file__).with_name("audit.toml")
SERVICES = ("pypi", "osv")


@dataclass(frozen=True)
class Weakness:
    """Something known about a package."""

    package: str
    version: str
    id: str
    mended_in: str


def audit_packages(bench: Bench) -> str:
    """Ask about every installed package; each must be answered for, by one service or the other."""
    # Builds for one kind of machine ("+cpu") are not known by that name; the release that they are built from is.
    names = [f"{one.name}=={one.version.split('+')[0]}" for one in packages(bench)]
    answers = list[dict[str, Any]]()
    for service in SERVICES:
        answers += _answers(bench, unanswered(names, answers), service)
    if not answers:
        raise OutOfReachError("not audited: no service for known weaknesses (PyPI, OSV) is within reach.")
    told = {"dependencies": answers}
    (bench.made / "audit.json").write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    refuse(weaknesses(told), date.today())  # what is known counts, whatever else nobody knows
    silent = unanswered(names, answers)
    if silent:
        raise OutOfReachError(f"not audited: {', '.join(silent)}, of which no service within reach knows anything.")
    return f"{len(names)} packages, no known weakness that is not accounted for."


def audit_page(bench: Bench) -> str:
    """Ask npm's registry about what is built into the page."""
    folder = bench.folder / "page-audit"
    folder.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(bench.source / "ui" / name, folder / name)
    said = ended([tool("npm"), "audit", "--package-lock-only", "--omit=dev", "--json"], folder).out
    told: dict[str, Any] = json.loads(said or "{}")
    if "vulnerabilities" not in told:
        raise OutOfReachError("not audited: npm's registry does not answer questions about weaknesses from here.")
    (bench.made / "audit-page.json").write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    if told["vulnerabilities"]:
        raise RefusedError(
            f"Weaknesses are known of {', '.join(sorted(told['vulnerabilities']))}; see audit-page.json."
        )
    return "no known weakness in what is built into the page."


def weaknesses(told: dict[str, Any]) -> list[Weakness]:
    """What pip-audit found."""
    return [
        Weakness(one["name"], one["version"], found["id"], ", ".join(found.get("fix_versions", ())))
        for one in told["dependencies"]
        for found in one.get("vulns", ())
    ]


def unanswered(names: Sequence[str], answers: Sequence[dict[str, Any]]) -> list[str]:
    """Those of ``name==version`` that no answer is about."""
    known = {_normal(one["name"]) for one in answers}
    return [one for one in names if _normal(one.partition("==")[0]) not in known]


def refuse(found: Sequence[Weakness], today: date, path: Path = ACCEPTED) -> None:
    """Refuse weaknesses that nobody accepted, or only until a day that has passed."""
    accepted = {one["id"]: one["until"] for one in tomllib.loads(path.read_text("utf-8"))["accepted"]}
    open_ = [one for one in found if accepted.get(one.id, date.min) < today]
    if open_:
        told = (f"{one.package} {one.version}: {one.id} (mended in {one.mended_in or 'no version'})" for one in open_)
        raise RefusedError(f"{len(open_)} known weaknesses: {'; '.join(told)}.")


def _answers(bench: Bench, names: Sequence[str], service: str) -> list[dict[str, Any]]:
    """What a service says of the packages that it knows; pip-audit counts all others as fine."""
    if not names:
        return []
    wanted = bench.folder / "audited.txt"
    wanted.write_text("\n".join(names) + "\n", "utf-8")
    command: list[str | Path] = [
        tool("pip-audit"), "--requirement", wanted, "--no-deps", "--disable-pip", "--vulnerability-service", service,
        "--format", "json", "--progress-spinner", "off",
    ]  # fmt: skip
    said = ended(command, bench.folder).out
    if not said.startswith("{"):
        return []
    return [one for one in json.loads(said)["dependencies"] if "skip_reason" not in one]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
