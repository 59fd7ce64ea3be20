"""How readers, studies, explanations and checks show themselves in a notebook and in a terminal."""

import base64
import io

import nbformat
import pytest
from PIL import Image

import medgrape as mg
from medgrape.datasets.dataset import Dataset
from medgrape.explain import render
from medgrape.explain.notebook import PIXELS, SHOWN


@pytest.fixture(scope="module")
def reader(trained_run):
    return mg.load(trained_run)


@pytest.fixture(scope="module")
def film(drawn_dataset):
    dataset = Dataset.load(drawn_dataset)
    shown = next(film for film in dataset.films if film.labels["active_tb"])
    return dataset.film_path(shown)


@pytest.fixture(scope="module")
def study(reader, film):
    return reader.open(film)


def picture(bundle):
    return Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))


def test_a_study_is_shown_as_its_film_with_a_text_alternative(study):
    formats, told = study._repr_mimebundle_(include=None, exclude=None)
    shown = picture(formats)
    assert shown.format == "PNG"
    assert shown.width <= PIXELS
    assert shown.height < shown.width
    assert len(formats["image/png"]) < 1_500_000
    assert told["image/png"]["width"] == SHOWN
    alt = told["image/png"]["alt"]
    assert alt.startswith("Chest X-ray of 64 x 64 pixels. Classes: ")
    assert "not a medical device" in alt
    for concept in study.run.concepts:
        assert concept.title in alt


def test_a_correction_is_in_the_picture_and_in_the_text_alternative(study):
    corrected = study.apply(mg.Box(8, 8, 30, 40), "active_tb", confirmed=True)
    (before, _), (after, told) = study._repr_mimebundle_(), corrected._repr_mimebundle_()
    assert before["image/png"] != after["image/png"]
    assert "A person corrected this reading: a box for" in told["image/png"]["alt"]
    assert repr(corrected).endswith("; 1 correction)")
    assert repr(corrected.reject("obsolete_tb")).endswith("; 2 corrections)")


def test_an_explanation_shows_the_picture_that_it_saves(study, tmp_path):
    explanation = study.explain()
    formats, told = explanation._repr_mimebundle_()
    explanation.save(tmp_path / "evidence.png")
    with Image.open(tmp_path / "evidence.png") as saved:
        width, height = saved.size
    shown = picture(formats)
    assert shown.width == min(width, PIXELS)
    assert shown.height / shown.width == pytest.approx(height / width, rel=0.01)
    assert "Findings: " in told["image/png"]["alt"]


@pytest.mark.parametrize("name", ["draw", "draw_reading"])
def test_if_drawing_fails_the_text_is_shown_with_the_error(study, monkeypatch, name):
    def broken(_explanation):
        raise OSError("no typeface\nat all")

    monkeypatch.setattr(render, name, broken)
    thing = study if name == "draw_reading" else study.explain()
    formats, told = thing._repr_mimebundle_()
    assert formats == {"text/plain": f"{thing!r}\n(no picture: OSError: no typeface)"}
    assert told == {}


def test_no_repr_prints_tensors(reader, study):
    check = study.check(mg.Box(8, 8, 30, 40), "active_tb")
    corrected = study.apply(mg.Box(8, 8, 30, 40), "active_tb", confirmed=True)
    things = (
        reader, study, corrected, study.film, study.original, study.explain(), check, reader.loaded, reader.loaded.run,
        study.explain().concepts[0],
    )  # fmt: skip
    for thing in things:
        assert "tensor(" not in repr(thing)
        assert "array(" not in repr(thing)
        assert len(repr(thing)) < 1500, repr(thing)
    for thing in (reader, study, corrected, study.explain()):
        assert len(repr(thing)) < 250
        assert "\n" not in repr(thing)
    best = next(iter(study.prediction))
    assert f"film of 64 x 64 pixels; {best} " in repr(study)
    assert f": {len(reader.concepts)} concepts, {len(reader.classes)} classes; PyTorch)" in repr(reader)


def test_a_check_and_a_reader_are_shown_as_tables_with_escaped_html(reader, study):
    taught = reader.learn("odd_one", "A <b>bold</b> & odd finding.")
    shown = taught._repr_html_()
    assert "A &lt;b&gt;bold&lt;/b&gt; &amp; odd finding." in shown
    assert "not a medical device" in shown
    check = study.check(mg.Box(8, 8, 30, 40), "active_tb")
    told = check._repr_html_()
    assert told.count("<tr>") == 1 + len(reader.concepts)
    assert ("<b>Mismatch" in told) == check.mismatch


def test_a_real_notebook_shows_readers_studies_explanations_and_checks(trained_run, film, tmp_path):
    """Through a real kernel, as Jupyter would ask."""
    from nbclient import NotebookClient

    cells = [
        f"import medgrape as mg\nreader = mg.load({str(trained_run)!r})\nreader",
        f"study = reader.open({str(film)!r})\nstudy",
        "study.explain()",
        "study.check(mg.Box(8, 8, 30, 40), 'active_tb')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(tmp_path))
    shown = [cell.outputs[-1] for cell in notebook.cells]

    assert [sorted(set(one.data) & {"image/png", "text/html"}) for one in shown] == [
        ["text/html"], ["image/png"], ["image/png"], ["text/html"],
    ]  # fmt: skip
    assert all("text/plain" in one.data for one in shown)
    for one in shown[1:3]:
        assert one.metadata["image/png"]["alt"].startswith("Chest X-ray")
        assert picture(one.data).width <= PIXELS
