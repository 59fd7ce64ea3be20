import pytest

from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.draft import IncompleteSourceError, SourceError, finish
from medgrape.datasets.sources.table import read_table
from medgrape.geometry import Box

LISTED = {
    "path": "file", "labels": "seen", "patient": "who", "sex": "gender", "age": "years", "view": "proj",
    "split": "part",
}  # fmt: skip


@pytest.fixture
def table(films_folder):
    file = films_folder / "films.csv"
    file.write_text(
        "file,seen,who,gender,years,proj,part,cavity,fluid,state\n"
        "film0.png,Cavity|Fluid,ann,Female,61.0,pa,train,1,yes,ill\n"
        "film1.png,No Finding,ann,F,62,PA,train,0,no,well\n"
        "film2.png,Fluid,bob,male,,AP,TEST,-1,true,ill\n"
        "film3.png,none,cid,M,40,PA,valid,,0,well\n"
    )
    return file


def prepared(draft, tmp_path, allow_missing=False):
    dataset = finish(draft, tmp_path / "out", SplitRule(0.3, 0.2), allow_missing=allow_missing)
    return dataset, {film.id: film for film in dataset.films}


def test_a_column_that_lists_findings(table, tmp_path):
    dataset, films = prepared(read_table(table, **LISTED), tmp_path)
    assert dataset.concepts.names == ("cavity", "fluid")
    assert films["film0"].labels == {"cavity": True, "fluid": True}
    assert films["film1"].class_name == "no_finding"
    assert (films["film0"].sex, films["film0"].age, films["film0"].view) == ("F", 61, "PA")
    assert films["film2"].split == "test"
    assert films["film0"].split == films["film1"].split, "one patient"


def test_a_column_for_each_finding_with_unknown_ones(table, tmp_path):
    columns = {"path": "file", "concepts": "cavity,fluid", "class_column": "state", "patient": "who"}
    dataset, films = prepared(read_table(table, **columns), tmp_path)
    assert dataset.classes == ("ill", "well")
    assert films["film2"].labels == {"cavity": None, "fluid": True}
    assert films["film3"].labels == {"cavity": None, "fluid": False}


def test_boxes_by_corners_or_by_size_with_the_film_named_either_way(table):
    boxes = table.parent / "boxes.csv"
    boxes.write_text(
        "image,what,l,t,r,b\nfilm0.png,Cavity,1,2,11,12\nfilm0,cavity,20,2,30,12\nfilm2.png,Fluid,5,5,9,9\n"
    )
    named = {"boxes": boxes, "box_film": "image", "box_concept": "what", "box_edges": "l,t,r,b"}
    corners = read_table(table, **LISTED, **named)
    assert [drawn.box for drawn in corners.boxes] == [Box(1, 2, 11, 12), Box(20, 2, 30, 12), Box(5, 5, 9, 9)]
    sized = read_table(table, **LISTED, **named, box_sized=True)
    assert sized.boxes[0].box == Box(1, 2, 12, 14)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("film0.png,Cavity,nan,2,11,12", "without area"),
        ("film0.png,Cavity,x,2,11,12", "without area"),
        ("film0.png,Rib,1,2,11,12", "unknown finding"),
        ("film9.png,Cavity,1,2,11,12", "unknown film: film9"),
        ("film0.png,Cavity,1,2,900,12", "beyond their film"),
        ("film1.png,Cavity,1,2,11,12", "labels deny"),
    ],
)
def test_boxes_that_make_no_sense_are_reported(table, tmp_path, row, message):
    boxes = table.parent / "boxes.csv"
    boxes.write_text(f"film,concept,x1,y1,x2,y2\n{row}\n")
    draft = read_table(table, **LISTED, boxes=boxes)
    with pytest.raises(IncompleteSourceError, match=message):
        prepared(draft, tmp_path)


def test_missing_doubled_and_unreadable_films_are_reported(table, tmp_path):
    with table.open("a") as file:
        file.write("film0.png,Cavity,eve,F,1,PA,train,1,1,ill\ngone.png,,eve,F,1,PA,train,1,1,ill\n")
    (table.parent / "film3.png").write_bytes(b"junk")
    with pytest.raises(IncompleteSourceError, match=r"unreadable.*missing: gone\.png.*listed twice: film0"):
        prepared(read_table(table, **LISTED), tmp_path)
    films = prepared(read_table(table, **LISTED), tmp_path, allow_missing=True)[1]
    assert set(films) == {"film1", "film2"}, "of two films of one name, neither is taken"


