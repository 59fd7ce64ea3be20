import json
import sys
from dataclasses import replace
from importlib import import_module

import pytest
from typer.testing import CliRunner

from benchmarks import commands, suites
from benchmarks.commands import app
from benchmarks.comparing import Comparison, compare, differences
from benchmarks.ratio import Measured, Ratio
from benchmarks.results import Outcome, Results, Row, machine
from benchmarks.suites import SUITES, Suite, measured, measured_apart
from benchmarks.tables import amount, figure, markdown
from medgrape.errors import UserError


def ratio(value: float, spread: float = 0.0, **changed: object) -> Ratio:
    rounds = [value - spread, value, value, value, value + spread]
    return replace(Ratio("a thing", "another way", Measured(rounds), Measured([1.0] * 5), 2.0), **changed)


def results(*ratios: Ratio, suite: str = "head", not_run: str | None = None) -> Results:
    return Results(machine(), (Outcome(suite, tuple(Row.of(one) for one in ratios), 1.0, not_run),))


@pytest.fixture
def two_suites(monkeypatch):
    """A suite that works and one that lacks something after its first row."""

    def works(rounds):
        yield ratio(float(rounds))

    def lacks(_rounds):
        yield ratio(3.0)
        raise UserError("It needs: pip install something.")

    monkeypatch.setattr(suites, "works", works, raising=False)
    monkeypatch.setattr(suites, "lacks", lacks, raising=False)
    found = (Suite("works", "It works.", "suites:works", 1, 1), Suite("lacks", "It lacks.", "suites:lacks", 1, 1))
    for module in (suites, commands):
        monkeypatch.setattr(module, "SUITES", found)
    monkeypatch.setattr(commands, "measured_apart", measured)  # a process of its own would not know them
    return found


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_suite_of_the_table_is_there_and_is_a_command(suite):
    module, function = suite.function.split(":")
    assert callable(getattr(import_module(f"benchmarks.{module}"), function))
    assert suite.rounds >= suite.fewest
    assert f"python -m benchmarks {suite.name}" in CliRunner().invoke(app, [suite.name, "--help"]).output.replace(
        "\n", " "
    )


def test_a_suite_that_lacks_something_says_so_and_keeps_what_it_measured_before(two_suites):
    outcome = measured(two_suites[1])
    assert [row.value for row in outcome.rows] == [3.0]
    assert outcome.not_run == "It needs: pip install something."


@pytest.mark.slow
def test_a_suite_runs_in_a_process_of_its_own_and_tells_what_it_lacks_or_how_it_ended():
    lacking = measured_apart(next(suite for suite in SUITES if suite.name == "faithfulness"))
    assert lacking.rows or "pip install quantus" in str(lacking.not_run)
    assert "code 2" in str(measured_apart(Suite("nothing", "Nothing.", "nothing:nothing", 1)).not_run)


def test_a_package_that_is_not_there_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "benchmarks.films", None)
    films = next(suite for suite in SUITES if suite.name == "films")
    assert "pip install 'medgrape[dicom]'" in str(measured(films).not_run)


@pytest.mark.slow
def test_films_are_timed_against_pillow_pydicom_the_cache_and_a_promise():
    outcome = measured(next(suite for suite in SUITES if suite.name == "films"), 3)
    assert {row.alternative for row in outcome.rows} == {
        "Pillow alone",
        "pydicom alone",
        "decoding again",
        "60 films/s",
    }


@pytest.mark.usefixtures("two_suites")
def test_all_lists_what_was_missed_and_what_was_not_run_and_fails_only_if_asked_to():
    outcome = CliRunner().invoke(app, ["all"])
    assert outcome.exit_code == 0
    assert "missed: lacks: a thing, against another way: 3, not at most 2" in outcome.output.replace("\n", " ")
    assert "not run: lacks: It needs: pip install something." in outcome.output
    assert CliRunner().invoke(app, ["all", "--strict"]).exit_code == 1
    assert CliRunner().invoke(app, ["all", "--skip", "lacks", "--strict"]).exit_code == 0


