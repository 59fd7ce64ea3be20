import subprocess
import sys
from copy import deepcopy
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

import medgrape as mg
from medgrape.config import TextSettings
from medgrape.datasets.cache import fingerprint
from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError
from medgrape.files import sha256
from medgrape.films.film import FilmError
from medgrape.films.reading import read_film, read_prepared
from medgrape.geometry import BoxOutsideError
from medgrape.reader import Reader
from medgrape.runs.checkpoint import SafetyRule, SafetyThresholds
from medgrape.vocabulary.curation import prototypes_of
from medgrape.vocabulary.encoders import TextEncoderError
from medgrape.vocabulary.learning import point_at
from medgrape.vocabulary.new_concept import known_concepts
from small_settings import small

HOLE = "A thick-walled lucency in the lung."


@pytest.fixture(scope="module")
def reader(trained_run):
    return mg.load(trained_run)


@pytest.fixture(scope="module")
def boxed(drawn_dataset):
    """Two training films with the first box of each."""
    dataset = Dataset.load(drawn_dataset)
    films = [film for film in dataset.in_split("train") if film.id in dataset.boxes_by_film][:2]
    return [(dataset.film_path(film), dataset.boxes_by_film[film.id][0].box) for film in films]


@pytest.fixture(scope="module")
def test_films(drawn_dataset):
    """Each whole, and as a model sees it."""
    dataset = Dataset.load(drawn_dataset)
    paths = [dataset.film_path(film) for film in dataset.in_split("test")[:3]]
    return [
        (read_film(path, small().limits), read_prepared(path, small().limits, small().preprocessing)) for path in paths
    ]


@pytest.fixture(scope="module")
def described(reader):
    """Knows a cavity from its description."""
    return reader.learn("cavity", HOLE)


@pytest.fixture(scope="module")
def shown(reader, boxed):
    """Knows a cavity from its description and two films with a box each."""
    return reader.learn("cavity", HOLE, boxed)


@pytest.fixture(scope="module")
def textless(reader):
    """The same run as if it had been trained without a text encoder."""
    run = reader.loaded.run
    model = deepcopy(run.model)
    model.anchors = None
    config = run.config.model_copy(update={"text": TextSettings(encoder="none")})
    return Reader(replace(reader.loaded, run=replace(run, model=model, config=config)))


def answers(reader, films):
    studies = [reader.study(*film) for film in films]
    return [(study.evidence, study.output.probabilities) for study in studies]


def assert_old_answers_stay(before, after, films, known=3):
    for (old, shares), (new, now) in zip(answers(before, films), answers(after, films), strict=True):
        assert torch.equal(shares, now)
        for kind in ("similarity", "mean", "disagreement", "strongest", "scores"):
            assert torch.equal(getattr(old, kind), getattr(new, kind)[:known]), kind


@pytest.mark.parametrize("way", ["described", "shown"])
def test_a_new_concept_changes_no_old_map_and_no_class_by_a_single_bit(request, reader, test_films, way):
    learnt = request.getfixturevalue(way)
    assert learnt.concepts.names == (*reader.concepts.names, "cavity")
    assert_old_answers_stay(reader, learnt, test_films)


def test_a_second_new_concept_leaves_the_first_as_it_was(shown, test_films):
    second = shown.learn("nodule", "A round shadow.")
    assert_old_answers_stay(shown, second, test_films, known=4)


@pytest.mark.parametrize("grown", [False, True])
def test_a_new_concept_leaves_batches_of_films_as_they_were_too(reader, shown, grown):
    films = torch.rand(5, 1, 64, 64, generator=torch.Generator().manual_seed(1))
    old, new = reader.loaded.run.model, (shown.grow_head() if grown else shown).loaded.run.model
    with torch.no_grad():
        (before, maps), (after, more) = old.predict_with_all_maps(films), new.predict_with_all_maps(films)
    assert torch.equal(maps.mean, more.mean[:, :3])
    assert torch.equal(maps.strongest, more.strongest[:, :3])
    assert torch.equal(before.logits, after.logits)


def test_the_reader_that_was_asked_to_learn_stays_what_it_was(reader):
    before = {name: tensor.clone() for name, tensor in reader.loaded.run.model.state_dict().items()}
    reader.learn("cavity", HOLE).grow_head()
    after = reader.loaded.run.model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    assert len(reader.concepts) == 3
    assert reader.loaded.run.changes == ()


