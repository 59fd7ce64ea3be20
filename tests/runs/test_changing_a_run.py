import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from medgrape.runs.checkpoint import SafetyThresholds, load_run
from medgrape.runs.manifest import RunError

STRICT = SafetyThresholds({}, 0.1, None, 0.1, 0.9, {}, {"name": "drawn_dataset"})


@pytest.fixture
def run(trained_run, tmp_path):
    shutil.copytree(trained_run, tmp_path / "run")
    return tmp_path / "run"


def beside(run):
    return sorted(path.name for path in run.parent.iterdir())


def test_a_run_changed_in_its_place_is_whole_and_leaves_nothing_beside_it(run):
    loaded = load_run(run)
    loaded.save_changed(replace(loaded.run, safety=STRICT), run)

    assert load_run(run).run.safety == STRICT
    assert beside(run) == ["run"]


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_change_that_fails_leaves_the_run_as_it_was(run, monkeypatch, fails_at):
    loaded, rename, seen = load_run(run), Path.rename, []

    def failing(self, target):
        seen.append(target)
        if len(seen) == fails_at:
            raise OSError(28, "No space left on device", str(target))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="No space"):
        loaded.save_changed(replace(loaded.run, safety=STRICT), run)

    assert load_run(run).run.safety is None
    assert beside(run) == ["run"]


def test_after_an_interrupted_change_the_error_names_the_folder_of_the_run(run):
    run.rename(run.with_name(".run.before"))
    with pytest.raises(RunError, match=r"whole, as .*\.run\.before: rename it back"):
        load_run(run)


def test_what_killed_changes_left_behind_does_not_stop_the_next_one(run):
    for left_over in (".run.changed", ".run.before"):
        run.with_name(left_over).mkdir()
        (run.with_name(left_over) / "something").write_text("old")
    loaded = load_run(run)
    loaded.save_changed(replace(loaded.run, safety=STRICT), run)

    assert load_run(run).run.safety == STRICT
    assert beside(run) == ["run"]


def test_nothing_is_saved_into_another_run(run):
    loaded = load_run(run)
    with pytest.raises(RunError, match="must not contain other files"):
        loaded.save_changed(loaded.run, run / "inside")
    assert load_run(run).manifest.files == loaded.manifest.files
