import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.draft import IncompleteSourceError, SourceError, finish
from medgrape.datasets.sources.annotated import read_folder
from medgrape.datasets.sources.annotation_files import read_label_studio
from medgrape.geometry import Box
from tool_exports import label_studio, rectangle, task


@pytest.fixture
def export(tmp_path):
    return tmp_path / "project-1.json"


def read(folder, export, *tasks, **more):
    export.write_text(label_studio(*tasks))
    return read_folder(folder, export, "labelstudio", **more)


def test_percent_become_pixels_of_the_film(films_folder, export):
    draft = read(films_folder, export, task("/data/upload/1/abcd1234-film0.png", [rectangle(25, 50, 12.5, 25)]))
    (drawn,) = draft.boxes
    assert (drawn.film, drawn.concept, drawn.box) == ("film0", "cavity", Box(24, 40, 36, 60))
    assert draft.films[0].class_name == "finding"
    assert not draft.complaints


@given(x1=st.integers(0, 2999), y1=st.integers(0, 2499), width=st.integers(1, 3000), height=st.integers(1, 2500))
def test_a_box_of_whole_pixels_survives_the_way_through_percent(tmp_path_factory, x1, y1, width, height):
    x2, y2 = min(x1 + width, 3000), min(y1 + height, 2500)
    result = rectangle(x1 / 30, y1 / 25, (x2 - x1) / 30, (y2 - y1) / 25, size=(3000, 2500))
    file = tmp_path_factory.getbasetemp() / "percent.json"
    file.write_text(label_studio(task("film.png", [result])))
    ((mark,),) = (film.marks for film in read_label_studio(file).films)
    assert mark.corners == pytest.approx((x1, y1, x2, y2), abs=1e-9)


def test_a_box_without_its_films_size_still_lies_where_it_was_drawn(films_folder, export):
    draft = read(films_folder, export, task("film0.png", [rectangle(50, 50, 25, 25, size=None)]))
    assert draft.boxes[0].box == Box(48, 40, 72, 60)


def test_films_that_were_resized_since_keep_their_boxes_in_place(films_folder, export):
    draft = read(films_folder, export, task("film0.jpg", [rectangle(50, 50, 25, 25, size=(960, 800))]))
    assert draft.boxes[0].box == Box(48, 40, 72, 60)


def test_boxes_of_all_who_looked_count_and_a_second_one_of_a_finding_is_not_lost(films_folder, export):
    ada = [rectangle(0, 0, 25, 25), rectangle(50, 50, 25, 25), rectangle(0, 0, 50, 50, "Pleural fluid")]
    draft = read(films_folder, export, task("film0.png", ada, [rectangle(1, 1, 25, 25)], [rectangle(9, 9, 9, 9)],
                                            skipped=(2,)))  # fmt: skip
    assert [drawn.concept for drawn in draft.boxes] == ["cavity", "cavity", "pleural_fluid", "cavity"]
    assert "1 films were annotated by several people: all their boxes count" in draft.notes


def test_who_skipped_a_film_or_never_opened_it_said_nothing_and_who_drew_nothing_found_nothing(films_folder, export):
    model = [rectangle(1, 1, 9, 9)]
    draft = read(
        films_folder, export,
        task("film0.png", [rectangle(0, 0, 25, 25)], predictions=model),
        task("film1.png", [rectangle(0, 0, 25, 25)], skipped=(0,)),
        task("film2.png", predictions=model),
        task("film3.png", []),
    )  # fmt: skip
    assert [(film.id, film.class_name) for film in draft.films] == [("film0", "finding"), ("film3", "no_finding")]
    assert len(draft.boxes) == 1
    assert "2 films that nobody annotated, or that were skipped, are left out" in draft.notes
    assert "2 predictions of models are left out: nobody accepted them" in draft.notes


@pytest.mark.parametrize(
    "address",
    [
        "/data/upload/1/abcd1234-film_one.png",
        "/data/upload/film_one.png",
        "/data/local-files/?d=mnt/wards/film%20one.png",
        "/data/local-files/?id=3&d=film%20one.png&token=1",
        "https://host/films/film%20one.png?token=1",
        "s3://bucket/films/film one.png",
        "films/film one.dcm",
        "film one.jpg",
    ],
)
def test_a_film_is_found_by_every_address_that_the_tool_has_for_it(films_folder, export, address):
    (films_folder / "film0.png").rename(films_folder / "film one.png")
    draft = read(films_folder, export, task(address, [rectangle(0, 0, 50, 50)], key="xray"))
    assert [film.path for film in draft.films] == ["film one.png"]
    assert not draft.complaints


