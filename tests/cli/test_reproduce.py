import json

import pytest

from command_line import medgrape


def test_without_a_suite_the_suites_are_listed(tmp_path):
    listed = medgrape("reproduce", cwd=tmp_path).stdout
    named = json.loads(medgrape("reproduce", "--json", cwd=tmp_path).stdout)
    assert {"real-films", "all", "report", "modules", "safety-by-concept"} <= set(named)
    assert all(name in listed for name in named)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("real-film",), "did you mean 'real-films'"),
        (("module", "--data", "."), "did you mean 'modules'"),
        (("modules",), "name a prepared data set with --data DIR"),
        (("all", "heads", "--data", "."), "all stands alone"),
        (("report", "heads"), "report stands alone"),
        (("report",), "run some suites there first"),
        (("report", "--engine", "ray"), "report runs on this machine"),
        (("modules", "--data", ".", "--address", "127.0.0.1:1"), "add --engine ray"),
        (("modules", "--data", "nowhere"), "nowhere"),
        (("modules", "--data", ".", "--config", "none.toml"), "none.toml"),
        (("real-films", "--seeds", "0,one"), "whole numbers with commas"),
        (("real-films", "--seeds", "-1"), "whole numbers with commas"),
        (("real-films", "--variant", "recepi"), "did you mean 'recipe'"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(words, message, tmp_path):
    result = medgrape("reproduce", *words, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
