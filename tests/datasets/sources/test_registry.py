"""Sources are found by name, and each has its command."""

from typing import Annotated

import pytest
from typer import Typer
from typer.testing import CliRunner

from medgrape import plugins
from medgrape.cli.prepare import _command, app
from medgrape.datasets import sources
from medgrape.datasets.draft import Draft
from medgrape.datasets.sources import Option, built_in_sources, read_with_plugin, source
from medgrape.plugins import GROUPS, PluginError, built_in
from own_packages import on_path, written


def test_every_source_has_a_command_with_its_help():
    for known in built_in_sources():
        shown = CliRunner().invoke(app, [known.name, "--help"])
        assert shown.exit_code == 0
        assert known.help.split()[0] in shown.stdout
        assert "--allow-missing" in shown.stdout


def test_a_new_source_is_a_function_with_its_options(monkeypatch, tmp_path):
    monkeypatch.setitem(plugins._registered, "source", dict(built_in("source")))
    monkeypatch.setattr(sources, "built_in", built_in.__wrapped__)
    calls = []

    @source("clinic", help="Films of the clinic.", example="clinic films --out data", test=0.2)
    def read(folder, *, most: Annotated[int, Option("At most.", min=1)] = 3, **_: object) -> Draft:
        calls.append((folder, most))
        raise KeyError

    new = built_in_sources()[-1]
    assert (new.name, new.test) == ("clinic", 0.2)
    app_of_one = Typer()
    app_of_one.command()(_command(new))
    ended = CliRunner().invoke(app_of_one, [str(tmp_path), "--out", "x", "--most", "7"])
    assert isinstance(ended.exception, KeyError)
    assert calls == [(tmp_path, 7)]
    assert CliRunner().invoke(app_of_one, [str(tmp_path), "--out", "x", "--most", "0"]).exit_code == 2


def test_a_source_of_another_package_reads_like_the_others(tmp_path):
    code = "def part(folder):\n    raise ZeroDivisionError('oh')"
    package = written(tmp_path / "clinic", "clinic", {GROUPS["source"]: {"mine": "clinic:part"}}, code)
    with on_path(package), pytest.raises(PluginError, match=r"'mine' of clinic 1\.0 failed \(ZeroDivisionError: oh"):
        read_with_plugin("mine", tmp_path, {})
    with pytest.raises(PluginError, match="no source 'mine'"):
        read_with_plugin("mine", tmp_path, {})
