import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageColor, ImageDraw

from medgrape.concepts import Concept, ConceptSet
from medgrape.explain.explanation import Explanation
from medgrape.explain.film_evidence import ConceptEvidence, Exemplar
from medgrape.explain.film_panel import FILM, film_panel, mark_concepts
from medgrape.explain.layout import BACKGROUND, NO_BREAK, PictureError, font, legible, title_of, wrapped
from medgrape.explain.maps import ENLARGED, fitted, resized, similarity_picture, strengths
from medgrape.explain.panels import per_cent
from medgrape.explain.render import MARGIN, draw, save_picture
from medgrape.explain.words import CLEARLY, NOTICE, PERHAPS
from medgrape.films.film import Film, FilmFacts
from medgrape.geometry import Box, FilmSize, PatchGrid, peak

TB = ConceptSet.built_in("tbx11k").concepts
NIH = ConceptSet.built_in("nih").concepts
GRID = PatchGrid(FilmSize(140, 70), 7, 14)


def evidence(concept=TB[0], strength=1.0, spot=(1, 12), absent=0.2, present=0.6, exemplars=0, grid=GRID):
    """A concept that is seen at one patch and nowhere else."""
    mean = np.full((grid.rows, grid.columns), absent - 0.25 * (present - absent))
    mean[spot] = absent + strength * (present - absent)
    spread = np.full_like(mean, 1e-3)
    thumbnail = np.full((32, 32), 90, np.uint8)
    like = tuple(Exemplar(f"tb-{n:06}-00", n, 0.83, thumbnail, Box(8, 8, 12, 12), n) for n in range(exemplars))
    return ConceptEvidence(concept, float(mean[spot]), absent, present, mean, spread, like)


def scene(size=GRID.film, concepts=TB, classes=("healthy", "active_tb"), exemplars=0, **changes):
    """A grey film on which the first concept is clearly seen at the top right, each next one less."""
    grid = PatchGrid(size, 7, 14)
    pixels = np.tile(np.linspace(40, 200, size.width).astype(np.uint8), (size.height, 1))
    ranked = [
        evidence(concept, 1.1 - 0.3 * rank, (1, 12 - rank % 12), exemplars=exemplars, grid=grid)
        for rank, concept in enumerate(concepts)
    ]
    attention = np.eye(len(concepts)) * 0.7 + 0.3 / len(concepts)
    names = tuple(concept.name for concept in concepts)
    told = {name: 1 / len(classes) for name in classes}
    return replace(
        Explanation(
            Film(FilmFacts(format="PNG", size=size, bits=8, photometric="L"), pixels),
            grid,
            told,
            tuple(ranked),
            attention,
            names,
        ),
        **changes,
    )


@pytest.fixture
def written(monkeypatch):
    """Every text that is drawn, each checked to lie wholly on its panel."""
    texts, real = [], ImageDraw.ImageDraw.text

    def text(self, xy, text, *args, **options):
        left, top, right, bottom = self.textbbox(xy, text, font=options["font"], anchor=options["anchor"])
        assert min(left, top) >= 0, f"{text!r} begins outside its panel"
        assert np.all((right, bottom) <= np.array(self.im.size)), f"{text!r} runs out of its panel"
        texts.append(text)
        return real(self, xy, text, *args, **options)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", text)
    return texts


def test_the_peak_lies_in_the_middle_of_the_strongest_patch():
    assert peak(evidence(spot=(1, 12)).mean, GRID) == pytest.approx((125.0, 15.0), abs=0.5)


def test_colour_lies_on_the_strong_patch_and_the_rest_of_the_film_is_unchanged():
    film = scene().pixels
    shown = np.asarray(similarity_picture(film, evidence(spot=(1, 12)), GRID.film), int)
    changed = np.abs(shown - film[..., None]).max(axis=2) > 0
    assert changed[10:20, 120:130].mean() > 0.8
    assert not changed[:, :110].any()
    assert not changed[30:].any()


def test_a_concept_at_its_absent_score_paints_nothing_though_one_patch_stands_out():
    film = scene().pixels
    shown = np.asarray(similarity_picture(film, evidence(strength=0.0), GRID.film))
    assert np.array_equal(shown, np.repeat(film[..., None], 3, axis=2))


def test_the_same_strength_has_the_same_colour_for_every_concept():
    film = scene().pixels
    narrow, wide = evidence(absent=0.50, present=0.55), evidence(TB[1], absent=-0.2, present=0.9)
    at_peak = [np.asarray(similarity_picture(film, one, GRID.film))[15, 125] for one in (narrow, wide)]
    assert np.abs(at_peak[0].astype(int) - at_peak[1]).max() <= 1
    weak = np.asarray(similarity_picture(film, evidence(strength=0.3), GRID.film))[15, 125]
    assert np.abs(at_peak[0].astype(int) - weak).max() > 40


