"""The licence report: every package of the default install and of the page, as a table and as JSON."""

import json
from collections import Counter
from collections.abc import Sequence

from release.installed import carriers, packages
from release.licences import Judgement, Rules, explained
from release.packages import page_notices
from release.page_parts import page_parts
from release.steps import RefusedError
from release.workspace import EXTRAS, Workspace


def report_licences(workspace: Workspace) -> str:
    """Check the licences of the default install, and write the report."""
    rules = Rules.load()
    parts = page_parts(page_notices(workspace), workspace.source / "ui" / "package-lock.json")
    judged = [rules.judged(one) for one in (*packages(workspace), *(part.package for part in parts))]
    (site,) = workspace.environment.glob("lib/*/site-packages")
    carrying = carriers(site)
    (workspace.made / "licences.json").write_text(as_json(judged, rules, carrying), "utf-8")
    (workspace.made / "licences.md").write_text(as_markdown(judged, rules, carrying, workspace.version), "utf-8")
    complaints = [f"{one.package.name}: {one.complaint}" for one in judged if one.complaint]
    complaints += [
        f"{name} carries a text of the GPL family that nobody has explained" for name in rules.unexplained(carrying)
    ]
    if complaints:
        raise RefusedError(f"{len(complaints)} complaints: {'; '.join(complaints[:6])}.")
    told = f"{len(judged)} packages, {len(parts)} of them in the page: {_summary(judged)}"
    return f"{told}. None is GPL, AGPL or LGPL; {len(carrying)} carry a text of that family, each explained."


def as_json(judged: Sequence[Judgement], rules: Rules, carrying: Sequence[str]) -> str:
    """Return the report as JSON."""
    rows = [
        {
            "name": one.package.name, "version": one.package.version, "kind": one.package.kind,
            "said": one.package.licence, "licence": one.expression, "complaint": one.complaint, "note": one.note,
        }
        for one in judged
    ]  # fmt: skip
    texts = {name: explained_or_not(rules, name) for name in carrying}
    return json.dumps({"packages": rows, "texts_of_the_gpl_family": texts}, indent=1, sort_keys=True) + "\n"


def as_markdown(judged: Sequence[Judgement], rules: Rules, carrying: Sequence[str], version: str) -> str:
    """Return the report as Markdown."""
    lines = [
        f"# Licences of medgrape {version}",
        "",
        f"medgrape itself is Apache-2.0. This is what `pip install 'medgrape[{EXTRAS}]'` brings along,",
        "and what the page is made of.",
        "",
        "| package | version | licence | from | note |",
        "|---|---|---|---|---|",
        *(
            f"| {' | '.join(_row(one))} |"
            for one in sorted(judged, key=lambda one: (one.package.kind, one.package.name.lower()))
        ),
        "",
        "Packages that carry a licence text of the GPL family, and what it is about:",
        "",
        *(f"- {name}: {explained_or_not(rules, name)}" for name in carrying),
    ]
    return "\n".join(lines) + "\n"


def explained_or_not(rules: Rules, name: str) -> str:
    """Return the reason for a licence text of the GPL family, if known."""
    return "NOBODY HAS EXPLAINED THIS" if rules.unexplained([name]) else explained(rules, name)


def _row(one: Judgement) -> tuple[str, ...]:
    package = one.package
    return package.name, package.version, one.expression or "?", package.kind, one.complaint or one.note


def _summary(judged: Sequence[Judgement]) -> str:
    counted = Counter(one.expression or "none" for one in judged).most_common(4)
    return ", ".join(f"{licence} {count}" for licence, count in counted) + ", others"