def test_names_in_other_alphabets_and_films_of_one_name_in_two_folders_are_reported_apart(films_folder, export):
    for number, name in enumerate(("Käthe/Röntgen 1.png", "王/Röntgen 1.png")):
        (films_folder / name).parent.mkdir()
        (films_folder / f"film{number}.png").rename(films_folder / name)
    draft = read(
        films_folder, export,
        task("/data/local-files/?d=mnt/K%C3%A4the/R%C3%B6ntgen%201.png", [rectangle(0, 0, 50, 50)]),
        task("/data/local-files/?d=mnt/%E7%8E%8B/R%C3%B6ntgen%201.png", []),
        task("/data/upload/1/abcd1234-Röntgen_1.png", [rectangle(0, 0, 50, 50)]),
    )  # fmt: skip
    assert [film.path for film in draft.films] == ["Käthe/Röntgen 1.png", "王/Röntgen 1.png"]
    assert draft.complaints.lines() == ("1 listed films missing: Röntgen_1.png",), "it could be either"


def test_a_rectangle_turned_about_its_corner_becomes_the_box_around_it_and_is_reported(films_folder, export, tmp_path):
    """The example of Label Studio's own issue 2293: 300 x 100 at (200, 100), turned by 90 degrees."""
    turned = rectangle(20, 20, 30, 20, size=(1000, 500), rotation=90)
    export.write_text(label_studio(task("film0.png", [turned])))
    ((mark,),) = (film.marks for film in read_label_studio(export).films)
    assert mark.corners == pytest.approx((100, 100, 200, 400))
    draft = read(films_folder, export, task("film0.png", [rectangle(20, 20, 30, 20, size=(960, 800), rotation=90)]))
    assert len(draft.boxes) == 1
    with pytest.raises(IncompleteSourceError, match=r"no upright box.*Cavity on film0"):
        finish(draft, tmp_path / "out", SplitRule(), allow_missing=False)


def test_polygons_and_ellipses_become_boxes_and_what_has_no_extent_leaves_the_finding_unknown(films_folder, export):
    def other(kind, label, **value):
        return {"id": kind, "type": kind, "original_width": 96, "original_height": 80, "image_rotation": 0,
                "value": value | {kind: [label]}}  # fmt: skip

    results = [
        other("polygonlabels", "Cavity", points=[[25, 25], [50, 25], [37.5, 75]], closed=True),
        other("ellipselabels", "Scar", x=50, y=50, radiusX=25, radiusY=12.5, rotation=0),
        other("keypointlabels", "Pleural fluid", x=10, y=10, width=1),
        other("brushlabels", "Pleural fluid", format="rle", rle=[0, 1, 2]),
        {"type": "choices", "value": {"choices": ["Good film"]}, "from_name": "quality", "to_name": "image"},
    ]
    file = rectangle(0, 0, 9, 9, "Pleural fluid")
    draft = read(films_folder, export, task("film0.png", results), task("film1.png", [file]))
    assert [drawn.box for drawn in draft.boxes[:2]] == [Box(24, 20, 48, 60), Box(24, 30, 72, 50)]
    assert draft.films[0].labels == {"cavity": True, "pleural_fluid": None, "scar": True}
    assert [line.split(":")[0] for line in draft.complaints.lines()] == [
        "2 shapes that are no upright box, taken as the box around them",
        "3 marks that are no box, left out",
    ]


def test_a_rectangle_whose_label_is_told_apart_is_one_box_and_one_without_label_is_reported(films_folder, export):
    bare = rectangle(0, 0, 50, 50) | {"type": "rectangle", "id": "one"}
    named = {**bare, "type": "labels", "value": {**bare["value"], "labels": ["Cavity", "Scar"]}}
    nameless = bare | {"id": "two"}
    draft = read(films_folder, export, task("film0.png", [bare, named, nameless]))
    assert [drawn.concept for drawn in draft.boxes] == ["cavity", "scar"]
    assert draft.complaints.lines() == ("1 marks without a label, left out: a mark on film0",)


def about(mark, kind, *words):
    """Another result for the same region."""
    value = {key: entry for key, entry in mark["value"].items() if key != "rectanglelabels"}
    return mark | {"type": kind, "from_name": kind, "value": value | {kind: list(words)}}