def test_a_saved_run_names_its_parent_and_answers_alike(reader, boxed, test_films, tmp_path):
    learnt = reader.learn("cavity", HOLE, [*boxed[:1], boxed[1][0]]).grow_head()
    learnt.save(tmp_path / "new")
    loaded = mg.load(tmp_path / "new")
    parent = reader.loaded.manifest.fingerprint
    assert [(change.parent, change.what) for change in loaded.loaded.run.changes] == [
        (parent, "Learnt cavity from its description and 2 films (1 box)."),
        (parent, "Let the head listen to cavity."),
    ]
    assert_old_answers_stay(learnt, loaded, test_films, known=4)
    for film in test_films:
        assert loaded.study(*film).explain().to_json() == learnt.study(*film).explain().to_json()


def test_a_new_concept_is_at_once_in_findings_maps_scores_and_safety_checks(shown, test_films):
    study = shown.study(*test_films[0])
    concepts = {concept.concept.name: concept for concept in study.explain().concepts}
    assert concepts["cavity"].concept.title == "Cavity"
    assert concepts["cavity"].mean.shape == concepts["active_tb"].mean.shape
    assert study.evidence.scores.shape[0] == 4
    assert "cavity" in {concept.name for concept in study.check(mg.Box(0, 0, 20, 20), "active_tb").concepts}
    assert (concepts["cavity"].moves, set(concepts["active_tb"].moves)) == (None, set(study.prediction))
    assert set(shown.grow_head().study(*test_films[0]).moves) == set(shown.concepts.names)


@pytest.mark.parametrize("way", ["reader", "textless"])
def test_a_film_with_a_box_teaches_the_concept_to_point_into_it(request, boxed, way):
    reader = request.getfixturevalue(way)
    grid = reader.open(boxed[0][0]).evidence.grid
    example = boxed[0][0], grid.patch(1, grid.columns - 2)
    learnt = reader.learn("cavity", HOLE, [example])
    (point,) = point_at(learnt.loaded.run, "cavity", [example])
    assert point.in_box is True
    assert example[1].contains(point.x, point.y)


def test_a_concept_known_by_its_description_alone_never_leads_and_is_not_called_seen(reader, described, test_films):
    run = described.loaded.run
    assert run.reference_scores.absent_peak[3] == run.reference_scores.present_peak[3]
    assert "cavity" in SafetyRule.of(run).untrained
    explanation = described.study(*test_films[0]).explain().to_json()
    (cavity,) = (concept for concept in explanation["concepts"] if concept["name"] == "cavity")
    assert cavity["words"] == "cannot be told"
    assert cavity["exemplars"] == []
    assert any("Cavity" in warning for warning in explanation["warnings"])
    assert reader.loaded.run.metrics["untrained_concepts"] == [
        name for name in run.metrics["untrained_concepts"] if name != "cavity"
    ]


def test_the_inside_of_the_box_is_what_the_concept_usually_scores_and_the_outside_what_it_does_not(reader, boxed):
    film, box = boxed[0]
    learnt = reader.learn("cavity", HOLE, [(film, box)])
    evidence, reference = learnt.open(film).evidence, learnt.loaded.run.reference_scores
    inside = torch.from_numpy(evidence.grid.overlap(box) > 0)
    assert float(reference.present_peak[3]) == pytest.approx(float(evidence.mean[3][inside].max()), abs=1e-5)
    assert float(reference.absent_peak[3]) == pytest.approx(float(evidence.mean[3][~inside].max()), abs=1e-5)
    outside = evidence.similarity[3][:, ~inside].amax(dim=1)
    assert torch.allclose(reference.absent[3], outside, atol=1e-5)
    assert torch.equal(learnt.loaded.run.model.atlas.silent[3], reference.absent[3])


def test_films_without_a_box_teach_where_to_look_but_not_how_strong_is_strong(reader, boxed):
    run = reader.learn("cavity", HOLE, [film for film, _ in boxed]).loaded.run
    assert run.reference_scores.absent_peak[3] == run.reference_scores.present_peak[3]
    assert "cavity" not in SafetyRule.of(run).untrained


def test_two_boxes_given_for_one_film_are_one_film_with_two_boxes(reader, boxed):
    film, box = boxed[0]
    learnt = reader.learn("cavity", HOLE, [(film, box), (film, mg.Box(0, 0, 10, 10))])
    assert learnt.loaded.run.changes[-1].what == "Learnt cavity from its description and 1 film (2 boxes)."


