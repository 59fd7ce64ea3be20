"""Every block has a language, and a reason if it is not run, so no block escapes the tests."""

import re

import pytest
from document_blocks import PAGES, PARSED, ROOT, RUN, SHOWN, blocks, name, strays, without_blocks

PROGRAMS = "medgrape|make|pip|python|torchrun|docker|curl|git|srun|ray"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_fence_names_a_known_language(page):
    unknown = [f"{one.place}: {one.language!r}" for one in blocks(page) if one.language not in (*RUN, *PARSED, *SHOWN)]
    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_note_is_directly_above_a_fence_and_gives_a_reason(page):
    assert strays(page) == []
    loose = re.findall(r"<!--\s*(?:not.run|no run|slow|fails).*", without_blocks(page))
    read = [note for one in blocks(page) for note in one.notes]
    assert len(loose) == len(read), "a note is misspelt"
    for one in blocks(page):
        for note in ("not run", "fails"):
            assert one.notes.get(note, "because"), f"{one.place}: the note {note!r} gives no reason"


SAMPLE = ROOT / "docs/model-card.md"
"""Ends with a card for a hub, whose commands load a model with an invented name."""


@pytest.mark.parametrize("page", [page for page in PAGES if page != SAMPLE], ids=name)
def test_no_command_is_hidden_in_a_place_that_is_not_run(page):
    """Indented blocks, prompts and blocks of other languages contain no command."""
    prose = re.findall(rf"^(?: {{4,}}|\t|\$ |> \$ )(?:\$ )?(?:{PROGRAMS}) .*", without_blocks(page), re.MULTILINE)
    shown = [
        f"{one.place}: {line}"
        for one in blocks(page)
        if one.language not in RUN
        for line in re.findall(rf"^\s*(?:\$ )?(?:{PROGRAMS}) -*\w.*", one.text, re.MULTILINE)
        if one.language in ("text", "")
    ]
    assert prose + shown == []


def test_most_blocks_are_run(capsys):
    everything = [one for page in PAGES for one in blocks(page) if one.language in RUN]
    left_out = [one for one in everything if "not run" in one.notes]
    slow = [one for one in everything if "slow" in one.notes]
    with capsys.disabled():
        print(f"\n{len(everything)} blocks: {len(slow)} in the slow suite only, {len(left_out)} not run:")  # noqa: T201
        for one in left_out:
            print(f"  {one.place}: {one.notes['not run']}")  # noqa: T201
    nowhere = [one for one in left_out if not _runs_elsewhere(one)]
    assert everything
    assert len(nowhere) < len(everything) / 4


def _runs_elsewhere(block):
    """Whether the note names tests that run the block elsewhere, such as with a PACS."""
    named = re.findall(r"tests/[\w/.]+\w", block.notes["not run"])
    assert all((ROOT / test).exists() for test in named), block.place
    return bool(named)


def test_all_pages_are_checked():
    assert {ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs/how-to/reading.md"} <= set(PAGES)