def test_words_follow_the_strength():
    just_below = 1e-6
    said = [evidence(strength=s).words for s in (2.0, CLEARLY, CLEARLY - just_below, PERHAPS - just_below, -1.0)]
    assert said == ["clearly seen", "clearly seen", "perhaps", "not seen", "not seen"]


@pytest.mark.parametrize("broken", [{"present_score": 0.2}, {"score": float("nan")}, {"absent_score": float("nan")}])
def test_a_score_that_is_not_informative_is_called_neither_seen_nor_absent(broken, written):
    mute = replace(evidence(absent=0.2), **broken)
    assert mute.words == "cannot be told"
    assert not strengths(mute).any()
    draw(replace(scene(concepts=TB[:1]), concepts=(mute,)))
    assert "cannot be told" in written


def test_a_visible_finding_is_outlined_and_an_absent_one_is_not():
    film = np.asarray(film_panel(scene(concepts=TB[:1]), []))
    bright = scene(concepts=TB[:1])
    outlined = np.asarray(film_panel(bright, mark_concepts(bright)))
    down, across = np.nonzero((film != outlined).any(axis=2))
    assert across.min() > 0.7 * FILM.width
    assert down.max() < 0.6 * film.shape[0]
    absent = replace(bright, concepts=(evidence(strength=PERHAPS - 0.01),))
    assert np.array_equal(film, np.asarray(film_panel(absent, mark_concepts(absent))))


SIZES = [(64, 64), (30, 90), (400, 40), (3000, 3000), (1000, 10), (3, 500)]


@pytest.mark.parametrize("size", SIZES)
def test_films_of_every_size_keep_their_proportions_and_nothing_runs_out_of_the_picture(size, written):
    film = FilmSize(*size)
    picture = draw(scene(film, exemplars=2, warnings=("the film is small",)))
    assert 1500 < picture.width < 1700
    assert "Warning: the film is small" in written
    rim, plain = np.asarray(picture), ImageColor.getrgb(BACKGROUND)
    for strip in (rim[:MARGIN], rim[-MARGIN:], rim[:, :MARGIN], rim[:, -MARGIN:]):
        assert np.all(strip == plain)
    shown = fitted(film, FILM)
    assert shown.width <= min(FILM.width, ENLARGED * film.width)
    assert abs(shown.width * film.height - shown.height * film.width) <= max(size)


@pytest.mark.parametrize(("count", "classes"), [(1, 2), (4, 14), (5, 3), (14, 14)])
def test_one_to_fourteen_concepts_and_classes_are_all_named(count, classes, written):
    named = tuple(f"a rather long class name number {n}" for n in range(classes))
    draw(scene(concepts=NIH[:count], classes=named))
    text = " ".join(written)
    assert all(concept.title in text for concept in NIH[:count])
    assert text.count(per_cent(1 / classes)) == classes + 1
    assert len({line for line in written if line.startswith("A rather") and "…" in line}) == classes, "told apart"
    assert ("Also looked for" in text) == (count > 4)
    assert text.count("score ") == min(count, 4)


def test_long_and_foreign_names_are_drawn_or_replaced_by_the_short_name(written):
    long, swiss, chinese = "Endless " * 40, "Lungenödem, Ωμέγα, туберкулёз", "活动性肺结核 (活动期)"
    concepts = tuple(Concept(f"finding_{n}", title, "x" * 900) for n, title in enumerate((long, swiss, chinese)))
    draw(scene(concepts=concepts, classes=("活动", "a\n\u202eb"), warnings=("\u0000" * 9 + "z" * 999,)))
    assert any(swiss in text for text in written)
    assert title_of(concepts[2]) == "finding 2"
    assert legible("活e\u0301\u202e\n x") == "?é x"


def test_wrapped_lines_fit_the_width():
    lines = wrapped("one two three four five " * 9, font(15), 120, most=3)
    assert len(lines) == 3
    assert lines[-1].endswith("…")
    assert max(font(15).getlength(line) for line in lines) <= 120


def test_training_films_are_shown_with_their_names_or_the_picture_says_that_there_are_none(written):
    draw(scene(concepts=TB[:1], exemplars=3))
    assert "no film to show" not in written
    assert [text for text in written if text.startswith("like film")] == [f"like film tb-{n:06}-00" for n in range(3)]
    assert written.count("similarity 0.83") == 3
    draw(scene(concepts=TB[:1]))
    assert "no film to show" in written