@pytest.mark.usefixtures("two_suites")
def test_all_of_it_can_be_saved_shown_and_compared_with(tmp_path):
    kept = tmp_path / "speed.json"
    outcome = CliRunner().invoke(app, ["all", "--only", "works", "--save", str(kept), "--json"])
    assert json.loads(outcome.stdout)["suites"] == json.loads(kept.read_text())["suites"]
    assert [path.name for path in tmp_path.iterdir()] == ["speed.json"]

    again = CliRunner().invoke(app, ["all", "--only", "works", "--compare", str(kept), "--json"])
    assert [one["verdict"] for one in json.loads(again.stdout)["compared"]] == ["within noise"]
    assert "| works | a thing |" in CliRunner().invoke(app, ["show", str(kept), "--markdown"]).output


@pytest.mark.usefixtures("two_suites")
def test_a_suite_that_does_not_exist_is_refused_by_name():
    outcome = CliRunner().invoke(app, ["all", "--only", "heads"])
    assert isinstance(outcome.exception, UserError)
    assert "works, lacks" in str(outcome.exception)


@pytest.mark.usefixtures("two_suites")
@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1, "machine": {}, "suites": [{"suite": "head"}]}'])
def test_a_file_that_nobody_saved_is_refused_before_anything_is_measured(content, tmp_path):
    (tmp_path / "other.json").write_text(content)
    outcome = CliRunner().invoke(app, ["all", "--compare", str(tmp_path / "other.json")])
    assert isinstance(outcome.exception, UserError)
    assert "a thing" not in outcome.output


def test_what_is_saved_is_read_back_as_it_was(tmp_path):
    kept = results(ratio(1.5, 0.1), ratio(30.0, 1.0, at_most=False, unit="MB"), not_run="It needs Quantus.")
    kept.save(tmp_path / "speed.json")
    assert Results.load(tmp_path / "speed.json") == kept


@pytest.mark.parametrize(
    ("then", "now", "verdict"),
    [
        (ratio(1.0, 0.01), ratio(1.2, 0.01), "slower"),
        (ratio(1.0, 0.01), ratio(0.8, 0.01), "faster"),
        (ratio(1.0, 0.2), ratio(1.2, 0.2), "within noise"),
        (ratio(1.0, 0.001), ratio(1.02, 0.001), "within noise"),
    ],
    ids=["dearer", "cheaper", "spreads overlap", "two per cent"],
)
def test_only_spreads_that_part_by_more_than_a_little_are_a_change(then, now, verdict):
    assert [one.verdict for one in compare(results(then), results(now))] == [verdict]


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_row_of_few_rounds_is_never_called_a_change_however_far_it_moved(rounds):
    then, now = (
        results(Ratio("a thing", "another way", Measured([v] * rounds), Measured([1.0] * rounds), 2.0))
        for v in (1.0, 0.5)
    )
    assert compare(then, now)[0].verdict == "too few rounds"


def test_a_gain_that_grew_is_faster():
    then, now = (results(ratio(value, at_most=False)) for value in (1.0, 0.5))  # ours takes half of what it took
    found = compare(then, now)[0]
    assert found.verdict == "faster"
    assert found.change == pytest.approx(-0.5)


def test_rows_that_only_one_of_them_has_are_told_and_suites_that_did_not_run_now_are_not():
    old, new = ratio(1.0, what="old"), ratio(1.0, what="new")
    assert [(one.row.what, one.verdict) for one in compare(results(old), results(new))] == [
        ("new", "new"),
        ("old", "not measured"),
    ]
    assert compare(results(old, suite="films"), results(new))[0].verdict == "new"
    assert len(compare(results(old, suite="films"), results(new))) == 1


def test_another_machine_is_told():
    here = results(ratio(1.0))
    there = replace(here, machine=here.machine | {"processor": "an abacus"})
    assert "abacus" in differences(there, here)[0]
    assert differences(here, here) == []


def test_a_comparison_of_nothing_is_a_mistake_of_ours():
    with pytest.raises(ValueError, match="nothing"):
        _ = Comparison("head", None, None).row


def test_figures_are_told_with_the_digits_that_matter():
    assert [figure(value) for value in (1.0187, 0.0471, 33.333, 1234.5)] == ["1.019", "0.0471", "33.3", "1,234"]
    assert [amount(value, "s") for value in (2.5, 0.0042, 3e-6)] == ["2.5 s", "4.2 ms", "3 µs"]
    assert amount(48.25, "MB") == "48.2 MB"


def test_what_could_not_be_run_stands_in_the_markdown_table_too():
    outcome = markdown(results(ratio(1.0), not_run="It needs Quantus."))
    assert "| head | not run: It needs Quantus. |" in outcome
    assert machine()["processor"] in outcome