def test_what_is_chosen_for_a_labelled_mark_is_about_it_and_no_finding(films_folder, export):
    cavity = rectangle(25, 50, 12.5, 25, id="one")
    choices = [
        about(cavity, "choices", "severe"),
        about(cavity, "taxonomy", ["TB", "active"]),
        about(cavity, "rating", 3),
    ]
    draft = read(films_folder, export, task("film0.png", [choices[0], cavity, *choices[1:]]))
    assert [(drawn.concept, drawn.box) for drawn in draft.boxes] == [("cavity", Box(24, 40, 36, 60))]
    assert draft.concepts.names == ("cavity",)
    assert not draft.complaints


def test_what_is_chosen_for_a_mark_without_label_or_for_the_film_is_no_box_and_told(films_folder, export):
    cavity, other = rectangle(25, 50, 12.5, 25), rectangle(1, 1, 50, 50, id="two")
    film = {"type": "choices", "value": {"choices": ["Scar"]}, "from_name": "quality", "to_name": "image"}
    draft = read(films_folder, export, task("film0.png", [cavity, about(other, "choices", "severe"), film]))
    assert [drawn.concept for drawn in draft.boxes] == ["cavity"]
    assert draft.concepts.names == ("cavity",)
    assert draft.complaints.lines() == ("2 marks that are no box, left out: severe on film0, Scar on film0",)


def test_marks_on_a_film_that_was_turned_in_the_tool_are_left_out(films_folder, export):
    turned = rectangle(0, 0, 50, 50, image_rotation=90)
    draft = read(films_folder, export, task("film0.png", [turned]), task("film1.png", [rectangle(0, 0, 9, 9)]))
    assert [drawn.film for drawn in draft.boxes] == ["film1"]
    assert draft.films[0].labels == {"cavity": None}


@pytest.mark.parametrize(
    "content",
    [{}, {"a": 1}, [1], [{"data": 1}], [{"id": 1}], ["x"], [{"data": {"image": "a.png"}, "annotations": [1]}]],
)
def test_what_is_no_export_is_one_sentence(tmp_path, content):
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(content))
    with pytest.raises(SourceError, match="no JSON export of Label Studio"):
        read_label_studio(file)


def test_the_small_export_is_refused_with_what_to_do(tmp_path):
    file = tmp_path / "min.json"
    file.write_text(json.dumps([{"image": "film0.png", "id": 1, "annotation_id": 2, "label": []}]))
    with pytest.raises(SourceError, match="export it as JSON"):
        read_label_studio(file)


def test_a_task_without_a_film_is_reported(films_folder, export):
    draft = read(films_folder, export, task("some text", [], number=7), task("film0.png", [rectangle(0, 0, 9, 9)]))
    assert draft.complaints.lines() == ("1 tasks without a film: task 7",)


@pytest.mark.parametrize(
    ("data", "changes"),
    [
        ({"image": "film0.png", "prior": "film1.png"}, [{"to_name": "prior"}]),
        ({"pages": ["film0.png", "film1.png"]}, [{}]),
        ({"image": "film0.png"}, [{"to_name": "image"}, {"to_name": "prior"}]),
        ({"image": "film0.png"}, [{"item_index": 0}]),
    ],
)
def test_a_mark_that_may_lie_on_another_film_of_its_task_lands_on_none(films_folder, export, data, changes):
    unclear = task("", [rectangle(0, 0, 50, 50, **change) for change in changes], number=7) | {"data": data}
    draft = read(films_folder, export, unclear, task("film2.png", [rectangle(0, 0, 9, 9)]))
    assert [film.id for film in draft.films] == [drawn.film for drawn in draft.boxes] == ["film2"]
    (line,) = draft.complaints.lines()
    assert line.startswith("1 tasks with several films, left out")
    assert line.endswith("task 7")


def test_a_film_told_twice_and_a_question_about_the_patients_history_are_no_second_film(films_folder, export):
    asked = {"type": "textarea", "from_name": "said", "to_name": "history", "value": {"text": ["cough"]}}
    known = task("", [rectangle(0, 0, 50, 50, to_name="xray"), asked])
    known["data"] = {"image": "film0.png", "file": "film0.png", "history": "cough"}
    draft = read(films_folder, export, known)
    assert [drawn.film for drawn in draft.boxes] == ["film0"]
    assert not draft.complaints


def test_an_arrow_between_two_boxes_does_not_stand_in_their_way(films_folder, export):
    arrow = {"type": "relation", "from_id": "one", "to_id": "two", "direction": "right", "labels": ["drains"]}
    boxes = [rectangle(0, 0, 50, 50, id="one"), rectangle(50, 50, 25, 25, id="two")]
    draft = read(films_folder, export, task("film0.png", [*boxes, arrow]))
    assert len(draft.boxes) == 2
    assert not draft.complaints