def test_a_mistyped_column_is_reported_the_nearest_one(table):
    with pytest.raises(SourceError, match=r"no column 'fil' .*did you mean 'file'"):
        read_table(table, path="fil", labels="seen")


def test_a_table_without_concepts_or_with_one_class_is_refused(table):
    with pytest.raises(SourceError, match="either --concepts"):
        read_table(table, path="file")
    table.write_text("file,seen,state\nfilm0.png,Cavity,ill\n")
    with pytest.raises(SourceError, match="at least two"):
        read_table(table, path="file", labels="seen", class_column="state")


def test_marks_that_say_neither_yes_nor_no_are_reported(table, tmp_path):
    table.write_text(table.read_text().replace(",1,yes,", ",maybe,yes,"))
    draft = read_table(table, path="file", concepts="cavity,fluid")
    with pytest.raises(IncompleteSourceError, match="cavity='maybe' on film0"):
        prepared(draft, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Cavity|Fluid", "Normal|Fluid", r"contradictory label: film0 \(Normal\|Fluid\)"),
        (",male,", ",weiblich,", r"unknown sex: film2 \('weiblich'\)"),
        (",61.0,", ",²,", None),
    ],
)
def test_contradictions_and_unknown_words_are_reported(table, tmp_path, old, new, message):
    table.write_text(table.read_text().replace(old, new))
    draft = read_table(table, **LISTED)
    if message is None:
        assert draft.films[0].age is None
    else:
        with pytest.raises(IncompleteSourceError, match=message):
            prepared(draft, tmp_path)


def test_two_columns_of_one_name_are_refused(table):
    table.write_text(table.read_text().replace("cavity,fluid", "fluid,fluid"))
    with pytest.raises(SourceError, match="two columns 'fluid'"):
        read_table(table, **LISTED)


def test_a_box_makes_an_unknown_finding_known(table):
    boxes = table.parent / "boxes.csv"
    boxes.write_text("film,concept,x1,y1,x2,y2\nfilm2,cavity,1,2,11,12\n")
    draft = read_table(table, path="file", concepts="cavity,fluid", boxes=boxes)
    assert draft.films[2].labels == {"cavity": True, "fluid": True}


def test_two_ways_to_name_findings_or_no_separator_are_refused(table):
    with pytest.raises(SourceError, match="either --concepts"):
        read_table(table, path="file", labels="seen", concepts="cavity")
    with pytest.raises(SourceError, match="--separator"):
        read_table(table, path="file", labels="seen", separator="")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",TEST,", ",Tset,", r"unknown split: film2 \('tset'\)"),
        ("Fluid,bob", ",bob", "neither class nor findings are known.*film2"),
        ("film1.png,", ",", r"missing: \(no path\)"),
    ],
)
def test_a_film_that_cannot_be_placed_is_reported_not_guessed(table, tmp_path, old, new, message):
    table.write_text(table.read_text().replace(old, new))
    with pytest.raises(IncompleteSourceError, match=message):
        prepared(read_table(table, **LISTED), tmp_path)


def test_a_film_with_a_label_outside_the_vocabulary_is_left_out_rather_than_called_healthy(table, tmp_path):
    draft = read_table(table, **LISTED, vocabulary="nih")  # which knows neither "Cavity" nor "Fluid"
    _, films = prepared(draft, tmp_path, allow_missing=True)
    assert set(films) == {"film1", "film3"}


def test_spellings_that_differ_by_case_are_one_finding(table, tmp_path):
    table.write_text(table.read_text().replace("Fluid,bob", "FLUID,bob"))
    dataset, films = prepared(read_table(table, **LISTED), tmp_path)
    assert dataset.concepts.names == ("cavity", "fluid")
    assert films["film2"].labels["fluid"]


def test_a_column_that_the_vocabulary_does_not_know_is_named(table):
    with pytest.raises(SourceError, match="'cavity' is no concept of the vocabulary 'nih'"):
        read_table(table, path="file", concepts="cavity", vocabulary="nih")


def test_a_concept_called_like_a_column_is_refused(table, tmp_path):
    table.write_text(table.read_text().replace("cavity,fluid", "view,fluid"))
    with pytest.raises(SourceError, match="cannot be called 'view'"):
        prepared(read_table(table, path="file", concepts="view,fluid"), tmp_path)
