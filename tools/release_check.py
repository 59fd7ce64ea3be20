"""Check a release before it is published: ``make release-check``.

Builds the committed sources, installs them without compiler and Node.js, runs the demo, lists all packages with their
licences, and looks up known vulnerabilities. docs/how-to/releasing.md describes each step.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from release.audit import audit_packages, audit_page
from release.changelog import check_versions
from release.containers import lint
from release.installation import install, version
from release.licence_report import report_licences
from release.packages import build, look_inside
from release.sbom import write_sbom
from release.smoke_test import demo, room
from release.steps import Outcome, State, Step, all_passed, run_steps
from release.workspace import Workspace

ROOT = Path(__file__).resolve().parents[1]
STEPS = (
    Step("versions", check_versions),
    Step("containers", lint),
    Step("build", build),
    Step("contents", look_inside, ("build",)),
    Step("install", install, ("build",)),
    Step("version", version, ("install",)),
    Step("demo", demo, ("install",)),
    Step("reading room", room, ("demo",)),
    Step("bill of materials", write_sbom, ("install",)),
    Step("licences", report_licences, ("install",)),
    Step("audit", audit_packages, ("install",)),
    Step("audit of the page", audit_page, ("build",)),
)
AUDITS = frozenset({"audit", "audit of the page"})


def main(words: Sequence[str] | None = None) -> int:
    """Run all steps, print a table, and move the results to dist/; return 1 if a step failed or was not done."""
    options = _parse_arguments(words)
    with tempfile.TemporaryDirectory(prefix="medgrape-release-") as place:
        workspace = Workspace(ROOT, Path(place), options.release)
        outcomes = []
        for outcome in run_steps(STEPS, workspace):
            outcomes.append(outcome)
            _print(f"{outcome.state:9} {outcome.step} ({outcome.seconds:.0f} s): {outcome.told}")
        good = all_passed(outcomes, allowed=AUDITS if options.allow_offline_audit else frozenset())
        _print(_table(outcomes))
        _keep(workspace.made, ROOT / ("dist" if good else "dist-refused"), outcomes)
        _print(_verdict(outcomes, good=good))
    return 0 if good else 1


def _parse_arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check a release before it is published.")
    parser.add_argument(
        "--release",
        action="store_true",
        help="the present commit will be released: require a date in the changelog and no uncommitted change",
    )
    parser.add_argument(
        "--allow-offline-audit", action="store_true", help="pass even if no vulnerability service answers"
    )
    return parser.parse_args(words)


def _verdict(outcomes: Sequence[Outcome], *, good: bool) -> str:
    undone = [one.step for one in outcomes if one.state is State.NOT_DONE]
    left = f", but these steps were not done: {', '.join(undone)}" if undone else ""
    return f"{'Fit for release' if good else 'Not fit for release'}{left}."


def _table(outcomes: Sequence[Outcome]) -> str:
    width = max(len(one.step) for one in outcomes)
    rows = (f"{one.step:{width}}  {one.state:9} {one.seconds:5.0f} s" for one in outcomes)
    return "\n".join(("", *rows, f"{'total':{width}}  {'':9} {sum(one.seconds for one in outcomes):5.0f} s", ""))


def _keep(made: Path, place: Path, outcomes: Sequence[Outcome]) -> None:
    """Move the results and a record of the check to their folder at once; refused packages are never in dist/."""
    made.mkdir(exist_ok=True)
    record = [asdict(one) for one in outcomes]
    (made / "release-check.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    draft = place.with_name(f".{place.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(made, draft)
    shutil.rmtree(place, ignore_errors=True)
    draft.rename(place)
    _print(f"{place.relative_to(ROOT)}/: {', '.join(sorted(file.name for file in place.iterdir()))}")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
