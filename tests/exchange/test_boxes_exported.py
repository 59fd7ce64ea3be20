"""Export of boxes, and import of the exported files."""

import csv
import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medgrape.concepts import Concept, ConceptSet
from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord, Source, SplitRule
from medgrape.datasets.draft import IncompleteSourceError, finish
from medgrape.datasets.sources.annotated import import_boxes, read_folder
from medgrape.datasets.sources.annotation_files import read_coco
from medgrape.errors import UserError
from medgrape.exchange.boxes import BoxExport, ExportedFilm, ExportedMark, boxes_of, export_boxes
from medgrape.geometry import Box, FilmSize
from tool_exports import box, cvat, image, label_studio, rectangle, task

SIZE = FilmSize(3000, 2500)
places = st.tuples(st.floats(0, 2998), st.floats(0, 2498), st.floats(0.001, 3000), st.floats(0.001, 2500)).map(
    lambda xywh: Box(xywh[0], xywh[1], min(xywh[0] + xywh[2], 3000.0), min(xywh[1] + xywh[3], 2500.0))
)


@pytest.fixture
def prepared(films_folder, tmp_path):
    """A data set: six films, two of the same name in two folders, four boxes, and a patient's number."""
    for number, folder in enumerate(("p1", "p2"), 6):
        (films_folder / folder).mkdir()
        (films_folder / f"film{number}.png").rename(films_folder / folder / "Röntgen pa.png")
    concepts = ConceptSet((Concept.named("cavity"), Concept.named("pleural_fluid")))
    paths = [*(f"film{number}.png" for number in range(6)), "p1/Röntgen pa.png", "p2/Röntgen pa.png"]
    drawn = [
        ("film0.png", "cavity", Box(1.25, 2, 30, 40)),
        ("film0.png", "cavity", Box(50, 2, 60, 9)),
        ("film1.png", "pleural_fluid", Box(0, 0, 96, 80)),
        ("p1/Röntgen pa.png", "cavity", Box(5, 5, 9, 9)),
    ]
    films = tuple(_film(path, {concept for name, concept, _ in drawn if name == path}, concepts) for path in paths)
    boxes = tuple(DrawnBox(path.removesuffix(".png"), concept, place) for path, concept, place in drawn)
    source = Source("table", str(films_folder), {"films.csv": "0" * 64}, ("made for tests",))
    folder = tmp_path / "prepared"
    folder.mkdir()
    Dataset("drawn_dataset", ("no_finding", "finding"), concepts, films_folder, films, boxes, source).save(folder)
    return folder


def _film(path, shown, concepts):
    labels = {name: name in shown for name in concepts.names}
    class_name = "finding" if shown else "no_finding"
    return FilmRecord(
        path.removesuffix(".png"), path, class_name, "MRN-4711", FilmSize(96, 80), labels, sex="F", age=61
    )


def all_boxes(dataset):
    return sorted((drawn.film, drawn.concept, drawn.box.corners) for drawn in dataset.boxes)


@given(place=places)
def test_a_box_comes_back_from_coco_to_the_last_bit(tmp_path_factory, place):
    file = tmp_path_factory.getbasetemp() / "one.json"
    BoxExport(
        "one", ("cavity",), (ExportedFilm("a", "a.png", SIZE),), (ExportedMark("a", "box", "cavity", place),)
    ).write(file)
    (film,) = read_coco(file).films
    assert film.marks[0].corners == place.corners


def test_a_set_comes_back_from_coco_with_the_same_boxes(prepared, films_folder, tmp_path):
    export_boxes(prepared, tmp_path / "boxes.json")
    draft = read_folder(films_folder, tmp_path / "boxes.json")
    again = finish(draft, tmp_path / "again", SplitRule(0.2, 0), allow_missing=False)
    before = Dataset.load(prepared)
    assert all_boxes(Dataset.load(tmp_path / "again")) == all_boxes(before)
    assert [film.labels for film in again.films] == [film.labels for film in before.films]
    assert [film.class_name for film in again.films] == [film.class_name for film in before.films]


def test_coco_holds_what_coco_asks_for_and_nothing_of_the_patient(prepared, tmp_path):
    export_boxes(prepared, tmp_path / "boxes.json")
    text = (tmp_path / "boxes.json").read_text("utf-8")
    content = json.loads(text)
    assert [entry["name"] for entry in content["categories"]] == ["cavity", "pleural_fluid"]
    assert content["images"][6] == {
        "id": 7, "file_name": "p1/Röntgen pa.png", "width": 96, "height": 80,
        "attributes": {"split": "train", "class": "finding"},
    }  # fmt: skip
    first = content["annotations"][0]
    assert (first["bbox"], first["area"], first["iscrowd"]) == ([1.25, 2, 28.75, 38], 28.75 * 38, 0)
    assert "other_annotations" not in content
    assert "MRN-4711" not in text


