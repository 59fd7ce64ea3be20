"""Prototypes that a person looked at, discarded and took back."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

import medgrape as mg
from medgrape.concepts import ConceptError
from medgrape.datasets.dataset import Dataset
from medgrape.explain.atlas_sheet import save_sheet
from medgrape.explain.layout import PictureError
from medgrape.runs.checkpoint import SafetyThresholds
from medgrape.vocabulary.curation import CurationError, numbers_in, prototypes_of, spelled


@pytest.fixture(scope="module")
def reader(trained_run):
    return mg.load(trained_run)


@pytest.fixture(scope="module")
def film(drawn_dataset):
    dataset = Dataset.load(drawn_dataset)
    return dataset.film_path(dataset.in_split("test")[0])


def states(reader):
    return reader.loaded.run.model.atlas.kept


def test_every_prototype_is_listed_with_a_training_film_that_shows_its_concept(reader, drawn_dataset):
    cards = prototypes_of(reader.loaded.run)
    assert [(card.concept, card.number) for card in cards] == [
        (name, number) for name in reader.concepts.names for number in range(4)
    ]
    learnt = {record.id: record for record in Dataset.load(drawn_dataset).in_split("train")}
    for card in cards:
        assert learnt[card.film].labels[card.concept] is True
        assert card.kept
        assert card.similarity <= 1.0


def test_the_listed_gain_is_the_rise_of_the_class_from_that_prototype_alone(reader):
    run = reader.loaded.run
    card = prototypes_of(run, "obsolete_tb")[2]
    row = run.concepts.index("obsolete_tb")
    nothing = run.reference_scores.absent.clone()
    speaking = nothing.clone()
    speaking[row, 2] = float(run.exemplars.similarity[row, 2])
    before, after = (run.model.classify(scores.unsqueeze(0)).probabilities[0] for scores in (nothing, speaking))
    gains = (after - before).tolist()
    assert card.gain == pytest.approx(max(gains), abs=1e-6)
    assert card.raises == run.classes[gains.index(max(gains))]
    assert card.gain > 0


def test_a_discarded_prototype_raises_no_class(reader):
    gone, left = prototypes_of(reader.discard("active_tb", [1]).loaded.run, "active_tb")[1:3]
    assert (gone.kept, gone.raises, gone.gain) == (False, None, None)
    assert left.kept
    assert left.gain > 0


def test_maps_of_the_curated_concept_are_those_of_the_prototypes_that_are_left(reader, film):
    before = reader.open(film).evidence
    after = reader.discard("active_tb", [0, 3]).open(film).evidence
    row = reader.concepts.index("active_tb")
    left = before.similarity[row, [1, 2]]
    torch.testing.assert_close(after.mean[row], left.mean(dim=0))
    torch.testing.assert_close(after.strongest[row], left.amax(dim=0))
    assert not torch.equal(after.mean[row], before.mean[row])


def test_maps_of_every_other_concept_stay_as_they_were_to_the_last_bit(reader, film):
    before = reader.open(film).evidence
    after = reader.discard("active_tb", [0, 3]).open(film).evidence
    for row, name in enumerate(reader.concepts.names):
        if name != "active_tb":
            assert torch.equal(after.mean[row], before.mean[row])
            assert torch.equal(after.disagreement[row], before.disagreement[row])
            assert torch.equal(after.scores[row], before.scores[row])


def test_the_head_gets_the_usual_score_instead_of_a_discarded_prototype(reader, film):
    study = reader.open(film)
    row = reader.concepts.index("active_tb")
    scores = study.evidence.scores.clone()
    scores[row, 2] = reader.loaded.run.reference_scores.absent[row, 2]
    expected = reader.loaded.run.model.classify(scores.unsqueeze(0)).probabilities[0]
    prediction = reader.discard("active_tb", [2]).open(film).prediction
    assert [prediction[name] for name in reader.classes] == pytest.approx(expected.tolist(), abs=1e-6)
    assert prediction != pytest.approx(dict(study.prediction), abs=1e-6)


def test_no_explanation_shows_the_film_behind_a_discarded_prototype(reader, film):
    def behind(reader):
        (concept,) = (
            concept for concept in reader.open(film).explain().concepts if concept.concept.name == "active_tb"
        )
        return {exemplar.prototype for exemplar in concept.exemplars}

    shown = behind(reader)
    curated = reader.discard("active_tb", shown) if len(shown) < 4 else reader.discard("active_tb", list(shown)[:3])
    assert shown
    assert behind(curated)
    assert all(states(curated)[reader.concepts.index("active_tb"), number] for number in behind(curated))


def test_restoring_gives_back_the_same_answers_to_the_last_bit(reader, film):
    again = reader.discard("active_tb", [0, 2]).restore("active_tb", [0, 2])
    assert again.open(film).prediction == reader.open(film).prediction
    assert torch.equal(again.open(film).evidence.mean, reader.open(film).evidence.mean)


def test_the_reader_that_was_curated_stays_as_it_is(reader, film):
    before = reader.open(film).prediction
    reader.discard("active_tb", [0, 1, 2])
    assert reader.open(film).prediction == before
    assert states(reader).all()


def test_a_curated_run_is_the_same_after_it_was_saved_and_says_what_was_done(reader, film, tmp_path):
    curated = reader.discard("active_tb", [0, 3])
    saved = curated.save(tmp_path / "curated")
    assert saved.open(film).prediction == curated.open(film).prediction
    (change,) = mg.load(tmp_path / "curated").loaded.run.changes
    assert change.what == "Discarded prototypes 0, 3 of active_tb."
    assert change.parent == reader.loaded.manifest.fingerprint


def test_a_safety_check_that_was_calibrated_on_other_maps_is_calibrated_no_more(reader):
    learnt = SafetyThresholds({"active_tb": 0.1}, 0.1, None, 0.1, 0.9, {"active_tb": 30}, {"name": "drawn_dataset"})
    calibrated = replace(reader, loaded=replace(reader.loaded, run=replace(reader.loaded.run, safety=learnt)))
    curated = calibrated.discard("active_tb", [0]).loaded.run
    assert curated.safety is None
    assert "calibrated again" in curated.changes[-1].what


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([4], "0 to 3; there is no 4"),
        ([-1], "there is no -1"),
        ([0, 1, 2, 3], "without any prototype"),
        ([], "Name at"),
    ],
)
def test_what_cannot_be_discarded_is_refused_with_a_sentence(reader, numbers, message):
    with pytest.raises(CurationError, match=message):
        reader.discard("active_tb", numbers)
    assert states(reader).all()


def test_what_is_gone_cannot_be_discarded_again_and_what_is_there_cannot_be_restored(reader):
    curated = reader.discard("active_tb", [1])
    with pytest.raises(CurationError, match="Prototype 1 of active_tb is discarded already"):
        curated.discard("active_tb", [0, 1])
    with pytest.raises(CurationError, match="Prototype 0 of active_tb is not discarded"):
        curated.restore("active_tb", [0, 1])
    with pytest.raises(CurationError, match="without any"):
        curated.discard("active_tb", [0, 2, 3])


def test_an_unknown_concept_is_refused_with_a_hint(reader):
    with pytest.raises(ConceptError, match="did you mean 'active_tb'"):
        reader.discard("activ_tb", [0])


def test_numbers_are_read_and_spelled_the_same_way():
    assert numbers_in("3,7, 12-15,7") == (3, 7, 12, 13, 14, 15)
    assert spelled((15, 3, 7, 12, 13, 14)) == "3, 7, 12-15"
    assert numbers_in(spelled(range(5))) == tuple(range(5))


@pytest.mark.parametrize("text", ["", "3,", "a", "5-2", "-3", "1.5", "0-9999999"])
def test_numbers_that_are_none_are_refused(text):
    with pytest.raises(CurationError, match="named like 3,7,12-15"):
        numbers_in(text)


def test_a_contact_sheet_frames_every_patch_and_crosses_out_what_is_discarded(reader, tmp_path):
    run, curated = reader.loaded.run, reader.discard("active_tb", [1]).loaded.run
    save_sheet(run, prototypes_of(run), tmp_path / "all.png")
    save_sheet(curated, prototypes_of(curated), tmp_path / "some.png")
    every, some = (np.asarray(Image.open(tmp_path / name)).astype(int) for name in ("all.png", "some.png"))
    orange = np.array([0xD5, 0x5E, 0x00])
    assert (every == orange).all(axis=-1).sum() == 0
    assert (some == orange).all(axis=-1).sum() > 200
    frames = (every == np.array([0xE6, 0x9F, 0x00])).all(axis=-1)
    assert frames.sum() > 100


def test_a_sheet_under_another_name_than_png_is_refused(reader, tmp_path):
    run = reader.loaded.run
    with pytest.raises(PictureError, match=r"sheet\.png"):
        save_sheet(run, prototypes_of(run), tmp_path / "sheet.jpg")
    assert list(tmp_path.iterdir()) == []
