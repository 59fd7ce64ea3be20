"""What others wrote reaches the terminal as text, and as nothing else."""

import pytest

from medgrape.cli.console import note, print_error, table

ODD = "\x1b[2J[/A1] [red]7[/red] \x9b31m \x07\r\nover"
SHOWN = r"\x1b[2J[/A1] [red]7[/red] \x9b31m \x07\x0d\x0aover"


@pytest.fixture
def printed(capsys, monkeypatch):
    """Who prints, and what then stood on both streams."""
    from medgrape.cli import console

    def asked(act):
        for name in ("out", "err"):
            monkeypatch.setattr(console, name, console.Console(stderr=name == "err", width=140, highlight=False))
        act()
        said = capsys.readouterr()
        return said.out + said.err

    return asked


def test_cells_of_a_table_are_shown_letter_by_letter(printed):
    said = printed(lambda: table(f"server {ODD}", ("study", ODD), [("1.2.3", ODD), ("4", 5)]))
    assert said.count(SHOWN) == 3, "in the title, above its column and in its cell"
    assert "\x1b" not in said
    assert "\x9b" not in said


@pytest.mark.parametrize("told", [note, print_error])
def test_a_sentence_with_a_strange_name_in_it_stays_one_line_without_orders(printed, told):
    said = printed(lambda: told(f"{ODD} cannot be read."))
    assert said.endswith(f"{SHOWN} cannot be read.\n")
    assert said.count("\n") == 1
