"""The report in the documents is what the results beside it make, and not edited by hand."""

import shutil
from pathlib import Path

import pytest

from medgrape.paper.reproduce import report_again
from medgrape.paper.suites import SUITES

PAGE = Path(__file__).resolve().parents[2] / "docs/reproduced"


@pytest.mark.slow
def test_the_committed_report_is_made_from_the_committed_results(tmp_path):
    for name in ("results", "pictures"):
        shutil.copytree(PAGE / name, tmp_path / name)
    shutil.copy(PAGE / "suite.json", tmp_path)
    report = report_again(tmp_path)
    assert [table["suite"] for table in report["tables"]] == list(SUITES), "every table of the paper is there"
    assert not [warning for warning in report["warnings"] if "not done" in warning]
    made = {path.name: path.read_bytes() for path in (tmp_path / "report").iterdir()}
    committed = {path.name: path.read_bytes() for path in (PAGE / "report").iterdir()}
    assert sorted(made) == sorted(committed)
    differing = [name for name, content in made.items() if content != committed[name]]
    assert differing == [], "make report, and look at what changed"
