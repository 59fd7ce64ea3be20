"""A failure on a page names the page, the line, the command and its output."""

import pytest
from background_servers import Servers
from document_blocks import ROOT, Block, blocks, strays
from page_shell import Shell
from sandbox import Sandbox

PAGE = ROOT / "docs/how-to/reading.md"


@pytest.fixture
def sandbox(short_folder):
    """Return a sandbox without files."""
    (short_folder / "page").mkdir()
    work = short_folder / "work"
    return Sandbox(short_folder / "page", Shell(short_folder / "page", work, Servers(work), short_folder))


def block(language, text, **notes):
    return Block(PAGE, 7, language, text, notes)


def failure_of(sandbox, *wrong, **notes):
    """Return the failure message of a block; a skipped block is an error, as it would skip this test unnoticed."""
    with pytest.raises((pytest.fail.Exception, pytest.skip.Exception)) as error:
        sandbox.run(block(*wrong, **notes))
    assert error.type is pytest.fail.Exception, error.value
    return str(error.value)


def test_a_failing_command_is_reported_with_its_place_and_output(sandbox):
    message = failure_of(sandbox, "bash", "echo before\nmedgrape film lost.png\necho after\n")
    assert "docs/how-to/reading.md:7" in message
    assert "exit code 2" in message
    assert "before" in message
    assert "lost.png: cannot be opened" in message
    assert "line 2: medgrape film lost.png" in message
    assert "\nafter\n" not in message.split("before")[1]


def test_a_traceback_shows_the_line_of_the_page(sandbox):
    assert 'reading.md", line 8' in failure_of(sandbox, "python", "x = 1\nx / 0\n")


def test_a_failing_pipe_and_a_failing_substitution_are_failures(sandbox):
    assert "exit code" in failure_of(sandbox, "bash", "medgrape nonsense | cat\n")
    assert "exit code" in failure_of(sandbox, "bash", "found=$(medgrape nonsense)\necho $found\n")


@pytest.mark.parametrize("text", ["medgrpe film chest.png\n", "medgrpe tour | cat\n", 'echo "$(medgrpe tour)"\n'])
def test_a_mistyped_program_fails_the_page_instead_of_skipping_it(sandbox, monkeypatch, text):
    monkeypatch.delenv("CI", raising=False)
    assert "no program 'medgrpe'" in failure_of(sandbox, "bash", text)
    assert "no program 'medgrpe'" in failure_of(sandbox, "bash", text, fails="shown")


def test_a_missing_system_program_skips_the_page_except_in_ci(sandbox, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    without = "PATH=/nowhere\njq . films.json\n"
    with pytest.raises(pytest.skip.Exception, match="needs jq"):
        sandbox.run(block("bash", without))
    monkeypatch.setenv("CI", "true")
    assert "no program 'jq'" in failure_of(sandbox, "bash", without)


def test_variables_folder_and_names_are_kept_between_blocks(sandbox):
    sandbox.run(block("bash", "mkdir below && cd below\nword='two words'\n"))
    sandbox.run(block("bash", 'test "$word" = "two words"\ntest "$(basename "$PWD")" = below\n'))
    sandbox.run(block("python", "import math\nhalf = math.pi / 2\n"))
    sandbox.run(block("python", "assert math.sin(half) == 1\nassert __name__ == '__main__'\n"))


def test_a_block_marked_as_failing_must_fail(sandbox):
    sandbox.run(Block(PAGE, 7, "bash", "false\n", {"fails": "shown"}))
    with pytest.raises(pytest.fail.Exception, match="should fail"):
        sandbox.run(Block(PAGE, 7, "bash", "true\n", {"fails": "shown"}))


def test_a_block_with_a_file_name_is_written_to_that_file(sandbox):
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
def test_invalid_settings_and_data_are_refused(sandbox, language, text):
    assert "reading.md:7" in failure_of(sandbox, language, text)


def test_make_prints_its_plan_and_knows_its_targets(sandbox):
    sandbox.run(block("bash", "make check test\n"))
    assert "No rule to make target" in failure_of(sandbox, "bash", "make coffee\n")


def test_notes_are_read_and_misplaced_ones_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- slow: why -->\n\ntext\n\n1. item\n\n   <!-- not run: no S3 -->\n   ```bash\n   ls\n   ```\n")
    (found,) = blocks(page)
    assert (found.text, found.notes, found.runs, found.line) == ("ls\n", {"not run": "no S3"}, False, 9)
    assert strays(page) == [1]