def test_csv_has_a_row_for_each_box(prepared, tmp_path):
    export_boxes(prepared, tmp_path / "boxes.csv")
    with (tmp_path / "boxes.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    assert rows[0] == {
        "film": "film0", "path": "film0.png", "width": "96", "height": "80", "split": "train", "class": "finding",
        "kind": "box", "concept": "cavity", "x1": "1.25", "y1": "2", "x2": "30", "y2": "40",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["=1+1", "+a", "-a", "@a", "\t=1", " =1", "\uff1d1", "\r=1", "\n=1"])
def test_no_cell_is_a_formula(prepared, name):
    dataset = Dataset.load(prepared)
    film = replace(dataset.films[0], id=name)
    drawn = (DrawnBox(name, "cavity", Box(1, 2, 3, 4)),)
    text = boxes_of(replace(dataset, films=(film,), boxes=drawn)).to_text("csv")
    row = next(csv.DictReader(io.StringIO(text, newline="")))
    assert row["film"] == f"'{name}".translate(dict.fromkeys(map(ord, "\t\r\n"), " "))
    assert row["x1"] == "1"


def test_a_line_break_in_a_cell_begins_no_row(prepared):
    dataset = Dataset.load(prepared)
    film = replace(dataset.films[0], id="a\r=1,b\n=2")
    export = boxes_of(replace(dataset, films=(film,), boxes=(DrawnBox(film.id, "cavity", Box(1, 2, 3, 4)),)))
    assert len(export.to_text("csv").splitlines()) == 2


def test_an_unknown_suffix_is_one_sentence(prepared, tmp_path):
    with pytest.raises(UserError, match="COCO"):
        export_boxes(prepared, tmp_path / "boxes.xml")


def test_marks_that_deny_a_finding_or_name_none_are_never_imported_as_findings(tmp_path):
    films = tuple(ExportedFilm(name, f"{name}.png", SIZE) for name in "abc")
    marks = (
        ExportedMark("a", "box", "cavity", Box(1, 1, 9, 9)),
        ExportedMark("a", "not_box", "cavity", Box(20, 20, 30, 30)),
        ExportedMark("b", "box", None, Box(1, 1, 9, 9)),
        ExportedMark("c", "reject", "cavity", None),
    )
    export = BoxExport("room", ("cavity",), films, marks)
    export.write(tmp_path / "room.json")
    content = json.loads((tmp_path / "room.json").read_text("utf-8"))
    assert [entry["id"] for entry in content["annotations"]] == [1]
    assert [(entry["kind"], entry["category_id"]) for entry in content["other_annotations"]] == [
        ("not_box", 1), ("box", None), ("reject", 1),
    ]  # fmt: skip
    again = read_coco(tmp_path / "room.json")
    assert [(film.listed, len(film.marks)) for film in again.films] == [("a.png", 1)], "of b and c nothing is known"
    assert again.notes == ("3 marks that deny a finding or name none are left out, and 2 films that have no others",)


def test_new_boxes_join_those_of_the_set_and_known_ones_are_not_doubled(prepared, tmp_path):
    file = tmp_path / "annotations.xml"
    file.write_text(cvat(
        image("film0.png", box(1.25, 2, 30, 40), box(70, 70, 80, 79.99)),
        image("films/p2/Röntgen pa.png", box(10, 10, 20, 20, "Pleural fluid")),
    ), "utf-8")  # fmt: skip
    before = Dataset.load(prepared)
    made = import_boxes(prepared, file, tmp_path / "new")
    assert all_boxes(made) == sorted([
        *all_boxes(before), ("film0", "cavity", (70, 70, 80, 79.99)),
        ("p2/Röntgen pa", "pleural_fluid", (10, 10, 20, 20)),
    ])  # fmt: skip
    films = {film.id: film for film in made.films}
    assert films["p2/Röntgen pa"].labels == {"cavity": False, "pleural_fluid": True}
    assert films["p2/Röntgen pa"].class_name == "finding"
    assert [film.split for film in made.films] == [film.split for film in before.films]
    assert made.source.checksums.keys() == {"films.csv", "annotations.xml"}
    assert "boxes of CVAT: 2 new" in made.source.notes
    assert "boxes of CVAT: 1 there already" in made.source.notes
    assert all_boxes(Dataset.load(prepared)) == all_boxes(before), "the old set stays as it was"
    assert all_boxes(Dataset.load(tmp_path / "new")) == all_boxes(made)


def test_replacing_leaves_only_the_new_boxes_on_films_that_the_file_names(prepared, tmp_path):
    file = tmp_path / "project.json"
    file.write_text(label_studio(
        task("/data/upload/1/abcd1234-film0.png", [rectangle(50, 50, 25, 25, "Pleural fluid")]),
        task("/data/upload/1/abcd1234-film1.png", [rectangle(0, 0, 9, 9)], skipped=(0,)),
    ))  # fmt: skip
    made = import_boxes(prepared, file, tmp_path / "new", anew=True)
    assert all_boxes(made) == [
        ("film0", "pleural_fluid", (48, 40, 72, 60)),
        ("film1", "pleural_fluid", (0, 0, 96, 80)),
        ("p1/Röntgen pa", "cavity", (5, 5, 9, 9)),
    ]
    films = {film.id: film for film in made.films}
    assert films["film0"].labels == {"cavity": None, "pleural_fluid": True}, "no box is no proof of absence"


