"""Text from files and servers is printed without control characters and markup."""

import pytest

from medgrape.cli.console import note, print_error, table

ODD = "\x1b[2J[/A1] [red]7[/red] \x9b31m \x07\r\nover"
SHOWN = r"\x1b[2J[/A1] [red]7[/red] \x9b31m \x07\x0d\x0aover"


@pytest.fixture
def printed(capsys, monkeypatch):
    """Return a function that calls another one and returns what it printed."""
    from medgrape.cli import console

    def asked(act):
        for name in ("out", "err"):
            monkeypatch.setattr(console, name, console.Console(stderr=name == "err", width=140, highlight=False))
        act()
        result = capsys.readouterr()
        return result.out + result.err

    return asked


def test_cells_of_a_table_are_printed_as_plain_text(printed):
    result = printed(lambda: table(f"server {ODD}", ("study", ODD), [("1.2.3", ODD), ("4", 5)]))
    assert result.count(SHOWN) == 3, "in the title, above its column and in its cell"
    assert "\x1b" not in result
    assert "\x9b" not in result


@pytest.mark.parametrize("message", [note, print_error])
def test_a_message_with_control_characters_stays_one_line(printed, message):
    result = printed(lambda: message(f"{ODD} cannot be read."))
    assert result.endswith(f"{SHOWN} cannot be read.\n")
    assert result.count("\n") == 1
