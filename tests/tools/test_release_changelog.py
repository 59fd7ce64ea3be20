"""One version everywhere, and a changelog in order."""

from datetime import date
from pathlib import Path

import pytest
from release.changelog import check_changelog, check_citation, check_versions, read_changelog
from release.steps import RefusedError
from release.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
TODAY = date(2026, 11, 18)
TWO = "# Changes\n\n## 0.2.0 (2026-11-18)\n\n- More.\n\n## 0.1.0 (2026-10-01)\n\n### Added\n\n- All.\n"


def judged(text, version="0.2.0", *, release=False):
    check_changelog(read_changelog(text), version, release=release, today=TODAY)


def test_the_projects_own_versions_agree(tmp_path):
    assert check_versions(Workspace(ROOT, tmp_path)).startswith(Workspace(ROOT, tmp_path).version)


def test_a_changelog_in_order_may_be_released():
    judged(TWO, release=True)


def test_an_unreleased_section_is_fine_until_the_day_of_the_release():
    text = TWO.replace("(2026-11-18)", "(unreleased)")
    judged(text)
    with pytest.raises(RefusedError, match=r"## 0\.2\.0 \(2026-11-18\)"):
        judged(text, release=True)


def test_a_version_without_a_section_is_refused():
    with pytest.raises(RefusedError, match=r"a section for 0\.3\.0"):
        judged(TWO, "0.3.0")


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("0.1.0 (2026-10-01)", "0.3.0 (2026-10-01)"),
        ("0.1.0 (2026-10-01)", "0.2.0 (2026-10-01)"),
        ("0.1.0 (2026-10-01)", "0.1.0 (2026-12-01)"),
        ("0.1.0 (2026-10-01)", "0.1.0 (unreleased)"),
        ("0.1.0 (2026-10-01)", "0.1.0"),
        ("0.1.0 (2026-10-01)", "0.1.0 (2026-13-01)"),
        ("- All.", ""),
    ],
)
def test_a_changelog_out_of_order_is_refused(was, becomes):
    with pytest.raises(RefusedError):
        judged(TWO.replace(was, becomes))


def test_a_release_of_tomorrow_is_refused():
    with pytest.raises(RefusedError):
        judged(TWO.replace("2026-11-18", "2026-11-19"), release=True)


def test_a_citation_names_the_version_and_once_released_its_day():
    newest = read_changelog(TWO)[0]
    check_citation('version: 0.2.0\ndate-released: "2026-11-18"\n', newest)
    with pytest.raises(RefusedError):
        check_citation("version: 0.2.0\n", newest)
    with pytest.raises(RefusedError):
        check_citation("version: 0.1.0\ndate-released: 2026-11-18\n", newest)
