"""What a package index shows of the README: every link and picture is absolute and exists in the repository."""

import re
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling is in the extra dev")

from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def metadata():
    return ProjectMetadata(str(ROOT), PluginManager()).core


def targets(text):
    return re.findall(r"\]\(([^)\s]+)\)", text)


def test_a_package_index_sees_no_relative_link(metadata):
    found = targets(metadata.readme)
    assert found
    assert [target for target in found if not target.startswith("https://")] == []
    assert metadata.readme_content_type == "text/markdown"


def test_every_link_into_the_repository_leads_to_a_file_that_exists(metadata):
    repository = metadata.urls["Repository"]
    inside = [target.removeprefix(repository) for target in targets(metadata.readme) if target.startswith(repository)]
    assert len(inside) == len([one for one in targets((ROOT / "README.md").read_text("utf-8")) if ":" not in one])
    for target in inside:
        kind, _, path = target.split("#")[0].removeprefix("/").partition("/main/")
        assert (ROOT / path).is_dir() if kind == "tree" else (ROOT / path).is_file(), target


def test_pictures_lead_to_files_and_not_to_pages(metadata):
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", metadata.readme)
    assert pictures
    assert all("/raw/" in picture for picture in pictures)
