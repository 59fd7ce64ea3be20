import pytest

from medgrape.datasets.draft import SourceError
from medgrape.datasets.sources.annotated import read_folder
from medgrape.datasets.sources.annotation_files import read_cvat
from medgrape.geometry import Box
from tool_exports import box, cvat, image, shape

GROWING = "".join(f"<!ENTITY lol{n} '{f'&lol{n - 1};' * 10}'>" for n in range(1, 10))
LAUGHS = f"<!DOCTYPE lolz [<!ENTITY lol0 'lol'>{GROWING}]>"
"""Nine entities, each of ten of the one before: a few hundred bytes that become gigabytes."""


@pytest.fixture
def export(tmp_path):
    return tmp_path / "annotations.xml"


def read(folder, export, *images, **more):
    export.write_text(cvat(*images, **more), "utf-8")
    return read_folder(folder, export, "cvat")


def test_boxes_are_in_pixels_and_labels_become_concepts(films_folder, export):
    draft = read(films_folder, export, image("film0.png", box(1.5, 2, 30, 40), box(50, 2, 60, 9)), image("film1.png"))
    assert draft.concepts.names == ("cavity", "pleural_fluid")
    assert [drawn.box for drawn in draft.boxes] == [Box(1.5, 2, 30, 40), Box(50, 2, 60, 9)]
    assert [film.class_name for film in draft.films] == ["finding", "no_finding"]
    assert draft.films[0].labels == {"cavity": True, "pleural_fluid": False}
    assert not draft.complaints


def test_films_that_were_resized_since_keep_their_boxes_in_place(films_folder, export):
    draft = read(films_folder, export, image("film0.jpg", box(10, 10, 20, 20), size=(192, 160)))
    assert draft.boxes[0].box == Box(5, 5, 10, 10)


def test_a_box_turned_about_its_middle_and_other_shapes_become_the_box_around_them(films_folder, export):
    draft = read(
        films_folder, export,
        image(
            "film0.png",
            box(20, 30, 40, 40, rotation=90),
            shape("polygon", points="10.5,20;30,20;20,50"),
            shape("ellipse", cx=50, cy=40, rx=10, ry=5),
            shape("mask", rle="3, 5, 7", left=7, top=8, width=13, height=15),
        ),
    )  # fmt: skip
    found = [tuple(round(edge, 6) for edge in drawn.box.corners) for drawn in draft.boxes]
    assert found == [(25, 25, 35, 45), (10.5, 20, 30, 50), (40, 35, 60, 45), (7, 8, 20, 23)]
    assert draft.complaints.lines()[0].startswith("4 shapes that are no upright box, taken as the box around them")


def test_tags_lines_points_and_skeletons_leave_their_finding_unknown(films_folder, export):
    skeleton = '<skeleton label="Cavity" z_order="0"><points label="1" points="5,5"></points></skeleton>'
    marks = (
        '<tag label="Pleural fluid" source="manual"></tag>',
        shape("polyline", points="1,1;5,5"),
        shape("points", points="1,1"),
        skeleton,
    )
    joints = "<label><name>1</name><type>points</type><parent>Cavity</parent></label>"
    draft = read(films_folder, export, image("film0.png", *marks), extra=joints)
    assert draft.boxes == []
    assert draft.films[0].labels == {"cavity": None, "pleural_fluid": None}
    assert draft.complaints.lines()[0].startswith("4 marks that are no box, left out")


def test_a_film_with_nothing_but_a_tag_about_its_quality_has_no_finding(films_folder, export):
    tag = '<tag label="good film" source="manual"></tag>'
    only = "<label><name>good film</name><type>tag</type></label>"
    draft = read(films_folder, export, image("film0.png", tag), extra=only)
    assert draft.films[0].class_name == "no_finding"
    assert draft.concepts.names == ("cavity", "pleural_fluid")


def test_names_with_marks_of_xml_spaces_and_folders_are_found(films_folder, export):
    (films_folder / "a & b").mkdir()
    (films_folder / "film0.png").rename(films_folder / "a & b/«film» 1.png")
    draft = read(films_folder, export, image("a &amp; b/«film» 1.png", box(1, 1, 9, 9)))
    assert [film.path for film in draft.films] == ["a & b/«film» 1.png"]


def test_a_file_that_would_grow_when_it_is_read_is_refused_at_once(tmp_path):
    file = tmp_path / "laughs.xml"
    file.write_text(cvat(image("&lol9;.png"), before=LAUGHS))
    with pytest.raises(SourceError, match="declares a document type"):
        read_cvat(file)


def test_a_file_that_names_another_file_is_refused(tmp_path):
    file = tmp_path / "thief.xml"
    file.write_text(cvat(image("&x;.png"), before='<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'))
    with pytest.raises(SourceError, match="declares a document type"):
        read_cvat(file)


def test_a_file_without_end_in_depth_is_refused(tmp_path):
    file = tmp_path / "deep.xml"
    file.write_text("<a>" * 200_000)
    with pytest.raises(SourceError, match="nests elements"):
        read_cvat(file)


def test_an_export_of_a_video_is_refused_with_what_to_do(tmp_path):
    file = tmp_path / "video.xml"
    file.write_text('<annotations><track id="0" label="x"></track></annotations>')
    with pytest.raises(SourceError, match="CVAT for images"):
        read_cvat(file)


@pytest.mark.parametrize(
    "text",
    ["<html></html>", "<annotations>", "", "<annotations><image/></annotations>", cvat(image("a.png", shape("box"))),
     cvat(image("a.png", size=(0, 5))), cvat(image("a.png", "<box/>"))],
)  # fmt: skip
def test_what_is_no_file_of_cvat_is_one_sentence(tmp_path, text):
    file = tmp_path / "bad.xml"
    file.write_text(text)
    with pytest.raises(SourceError, match=r"is no (XML|file of CVAT)"):
        read_cvat(file)
