"""The commands ``medgrape boxes`` and ``medgrape readings``."""

import json
import subprocess
import sys

import pytest

from medgrape.datasets.dataset import Dataset
from tool_exports import label_studio, rectangle, task


@pytest.fixture
def run(tmp_path):
    def typed(*words):
        command = [sys.executable, "-m", "medgrape", *map(str, words)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return typed


def test_boxes_are_exported_and_others_are_imported(run, drawn_dataset, tmp_path):
    result = run("boxes", "export", drawn_dataset, "--out", "boxes.json", "--json")
    assert result.returncode == 0, result.stderr
    before = Dataset.load(drawn_dataset)
    assert json.loads(result.stdout) == {"films": 48, "marks": len(before.boxes), "out": "boxes.json"}
    film = next(film for film in before.films if film.path)
    name = f"/data/upload/1/abcd1234-{film.path.rpartition('/')[2]}"
    new = rectangle(10, 10, 20, 20, "Active tuberculosis", size=(64, 64))
    (tmp_path / "project.json").write_text(label_studio(task(name, [new])))
    added = run("boxes", "import", drawn_dataset, "project.json", "--out", "more")
    assert added.returncode == 0, added.stderr
    assert "note: boxes of Label Studio: 1 new" in added.stdout
    assert len(Dataset.load(tmp_path / "more").boxes) == len(before.boxes) + 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("boxes", "export", "WARD", "--out", "boxes.xml"), "--out takes a .json file for COCO or a .csv file"),
        (("boxes", "import", "WARD", "bad.json", "--out", "new"), "is no COCO file of boxes"),
        (("boxes", "collect", "--room", "mistyped", "--out", "drawn.json"), "mistyped is no reading room"),
        (("readings", "export", "WARD", "--out", "all.csv"), "holds no readings"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing_behind(run, drawn_dataset, tmp_path, words, sentence):
    (tmp_path / "bad.json").write_text("{")
    result = run(*(drawn_dataset if word == "WARD" else word for word in words))
    assert (result.returncode, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bad.json"]
