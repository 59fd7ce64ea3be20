import json

import pytest
from PIL import Image

from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.draft import IncompleteSourceError, SourceError, finish
from medgrape.datasets.sources.annotated import read_folder
from medgrape.geometry import Box


def coco(names, boxes, categories=("Cavity", "Pleural fluid"), size=(96, 80)):
    return json.dumps(
        {
            "categories": [{"id": number, "name": name} for number, name in enumerate(categories)],
            "images": [
                {"id": number, "file_name": name, "width": size[0], "height": size[1]}
                for number, name in enumerate(names)
            ],
            "annotations": [
                {"id": number, "image_id": image, "category_id": category, "bbox": bbox}
                for number, (image, category, bbox) in enumerate(boxes)
            ],
        }
    )


@pytest.fixture
def annotations(tmp_path):
    file = tmp_path / "boxes.json"
    names = [f"film{number}.png" for number in range(8)]
    file.write_text(coco(names, [(0, 0, [1, 2, 3, 4]), (0, 0, [10, 2, 3, 4]), (1, 1, [5, 5, 20, 20])]))
    return file


def test_categories_become_concepts_and_films_with_boxes_have_findings(films_folder, annotations, tmp_path):
    dataset = finish(read_folder(films_folder, annotations), tmp_path / "out", SplitRule(0.2, 0.2), allow_missing=False)
    assert dataset.concepts.names == ("cavity", "pleural_fluid")
    assert dataset.films[0].labels == {"cavity": True, "pleural_fluid": False}
    assert (dataset.films[0].class_name, dataset.films[7].class_name) == ("finding", "no_finding")
    assert [drawn.box for drawn in dataset.boxes_by_film["film0"]] == [Box(1, 2, 4, 6), Box(10, 2, 13, 6)]


def test_films_that_were_resized_since_keep_their_boxes_in_place(films_folder, annotations):
    annotations.write_text(coco(["elsewhere/film0.tif"], [(0, 0, [10, 10, 10, 10])], size=(192, 160)))
    (drawn,) = read_folder(films_folder, annotations).boxes
    assert drawn.box == Box(5, 5, 10, 10)


def test_a_vocabulary_can_be_borrowed_and_what_it_lacks_is_reported(films_folder, annotations, tmp_path):
    annotations.write_text(coco(["film0.png"], [(0, 0, [1, 1, 9, 9]), (0, 1, [1, 1, 9, 9])], ("Infiltrate", "Sunburn")))
    draft = read_folder(films_folder, annotations, vocabulary="nih")
    assert [drawn.concept for drawn in draft.boxes] == ["infiltration"]
    with pytest.raises(IncompleteSourceError, match="Sunburn on film0"):
        finish(draft, tmp_path / "out", SplitRule(), allow_missing=False)


def test_a_name_that_leads_out_of_the_folder_is_not_followed(films_folder, annotations, tmp_path):
    (films_folder / "film0.png").rename(tmp_path / "secret.png")
    annotations.write_text(coco(["../secret.png"], []))
    draft = read_folder(films_folder, annotations)
    assert not draft.films
    assert draft.complaints.lines() == ("1 listed films missing: ../secret.png",)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        "not json",
        '{"categories": [], "annotations": [], "images": [{"id": 1, "file_name": "", "width": Infinity, "height": 1}]}',
        "[" * 100000,
        '{"categories": [], "images": [], "annotations": [{}]}',
    ],
)
def test_what_is_no_coco_file_is_one_sentence(films_folder, annotations, text):
    annotations.write_text(text)
    with pytest.raises(SourceError, match="no COCO file"):
        read_folder(films_folder, annotations)


def test_categories_of_one_name_are_refused(films_folder, annotations):
    annotations.write_text(coco(["film0.png"], [], ("Cavity", "cavity")))
    with pytest.raises(SourceError, match="Two concepts"):
        read_folder(films_folder, annotations)


def test_a_film_is_never_taken_for_another_of_the_same_name(films_folder, annotations):
    (films_folder / "p1").mkdir()
    (films_folder / "film0.png").rename(films_folder / "p1/pa.png")
    annotations.write_text(coco(["p1/pa.png", "p2/pa.png"], [(1, 0, [1, 1, 9, 9])]))
    draft = read_folder(films_folder, annotations)
    assert [film.id for film in draft.films] == ["p1/pa"]
    assert draft.complaints.lines() == ("1 listed films missing: p2/pa.png",)


@pytest.mark.parametrize("size", [(3000, 2000), (80, 96), (40, 100), (96, 84)])
def test_a_box_is_not_stretched_onto_a_film_of_another_shape(films_folder, annotations, size):
    annotations.write_text(coco(["film0.png"], [(0, 0, [1, 1, 9, 9])], size=size))
    draft = read_folder(films_folder, annotations)
    assert draft.boxes == []
    assert draft.films[0].labels["cavity"] is None
    expected = ("1 boxes for which the tool saw a film of another shape: Cavity on film0",)
    assert draft.complaints.lines() == expected


