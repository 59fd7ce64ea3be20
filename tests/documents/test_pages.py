"""Every block of the README and the documents runs."""

import re

import pytest
from document_blocks import PAGES, Block, blocks, name
from sandbox import open_sandbox

LEFT_BEHIND = {
    "README.md": [
        "evidence.png",
        "demo/tb-quick-model-seed0-test/report.html",
    ],
    "docs/how-to/bulk-reading.md": ["readings/part-00000.parquet"],
    "docs/how-to/export.md": ["runs/tb-int8.onnx"],
    "docs/how-to/reading.md": ["evidence.png"],
    "docs/how-to/http.md": ["evidence.png"],
    "docs/how-to/serve.md": ["backup/medgrape.db"],
}
"""Files that must exist after the last block of a page."""


LONG = {
    "docs/how-to/audit.md",
    "docs/how-to/boxes.md",
    "docs/how-to/export.md",
    "docs/how-to/http.md",
    "docs/how-to/new-concepts.md",
    "docs/how-to/serve.md",
    "docs/tutorial/add-a-finding.md",
    "docs/tutorial/first-reading.md",
    "docs/tutorial/own-csv.md",
}
"""Pages that take long even without their slow blocks; only the slow suite runs them."""


def with_blocks(*, slow: bool):
    """Return the pages with something to run in the fast or in the slow suite."""
    if not slow:
        return [page for page in PAGES if name(page) not in LONG and any(one.runs for one in blocks(page))]
    return [
        page for page in PAGES if name(page) in LONG or any(one.runs and "slow" in one.notes for one in blocks(page))
    ]


def made_by(wanted: list[Block]) -> set[str]:
    """Return the folders that the commands of the page make."""
    text = "".join(one.text for one in wanted if one.language == "bash")
    return set(re.findall(r"--out[ =](\S+)", text))


def run(page, wanted, folder, props):
    sandbox = open_sandbox(folder, props, made_by(wanted))
    try:
        for block in wanted:
            sandbox.run(block)
        missing = [file for file in LEFT_BEHIND.get(name(page), ()) if not (sandbox.folder / file).is_file()]
        assert missing == []
    finally:
        sandbox.shell.servers.stop_all()


@pytest.mark.parametrize("page", with_blocks(slow=False), ids=name)
def test_a_page_runs_as_it_is_written(page, short_folder, props):
    wanted: list[Block] = [one for one in blocks(page) if one.runs and "slow" not in one.notes]
    run(page, wanted, short_folder, props)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", with_blocks(slow=True), ids=name)
def test_a_page_runs_with_its_slow_blocks(page, short_folder, props):
    run(page, [one for one in blocks(page) if one.runs], short_folder, props)