def test_the_picture_says_which_finding_attends_to_which(written):
    draw(scene(attention=np.array([[0.71, 0.29, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])))
    assert f"{TB[0].title} listens to: itself 0.71, {TB[1].title} 0.29" in written
    assert f"{TB[1].title} listens to: itself 1.00" in written
    draw(scene(attention=None))
    assert "This model does not tell." in written
    weights = np.eye(14) * 0.6
    weights[3, 8] = 0.4
    draw(scene(concepts=NIH, attention=weights))
    assert [text for text in written if "listens to" in text][-1] == f"{NIH[3].title} listens to {NIH[8].title}"
    draw(scene(concepts=NIH, attention=np.eye(14)))
    assert "On this film no finding listens to another." in written


def test_a_concept_that_the_head_does_not_know_is_shown_in_a_colour_of_its_own(written):
    added = scene(concept_names=tuple(concept.name for concept in TB[:2]), attention=np.eye(2))
    assert len({concept.ink for concept in mark_concepts(added)}) == 3
    draw(added)
    assert [text for text in written if "listens to" in text] == [f"{c.title} listens to: itself 1.00" for c in TB[:2]]


def test_a_concept_keeps_its_colour_from_film_to_film():
    one = scene()
    other = replace(one, concepts=one.concepts[::-1])
    inks = [{concept.title: concept.ink for concept in mark_concepts(film)} for film in (one, other)]
    assert inks[0] == inks[1]


def test_every_picture_has_the_notice(written):
    draw(scene())
    assert NOTICE in written


def test_only_certain_answers_are_shown_as_0_or_100_per_cent():
    told = [per_cent(p).replace(NO_BREAK, " ") for p in (0.0, 0.001, 0.02, 0.914, 0.9999, 1.0, float("nan"))]
    assert told == ["0 %", "< 1 %", "2 %", "91 %", "> 99 %", "100 %", "not known"]


def test_a_picture_is_saved_atomically(tmp_path, monkeypatch):
    path = tmp_path / "out/evidence.png"
    scene().save(path)
    before = path.read_bytes()
    with Image.open(path) as picture:
        assert picture.size == draw(scene()).size

    def half(_picture, target, _format):
        target.write_bytes(b"half a picture")
        raise OSError("disk full")

    monkeypatch.setattr(Image.Image, "save", half)
    for name in ("evidence.png", "new.png"):
        with pytest.raises(OSError, match="disk full"):
            save_picture(scene(), path.with_name(name))
    assert [file.name for file in path.parent.iterdir()] == ["evidence.png"]
    assert path.read_bytes() == before


def test_another_kind_of_file_is_refused_before_anything_is_drawn(tmp_path):
    with pytest.raises(PictureError, match=r"evidence\.png"):
        scene().save(tmp_path / "evidence.jpg")
    assert not list(tmp_path.iterdir())


def test_the_json_of_an_explanation_is_complete():
    told = json.loads(json.dumps(scene(exemplars=1).to_json(), allow_nan=False))
    first = told["concepts"][0]
    assert (first["name"], first["title"], first["words"]) == ("active_tb", TB[0].title, "clearly seen")
    assert (first["score"], first["strength"]) == (0.64, 1.1)
    assert first["peak"] == pytest.approx({"x": 125.0, "y": 15.0}, abs=0.5)
    assert np.array(first["mean"]).shape == np.array(first["disagreement"]).shape == (7, 14)
    assert first["mean"][1][12] == 0.64
    assert first["disagreement"][0][0] == 0.001
    assert (first["exemplars"][0]["film"], first["exemplars"][0]["picture"]) == ("tb-000000-00", 0)
    assert first["moves"] is None
    assert first["exemplars"][0]["patch"] == {"x1": 8.0, "y1": 8.0, "x2": 12.0, "y2": 12.0}
    assert {"listener": "active_tb", "speaker": "obsolete_tb", "weight": 0.1} in told["attention"]
    assert told["probabilities"] == {"healthy": 0.5, "active_tb": 0.5}


def test_numbers_that_are_not_finite_become_null():
    broken = evidence()
    broken.mean[0, 0] = np.nan
    film = replace(
        scene(concepts=TB[:1], attention=None),
        probabilities={"healthy": float("nan")},
        concepts=(replace(broken, present_score=float("nan")),),
    )
    told = json.loads(json.dumps(film.to_json(), allow_nan=False))
    assert told["probabilities"]["healthy"] is None
    assert told["attention"] is None
    assert told["concepts"][0]["strength"] is None
    assert told["concepts"][0]["mean"][0][0] is None
    draw(film)


def test_a_film_at_its_own_size_is_not_resampled():
    film = scene().pixels
    assert np.array_equal(resized(film, GRID.film), film)