def test_example_films_are_shown_and_counted_as_learnt_from(reader, boxed, tmp_path):
    film = tmp_path / "seen elsewhere.png"
    picture = cv2.flip(cv2.imread(str(boxed[0][0]), cv2.IMREAD_GRAYSCALE), 0)
    cv2.imwrite(str(film), picture)
    learnt = reader.learn("cavity", HOLE, [film])
    run = learnt.loaded.run
    assert run.learnt_from == (*reader.loaded.run.learnt_from, fingerprint(sha256(film)))
    concept = {concept.concept.name: concept for concept in learnt.open(film).explain().concepts}["cavity"]
    assert {exemplar.film for exemplar in concept.exemplars} == {"seen elsewhere"}
    thumbnail = concept.exemplars[0].thumbnail
    assert thumbnail.shape == (112, 112)
    small = cv2.resize(picture, (112, 112), interpolation=cv2.INTER_AREA)
    assert np.corrcoef(thumbnail.flatten(), small.flatten())[0, 1] > 0.95


@pytest.mark.parametrize("rule", [{"show": False}, {"withheld": ("FILM",)}])
def test_a_withheld_example_leaves_no_picture_in_the_run(reader, boxed, rule):
    film = boxed[0][0]
    settings = {name: (film.stem,) if value == ("FILM",) else value for name, value in rule.items()}
    run = reader.loaded.run
    config = run.config.model_copy(update={"exemplars": run.config.exemplars.model_copy(update=settings)})
    discreet = Reader(replace(reader.loaded, run=replace(run, config=config)))
    learnt = discreet.learn("cavity", HOLE, [film]).loaded.run.exemplars
    assert (learnt.film[3] == -1).all()
    assert len(learnt.thumbnails) == len(run.exemplars.thumbnails)


def test_without_a_text_encoder_films_alone_teach_a_concept(textless, boxed, test_films):
    learnt = textless.learn("cavity", HOLE, boxed[:1])
    assert learnt.loaded.run.changes[-1].what == "Learnt cavity from 1 film (1 box)."
    assert_old_answers_stay(textless, learnt, test_films)


def test_without_text_encoder_and_films_nothing_is_learnt_and_nothing_is_random(textless):
    with pytest.raises(UserError, match="needs at least one example film"):
        textless.learn("cavity", HOLE)


def test_learning_the_same_twice_gives_the_same_run(reader, boxed):
    first, second = (reader.learn("cavity", HOLE, boxed, seed=5).grow_head().loaded.run.model for _ in range(2))
    assert all(torch.equal(tensor, second.state_dict()[name]) for name, tensor in first.state_dict().items())


def with_text(reader, encoder):
    run = reader.loaded.run
    config = run.config.model_copy(update={"text": TextSettings(encoder=encoder)})
    return Reader(replace(reader.loaded, run=replace(run, config=config)))


@pytest.mark.parametrize("encoder", ["no/such/folder", "none"])
def test_a_run_whose_text_encoder_is_missing_learns_nothing(reader, boxed, encoder):
    with pytest.raises(TextEncoderError, match="text encoder"):
        with_text(reader, encoder).learn("cavity", HOLE, boxed)


def test_another_text_encoder_than_the_runs_own_is_refused(reader, monkeypatch):
    monkeypatch.setattr("medgrape.vocabulary.encoders.lexical._WORD_WEIGHT", 5.0)
    with pytest.raises(TextEncoderError, match="not the one that the run was trained with"):
        reader.learn("cavity", HOLE)


@pytest.mark.parametrize(
    ("name", "description", "examples", "complaint"),
    [
        ("active_tb", HOLE, [], "has 'active_tb' already"),
        ("Cavity!", HOLE, [], "lower case letters"),
        ("cavity", " ", [], "needs a title and a description"),
        ("cavity", "...", [], "no words"),
        ("cavity", HOLE, ["nowhere.png"], "nowhere.png"),
        ("cavity", HOLE, "film.png", "Examples are a list"),
    ],
)
def test_bad_input_is_one_clear_sentence(reader, name, description, examples, complaint):
    with pytest.raises(UserError, match=complaint) as refusal:
        reader.learn(name, description, examples)
    assert "\n" not in str(refusal.value)


def test_an_example_that_is_no_film_is_refused_by_name(reader, tmp_path):
    (tmp_path / "notes.png").write_text("no film")
    with pytest.raises(FilmError, match=r"notes\.png.*not a film"):
        reader.learn("cavity", HOLE, [tmp_path / "notes.png"])


