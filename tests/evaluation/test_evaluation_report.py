import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import cv2
import numpy as np
import pytest
import torch
from evaluation_scenes import drawn_dataset

from medgrape.evaluation.examples import example_films, example_pairs
from medgrape.evaluation.report import NOTICE, evaluate_readings, write_report

EVIL = '<script>alert("x")</script>'
PROTOTYPES = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0))
FACTS = {"versions": {"torch": "2.13"}, "best loss": float("nan"), "shape": np.int64(3), "tags": ("a", "b"), "x": EVIL}


class Page(HTMLParser):
    """The tags, figures and words of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.figures, self.words, self.order = [], [], [], []
        self._figure = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "data":
            self._figure = dict(attrs)

    def handle_data(self, data):
        self.words.append(data)
        if self._figure is not None:
            self.figures.append((self._figure["data-figure"], self._figure["value"], data))
            self._figure = None


@pytest.fixture(scope="module")
def read():
    return drawn_dataset(classes=("healthy", EVIL, "active & $open$"))


@pytest.fixture(scope="module")
def evaluation(read):
    return evaluate_readings(read, PROTOTYPES, FACTS, run=f"run {EVIL}", refused={f"film {EVIL}": "it is empty."})


@pytest.fixture(scope="module")
def files(read, evaluation, tmp_path_factory):
    grey = np.full((64, 64), 90, dtype=np.uint8)
    pictures = dict.fromkeys(example_films(evaluation.localisation), grey)
    return write_report(evaluation, read, tmp_path_factory.mktemp("report"), pictures=pictures)


@pytest.fixture(scope="module")
def page(files):
    return Page(files.html.read_text("utf-8"))


@pytest.fixture(scope="module")
def report(files):
    return json.loads(files.json.read_text("utf-8"), parse_constant=lambda name: pytest.fail(f"{name} in report.json"))


def at(report, path):
    for step in path.split("."):
        report = report[int(step)] if isinstance(report, list) else report[step]
    return report


def test_every_figure_on_the_page_equals_that_in_the_json_file(page, report):
    assert len(page.figures) > 60
    for path, exact, shown in page.figures:
        value = at(report, path)
        assert float(exact) == value, path
        assert shown == (f"{value:.3f}" if isinstance(value, float) else f"{value:,}"), path
    wanted = {"classification.macro_f1", "classification.majority.macro_f1", "localisation.per_pair.fixed"}
    wanted |= {"localisation.per_film.maximum.share", "detection.concepts.1.auc", "dispersion.within"}
    wanted |= {"calibration.constant.brier", "classification.confusion.2.2", "films.refused"}
    assert wanted <= {path for path, _, _ in page.figures}


def test_the_figures_in_the_json_file_equal_the_computed_ones(report, evaluation):
    assert report["classification"]["macro_f1"] == evaluation.classification.macro_f1
    assert report["localisation"]["per_pair"]["mean"]["hits"] == evaluation.localisation.per_pair.mean.hits
    assert len(report["localisation"]["pairs"]) == evaluation.localisation.per_pair.count
    assert report["films"] == {"read": 60, "refused": 1, "patients": 30, "with_boxes": evaluation.films.with_boxes}


def test_the_headline_has_the_result_and_the_trivial_answer(evaluation):
    counted = evaluation.classification
    first, second = evaluation.headline
    assert first.startswith(f"Macro-F1 {counted.macro_f1:.3f} (95 % interval {counted.interval.low:.3f} to ")
    assert first.endswith(f"always answering 'healthy' gives {counted.majority.macro_f1:.3f}.")
    assert f"one fixed point for each concept {evaluation.localisation.per_pair.fixed:.3f}" in second


def test_the_page_says_that_this_is_no_medical_device_right_after_the_result(page, evaluation):
    words = [word.strip() for word in page.words if word.strip()]
    assert words.index(evaluation.headline[-1]) + 1 == words.index(NOTICE)


def test_the_page_loads_nothing_from_elsewhere(files, page):
    html = re.sub(r"data:image/jpeg;base64,[A-Za-z0-9+/=]+", "data:", files.html.read_text("utf-8"))
    assert "http://" not in html
    assert "https://" not in html
    for tag, attributes in page.tags:
        assert tag not in {"script", "link", "iframe", "object", "embed", "base", "form", "a"}
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith(("#", "data:image/jpeg;base64,"))
    assert "@import" not in html
    assert set(re.findall(r"url\((.)", html)) <= {"#"}


def test_the_policy_allows_only_the_style_and_the_pictures_of_the_page(files, page):
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    style = re.search(r"<style>(.*?)</style>", files.html.read_text("utf-8"), re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'")
    assert "unsafe" not in policy


def test_names_that_look_like_scripts_are_shown_as_text(files, page):
    html = files.html.read_text("utf-8")
    assert "<script" not in html.lower()
    assert "&lt;script&gt;" in html
    assert sum(EVIL in word for word in page.words) >= 4, "run, class, fact and refused film are still shown"


def test_ids_on_the_page_are_unique(page):
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(names) == len(set(names))
    links = {a["href"][1:] for _, a in page.tags if "href" in a}
    links |= {m for _, a in page.tags for v in a.values() for m in re.findall(r"url\(#([^)]+)\)", v or "")}
    assert links
    assert links <= set(names)


def test_every_plot_and_picture_has_a_text_alternative(page):
    plots = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert [a["aria-label"].split()[0] for a in plots] == ["Reliability", "ROC", "Pointing", "Mean"]
    assert all(a["role"] == "img" for a in plots)
    pictures = [attributes for tag, attributes in page.tags if tag == "img"]
    assert len(pictures) == 8
    assert all("highest at" in a["alt"] for a in pictures)


def test_the_verdict_on_a_map_is_a_word_and_not_a_colour_alone(page, report):
    wanted = report["localisation"]["per_pair"]
    assert wanted["mean"]["interval"]["low"] > wanted["fixed"]
    assert "▲" in page.words
    assert any(word.strip() == "better" for word in page.words)


def test_the_same_readings_give_the_same_page(read, evaluation, tmp_path):
    first, second = (write_report(evaluation, read, tmp_path / name).html.read_bytes() for name in ("a", "b"))
    assert first == second


def test_without_pictures_there_are_no_examples(read, evaluation, tmp_path):
    html = write_report(evaluation, read, tmp_path).html.read_text("utf-8")
    assert "<h2>Examples</h2>" not in html
    assert "<img" not in html


def test_facts_that_are_not_finite_numbers_are_written_as_text(report):
    assert report["facts"] == {
        "versions": {"torch": "2.13"},
        "best loss": "nan",
        "shape": 3,
        "tags": ["a", "b"],
        "x": EVIL,
    }


def test_examples_are_evenly_spaced_over_all_pairs_by_name(evaluation):
    chosen = example_pairs(evaluation.localisation, 3)
    ordered = sorted((pair.film, pair.concept) for pair in evaluation.localisation.pairs)
    middle = round((len(ordered) - 1) / 2)
    assert [(pair.film, pair.concept) for pair in chosen] == [ordered[0], ordered[middle], ordered[-1]]


def test_an_example_picture_is_a_readable_jpeg_of_the_films_proportions(page):
    uri = next(a["src"] for tag, a in page.tags if tag == "img")
    picture = cv2.imdecode(np.frombuffer(base64.b64decode(uri.split(",")[1]), np.uint8), cv2.IMREAD_COLOR)
    assert max(picture.shape) == 360
