"""Whatever is wrong on a page is told with its page, its line, its command and what that said."""

import pytest
from document_blocks import ROOT, Block, blocks, strays
from left_running import Servers
from sandbox import Sandbox
from typed_shell import Shell

PAGE = ROOT / "docs/how-to/reading.md"


@pytest.fixture
def sandbox(short_folder):
    """Without any props."""
    (short_folder / "page").mkdir()
    desk = short_folder / "desk"
    return Sandbox(short_folder / "page", Shell(short_folder / "page", desk, Servers(desk), short_folder))


def block(language, text, **notes):
    return Block(PAGE, 7, language, text, notes)


def refused(sandbox, *wrong, **notes):
    """What is said of a block; skipping it would skip the test, too, and nobody would notice."""
    with pytest.raises((pytest.fail.Exception, pytest.skip.Exception)) as told:
        sandbox.run(block(*wrong, **notes))
    assert told.type is pytest.fail.Exception, told.value
    return str(told.value)


def test_a_command_that_fails_is_told_with_its_place_and_its_words(sandbox):
    told = refused(sandbox, "bash", "echo before\nmedgrape film lost.png\necho after\n")
    assert "docs/how-to/reading.md:7" in told
    assert "exit code 2" in told
    assert "before" in told
    assert "lost.png: cannot be opened" in told
    assert "line 2: medgrape film lost.png" in told
    assert "\nafter\n" not in told.split("before")[1]


def test_a_traceback_tells_the_line_of_the_page(sandbox):
    assert 'reading.md", line 8' in refused(sandbox, "python", "x = 1\nx / 0\n")


def test_a_pipe_that_breaks_and_a_variable_that_no_command_gave_are_failures(sandbox):
    assert "exit code" in refused(sandbox, "bash", "medgrape nonsense | cat\n")
    assert "exit code" in refused(sandbox, "bash", "found=$(medgrape nonsense)\necho $found\n")


@pytest.mark.parametrize("text", ["medgrpe film chest.png\n", "medgrpe tour | cat\n", 'echo "$(medgrpe tour)"\n'])
def test_a_mistyped_program_is_a_failure_and_no_reason_to_skip_the_page(sandbox, monkeypatch, text):
    monkeypatch.delenv("CI", raising=False)
    assert "no program 'medgrpe'" in refused(sandbox, "bash", text)
    assert "no program 'medgrpe'" in refused(sandbox, "bash", text, fails="shown")


def test_a_page_is_left_untried_for_lack_of_a_program_of_the_system_but_not_where_every_change_is_tested(
    sandbox, monkeypatch
):
    monkeypatch.delenv("CI", raising=False)
    without = "PATH=/nowhere\njq . films.json\n"
    with pytest.raises(pytest.skip.Exception, match="needs jq"):
        sandbox.run(block("bash", without))
    monkeypatch.setenv("CI", "true")
    assert "no program 'jq'" in refused(sandbox, "bash", without)


def test_variables_folders_and_names_stay_from_block_to_block(sandbox):
    sandbox.run(block("bash", "mkdir below && cd below\nword='two words'\n"))
    sandbox.run(block("bash", 'test "$word" = "two words"\ntest "$(basename "$PWD")" = below\n'))
    sandbox.run(block("python", "import math\nhalf = math.pi / 2\n"))
    sandbox.run(block("python", "assert math.sin(half) == 1\nassert __name__ == '__main__'\n"))


def test_a_block_that_is_to_fail_must_fail(sandbox):
    sandbox.run(Block(PAGE, 7, "bash", "false\n", {"fails": "shown"}))
    with pytest.raises(pytest.fail.Exception, match="is to fail"):
        sandbox.run(Block(PAGE, 7, "bash", "true\n", {"fails": "shown"}))


def test_a_block_that_names_its_file_is_that_file(sandbox):
    sandbox.run(block("toml", "# serve.toml: what a server reads\nworkers = 3\n"))
    assert "workers = 3" in (sandbox.folder / "serve.toml").read_text()


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("toml", "[backbone]\nnam = 'resnet'\n"),
        ("toml", "workers = many\n"),
        ("toml", "[servers.hospital]\nuser = 'no such key'\n"),
        ("json", '{"film": ...}\n'),
        ("yaml", "services: [\n"),
    ],
)
def test_settings_and_data_that_nobody_could_use_are_refused(sandbox, language, text):
    assert "reading.md:7" in refused(sandbox, language, text)


def test_make_tells_its_plan_and_knows_its_targets(sandbox):
    sandbox.run(block("bash", "make check test\n"))
    assert "No rule to make target" in refused(sandbox, "bash", "make coffee\n")


def test_notes_are_read_and_those_that_stand_elsewhere_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- slow: why -->\n\ntext\n\n1. item\n\n   <!-- not run: no S3 -->\n   ```bash\n   ls\n   ```\n")
    (found,) = blocks(page)
    assert (found.text, found.notes, found.runs, found.line) == ("ls\n", {"not run": "no S3"}, False, 9)
    assert strays(page) == [1]