@pytest.mark.parametrize("size", [(192, 160), (3000, 2500), (48, 40), (13, 11), (973, 800)])
def test_a_box_follows_a_film_that_was_resized_give_or_take_what_rounding_does(films_folder, annotations, size):
    annotations.write_text(coco(["film0.png"], [(0, 0, [1, 1, 9, 9])], size=size))
    draft = read_folder(films_folder, annotations)
    assert len(draft.boxes) == 1
    assert not draft.complaints


def test_a_film_that_is_found_in_another_folder_than_the_file_names_is_counted(films_folder, annotations):
    (films_folder / "patientB").mkdir()
    (films_folder / "film0.png").rename(films_folder / "patientB/0001.png")
    named = ["patientA/0001.png", "mnt/film1.png", "film2.png", r"D:\films\patientB\0002.png"]
    (films_folder / "film3.png").rename(films_folder / "patientB/0002.png")
    annotations.write_text(coco(named, [(0, 0, [1, 1, 9, 9])]))
    draft = read_folder(films_folder, annotations)
    assert [film.id for film in draft.films] == ["patientB/0001", "film1", "film2", "patientB/0002"]
    assert [note for note in draft.notes if "other folders" in note] == [
        "1 films were found in other folders than those that were named; look whether they are the same: "
        "patientA/0001.png as patientB/0001.png"
    ]


def test_a_refused_box_leaves_its_finding_unknown_not_absent(films_folder, annotations):
    annotations.write_text(coco(["film0.png"], [(0, 0, [90, 70, 500, 500]), (0, 1, [1, 1, 9, 9])]))
    draft = read_folder(films_folder, annotations)
    assert draft.films[0].labels == {"cavity": None, "pleural_fluid": True}


def test_boxes_on_a_film_that_is_turned_when_read_are_reported(films_folder, annotations, tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6
    with Image.open(films_folder / "film0.png") as film:
        film.save(films_folder / "side.jpg", exif=turned)
    annotations.write_text(coco(["side.jpg"], [(0, 0, [1, 1, 9, 9])]))
    with pytest.raises(IncompleteSourceError, match=r"stored on their side.*Cavity on side"):
        finish(read_folder(films_folder, annotations), tmp_path / "out", SplitRule(), allow_missing=False)


def test_annotations_of_an_unknown_image_and_doubled_images_can_be_allowed(films_folder, annotations, tmp_path):
    names = ["film0.png", "film1.png", "film0.png"]
    annotations.write_text(coco(names, [(7, 0, [1, 1, 9, 9]), (2, 0, [1, 1, 9, 9])]))
    draft = read_folder(films_folder, annotations)
    with pytest.raises(IncompleteSourceError, match=r"image 7, category 0.*listed twice: film0"):
        finish(draft, tmp_path / "out", SplitRule(), allow_missing=False)
    dataset = finish(read_folder(films_folder, annotations), tmp_path / "out", SplitRule(), allow_missing=True)
    assert [film.id for film in dataset.films] == ["film1"], "nobody knows which film0 the box is on"
    assert dataset.boxes == ()


def test_a_file_without_categories_is_refused(films_folder, annotations, tmp_path):
    annotations.write_text(coco(["film0.png"], [], ()))
    with pytest.raises(SourceError, match="names no finding"):
        finish(read_folder(films_folder, annotations), tmp_path / "out", SplitRule(), allow_missing=False)


def test_films_that_differ_in_their_suffix_alone_are_reported_apart(films_folder, annotations):
    annotations.write_text(coco(["film0.png", "film0.jpg"], [(1, 0, [1, 1, 9, 9])]))
    draft = read_folder(films_folder, annotations)
    assert draft.boxes == [], "the box is on a film that is not there"
    assert draft.complaints.lines() == ("1 listed films missing: film0.jpg",)


def test_paths_of_windows_are_understood(films_folder, annotations):
    (films_folder / "p1").mkdir()
    (films_folder / "film0.png").rename(films_folder / "p1/pa.png")
    annotations.write_text(coco([r"C:\films\p1\pa.png"], [(0, 0, [1, 1, 9, 9])]))
    assert [drawn.film for drawn in read_folder(films_folder, annotations).boxes] == ["p1/pa"]


def test_a_box_that_was_turned_about_its_middle_becomes_the_box_around_it(films_folder, annotations):
    content = json.loads(coco(["film0.png"], [(0, 0, [20, 30, 20, 10]), (0, 1, [1, 1, 9, 9])]))
    content["annotations"][0]["attributes"] = {"occluded": False, "rotation": 90.0}
    content["annotations"][1]["attributes"] = ["of another tool"]
    annotations.write_text(json.dumps(content))
    draft = read_folder(films_folder, annotations)
    assert draft.boxes[0].box.corners == pytest.approx((25, 25, 35, 45))
    assert draft.boxes[1].box == Box(1, 1, 10, 10)
    assert draft.complaints.lines()[0].startswith("1 shapes that are no upright box")


def test_two_images_of_one_id_are_refused(films_folder, annotations):
    content = json.loads(coco(["film0.png", "film1.png"], [(0, 0, [1, 1, 9, 9])]))
    content["images"][1]["id"] = 0
    annotations.write_text(json.dumps(content))
    with pytest.raises(SourceError, match="two images have the same id"):
        read_folder(films_folder, annotations)