def test_a_whole_round_trip_changes_nothing(prepared, tmp_path):
    export_boxes(prepared, tmp_path / "boxes.json")
    for anew in (False, True):
        made = import_boxes(prepared, tmp_path / "boxes.json", tmp_path / f"new-{anew}", anew=anew)
        before = Dataset.load(prepared)
        assert all_boxes(made) == all_boxes(before)
        assert made.films == before.films


def test_films_that_the_set_lacks_and_findings_that_it_does_not_know_are_told(prepared, tmp_path):
    file = tmp_path / "annotations.xml"
    file.write_text(cvat(
        image("film0.png", box(70, 70, 80, 79, "Sunburn")), image("Röntgen pa.png", box(1, 1, 2, 2)), image("else.png")
    ), "utf-8")  # fmt: skip
    with pytest.raises(IncompleteSourceError) as refused:
        import_boxes(prepared, file, tmp_path / "new")
    assert "2 films that the data set does not have: Röntgen pa.png, else.png" in str(refused.value)
    assert "1 boxes of an unknown finding: Sunburn on film0" in str(refused.value)
    assert not (tmp_path / "new").exists()
    made = import_boxes(prepared, file, tmp_path / "new", allow_missing=True)
    assert all_boxes(made) == all_boxes(Dataset.load(prepared))


def test_a_film_of_the_set_that_lies_in_another_folder_than_the_file_names_is_counted(prepared, films_folder, tmp_path):
    dataset = Dataset.load(prepared)
    (films_folder / "p1/Röntgen pa.png").rename(films_folder / "p1/0001.png")
    replace(dataset, films=(*dataset.films[:6], replace(dataset.films[6], path="p1/0001.png"))).save(prepared)
    file = tmp_path / "annotations.xml"
    file.write_text(cvat(image("p3/0001.png", box(70, 70, 80, 79)), image("mnt/film0.png")), "utf-8")
    made = import_boxes(prepared, file, tmp_path / "new")
    (note,) = [line for line in made.source.notes if "other folders" in line]
    assert note.startswith("1 films were found in other folders than those that were named")
    assert note.endswith("p3/0001.png as p1/0001.png")


def test_a_file_of_no_tool_is_one_sentence(prepared, tmp_path):
    file = tmp_path / "annotations.zip"
    file.write_bytes(b"PK\x03\x04")
    with pytest.raises(UserError, match="unpack it first"):
        import_boxes(prepared, file, tmp_path / "new")


def test_classes_that_a_box_cannot_decide_stay_and_their_films_are_counted(prepared, tmp_path):
    dataset = Dataset.load(prepared)
    tb = replace(
        dataset, classes=("healthy", "tb"), films=tuple(replace(f, class_name="healthy") for f in dataset.films)
    )
    tb.save(prepared)
    file = tmp_path / "annotations.xml"
    file.write_text(cvat(image("film5.png", box(1, 1, 9, 9)), image("film0.png", box(70, 70, 80, 79))), "utf-8")
    made = import_boxes(prepared, file, tmp_path / "new")
    assert {film.class_name for film in made.films} == {"healthy"}
    note = "boxes of CVAT: 1 films had no finding before; look whether their class still fits"
    assert note in made.source.notes


def test_a_tag_for_a_finding_that_the_set_knows_takes_nothing_back(prepared, tmp_path):
    dataset = Dataset.load(prepared)
    changed = replace(dataset.films[3], labels={"cavity": True, "pleural_fluid": False}, class_name="finding")
    replace(dataset, films=(*dataset.films[:3], changed, *dataset.films[4:])).save(prepared)
    tags = {"type": "choices", "value": {"choices": ["Cavity", "Pleural fluid"]}}
    file = tmp_path / "project.json"
    file.write_text(label_studio(task("film3.png", [tags])))
    made = import_boxes(prepared, file, tmp_path / "new", allow_missing=True)
    assert made.films[3].labels == {"cavity": True, "pleural_fluid": None}
    assert "boxes of Label Studio: 1 labels are not known any more" in made.source.notes


def test_a_film_that_lost_its_last_box_keeps_its_class_and_is_counted(prepared, tmp_path):
    file = tmp_path / "annotations.xml"
    file.write_text(cvat(image("film0.png"), image("film1.png", box(1, 1, 9, 9)), image("film2.png")), "utf-8")
    made = import_boxes(prepared, file, tmp_path / "new", anew=True)
    assert made.films[0].labels == {"cavity": None, "pleural_fluid": False}
    assert made.films[0].class_name == "finding", "no box is no proof of absence"
    note = "boxes of CVAT: 1 films lost their last box and show nothing else; look whether their class still fits"
    assert note in made.source.notes