def test_a_box_beside_the_film_is_refused_and_one_over_its_edge_is_cut(reader, boxed):
    film = boxed[0][0]
    with pytest.raises(BoxOutsideError, match="outside the film"):
        reader.learn("cavity", HOLE, [(film, mg.Box(5000, 0, 5010, 10))])
    over = reader.learn("cavity", HOLE, [(film, mg.Box(-50, -50, 20, 20))]).loaded.run.model
    on = reader.learn("cavity", HOLE, [(film, mg.Box(0, 0, 20, 20))]).loaded.run.model
    assert torch.equal(over.atlas.vectors, on.atlas.vectors)


def test_a_grown_head_uses_the_new_concept_and_gives_the_same_classes(reader, shown, test_films):
    grown = shown.grow_head()
    assert_old_answers_stay(shown, grown, test_films, known=4)
    assert grown.study(*test_films[0]).output.attention.shape == (1, 4, 4)
    old, edges = reader.loaded.run.model.graph.edges, grown.loaded.run.model.graph.edges
    assert torch.equal(edges[:3, :3], old)
    assert edges[3].all()
    assert edges[:, 3].all()
    assert [concept.judged for concept in known_concepts(shown.loaded.run)] == [True, True, True, False]
    assert [(concept.judged, concept.trained) for concept in known_concepts(grown.loaded.run)][2:] == [
        (True, True),
        (True, False),
    ]


def test_a_grown_head_uses_given_probabilities_as_edges(shown):
    grown = shown.grow_head(torch.zeros(4, 4))
    assert torch.equal(grown.loaded.run.model.graph.edges, torch.eye(4, dtype=torch.bool))


def test_a_head_that_knows_every_concept_does_not_grow(reader, shown):
    with pytest.raises(UserError, match="uses every concept already"):
        reader.grow_head()
    with pytest.raises(UserError, match="4 x 4"):
        shown.grow_head(torch.zeros(3, 3))


@pytest.mark.parametrize("grown", [False, True])
def test_the_evidence_with_a_new_concept_is_drawn(shown, test_films, tmp_path, grown):
    (shown.grow_head() if grown else shown).study(*test_films[0]).explain().save(tmp_path / "e.png")
    assert cv2.imread(str(tmp_path / "e.png")).shape[1] > 1000


def test_thresholds_from_before_a_new_concept_are_called_old_unless_it_cannot_lead(reader, boxed):
    boxes = dict.fromkeys(reader.concepts.names, 40)
    calibrated = SafetyThresholds({}, 0.1, None, 0.1, 0.9, boxes, {"name": "drawn_dataset"})
    fresh = reader.changed(replace(reader.loaded.run, safety=calibrated), "Calibrated.")

    assert SafetyRule.of(fresh.loaded.run).calibrated
    assert SafetyRule.of(fresh.learn("cavity", HOLE).loaded.run).calibrated
    old = SafetyRule.of(fresh.learn("cavity", HOLE, boxed).loaded.run)
    assert not old.calibrated
    assert old.origin.endswith("before the model knew Cavity; calibrate it again.")


def test_examples_of_another_shape_are_one_clear_sentence():
    """In a process of its own, in which nothing but the code itself looks at types."""
    script = """
from medgrape.geometry import Box
from medgrape.errors import UserError
from medgrape.vocabulary.learning import group_boxes
for wrong in ("film.png", [("film.png", (1, 2, 3, 4))], [3], ("film.png", Box(1, 1, 2, 2))):
    try:
        group_boxes(wrong)
    except UserError as error:
        print(error)
"""
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    first, *others = output.splitlines()
    assert "list, even if there is only one" in first
    assert len(others) == 3
    assert all(line.endswith("is neither.") for line in others)


def test_titles_in_another_script_are_distinguished(reader):
    once = reader.learn("hole", HOLE, title="Каверна")
    assert once.learn("knot", HOLE, title="Узел").concepts["knot"].title == "Узел"
    with pytest.raises(UserError, match="already"):
        once.learn("knot", HOLE, title="каверна")


def test_checking_and_correcting_runs_no_backbone(shown, test_films, monkeypatch):
    study = shown.study(*test_films[0])
    monkeypatch.setattr(type(study.run.model.backbone), "forward", lambda *_: pytest.fail("the backbone ran"))
    study.check(mg.Box(1, 1, 20, 20), "cavity")
    corrected = study.apply(mg.Box(1, 1, 20, 20), "cavity", confirmed=True).reject("active_tb")
    assert corrected.prediction != study.prediction


def test_the_atlas_lists_a_new_concept_at_once(shown):
    cards = prototypes_of(shown.loaded.run, "cavity")
    assert [card.number for card in cards] == list(range(4))
    assert all(card.film is not None and card.raises is None for card in cards)
