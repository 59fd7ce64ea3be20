"""Export of bulk readings."""

import csv
import json

import pyarrow.parquet as pq
import pytest

from medgrape.bulk.film_reader import Columns, FilmReading, Finding
from medgrape.bulk.listing import ListedFilm
from medgrape.bulk.results import Listing, Plan, results_in
from medgrape.datasets.sources.annotation_files import read_coco
from medgrape.errors import UserError
from medgrape.exchange.readings import ReadingsExport, write_readings
from medgrape.geometry import FilmSize

COLUMNS = Columns(("healthy", "tb"), ("cavity", "scar"), "0123456789abcdef")


def reading(seen, warnings=()):
    findings = (Finding(0.91, 12.5, 7.5, seen), Finding(-0.1, 1.5, 2.5, "not seen"))
    return FilmReading(FilmSize(96, 80), (0.3, 0.7), findings, tuple(warnings))


@pytest.fixture
def readings(tmp_path):
    """Two parts: films that were read, one whose name is a formula, and one that was refused."""
    folder = tmp_path / "readings"
    folder.mkdir()
    films = [ListedFilm(name, f"/{name}") for name in ("a.png", "=b.png", "c.png")]
    rows = [
        COLUMNS.read(films[0], reading("clearly seen", ["cut at the edge", "=small"])),
        COLUMNS.read(films[1], reading("perhaps")),
        COLUMNS.refused(films[2], "It is no film."),
    ]
    pq.write_table(COLUMNS.table(rows[:2]), folder / "part-00000.parquet")
    pq.write_table(COLUMNS.table(rows[2:]), folder / "part-00001.parquet")
    (tmp_path / "films").write_text("")
    Plan(model=COLUMNS.model, films=3, digest="0" * 16, part=2).write(folder, Listing(tmp_path / "films", 3, "0" * 16))
    return folder


def written(folder, out):
    results = results_in(folder)
    return write_readings(results.schema, results.batches, out)


def test_csv_has_a_row_for_each_film_and_the_digits_that_were_kept(readings, tmp_path):
    assert written(readings, tmp_path / "all.csv") == ReadingsExport(films=3, refused=1, points=2)
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        first, second, third = csv.DictReader(file)
    assert list(first) == COLUMNS.schema.names
    assert (first["film"], first["predicted"], first["probability_tb"]) == ("a.png", "tb", "0.7")
    assert (first["score_cavity"], first["x_cavity"], first["score_scar"]) == ("0.91", "12.5", "-0.1")
    assert first["warnings"] == "cut at the edge | =small"
    assert second["film"] == "'=b.png", "a spreadsheet must not compute a file's name"
    assert (third["status"], third["reason"], third["score_cavity"]) == ("refused", "It is no film.", "")


def test_coco_has_the_points_of_the_model_and_no_boxes(readings, tmp_path):
    written(readings, tmp_path / "points.json")
    content = json.loads((tmp_path / "points.json").read_text("utf-8"))
    assert [entry["file_name"] for entry in content["images"]] == ["a.png", "=b.png"]
    assert content["images"][0]["attributes"]["probability_tb"] == 0.7
    assert [entry["name"] for entry in content["categories"]] == ["cavity", "scar"]
    points = [
        (entry["image_id"], entry["category_id"], entry["keypoints"], entry["score"])
        for entry in content["annotations"]
    ]
    assert points == [(1, 1, [12.5, 7.5, 2], 0.91), (2, 1, [12.5, 7.5, 2], 0.91)]
    assert [entry["attributes"]["seen"] for entry in content["annotations"]] == ["clearly seen", "perhaps"]
    with pytest.raises(UserError, match="bbox"):
        read_coco(tmp_path / "points.json")


def test_incomplete_readings_are_refused_with_what_to_do(readings, tmp_path):
    (readings / "part-00001.parquet").unlink()
    with pytest.raises(UserError, match="1 of 2 parts are missing; give the same medgrape predict command again"):
        written(readings, tmp_path / "all.csv")
    with pytest.raises(UserError, match="holds no readings"):
        written(tmp_path, tmp_path / "all.csv")
    assert not (tmp_path / "all.csv").exists()
