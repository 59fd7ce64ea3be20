"""Look at a release with all eyes before anybody gets it: ``make release-check``.

Builds what is committed, installs it where there is no compiler and no Node.js, runs the demo there, lists what it
brings along and under which licences, and asks about known weaknesses. docs/how-to/releasing.md
tells what each step shows.
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
from release.bench import Bench
from release.bill import write_bill
from release.changelog import check_versions
from release.containers import lint
from release.emptiness import install, version
from release.licence_report import report_licences
from release.packages import build, look_inside
from release.steps import Outcome, State, Step, ends_well, performed
from release.trial import demo, room

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
    Step("bill of materials", write_bill, ("install",)),
    Step("licences", report_licences, ("install",)),
    Step("audit", audit_packages, ("install",)),
    Step("audit of the page", audit_page, ("build",)),
)
AUDITS = frozenset({"audit", "audit of the page"})


def main(words: Sequence[str] | None = None) -> int:
    """All steps, a table, and what was made in dist/; 1 if anything failed or was left undone."""
    told = _arguments(words)
    with tempfile.TemporaryDirectory(prefix="medgrape-release-") as place:
        bench = Bench(ROOT, Path(place), told.release)
        outcomes = []
        for outcome in performed(STEPS, bench):
            outcomes.append(outcome)
            _say(f"{outcome.state:9} {outcome.step} ({outcome.seconds:.0f} s): {outcome.told}")
        good = ends_well(outcomes, allowed=AUDITS if told.allow_offline_audit else frozenset())
        _say(_table(outcomes))
        _keep(bench.made, ROOT / ("dist" if good else "dist-refused"), outcomes)
        _say(_verdict(outcomes, good=good))
    return 0 if good else 1


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Look at a release before anybody gets it.")
    parser.add_argument(
        "--release", action="store_true", help="this very commit: dated in the changelog, nothing uncommitted"
    )
    parser.add_argument(
        "--allow-offline-audit", action="store_true", help="end well although no service for known weaknesses answers"
    )
    return parser.parse_args(words)


def _verdict(outcomes: Sequence[Outcome], *, good: bool) -> str:
    undone = [one.step for one in outcomes if one.state is State.NOT_DONE]
    left = f", but nobody knows about: {', '.join(undone)}" if undone else ""
    return f"{'Fit for release' if good else 'Not fit for release'}{left}."


def _table(outcomes: Sequence[Outcome]) -> str:
    width = max(len(one.step) for one in outcomes)
    rows = (f"{one.step:{width}}  {one.state:9} {one.seconds:5.0f} s" for one in outcomes)
    return "\n".join(("", *rows, f"{'together':{width}}  {'':9} {sum(one.seconds for one in outcomes):5.0f} s", ""))


def _keep(made: Path, place: Path, outcomes: Sequence[Outcome]) -> None:
    """Put what was made in its place, whole, with a record of the check; refused packages never lie in dist/."""
    made.mkdir(exist_ok=True)
    record = [asdict(one) for one in outcomes]
    (made / "release-check.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    draft = place.with_name(f".{place.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(made, draft)
    shutil.rmtree(place, ignore_errors=True)
    draft.rename(place)
    _say(f"{place.relative_to(ROOT)}/: {', '.join(sorted(file.name for file in place.iterdir()))}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
