"""Contributions of the concepts to the classes."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from correcting_scenes import CONCEPTS, LEFT, RIGHT, boxes, study, untaught
from medgrape.corrections.statements import BoxCorrection, Rejection

RUN = untaught()


def told(one):
    return {found.concept.name: found.moves for found in one.explain().concepts}


@given(st.lists(st.builds(BoxCorrection, boxes(), st.sampled_from([*CONCEPTS.names, None]), st.booleans()), max_size=2))
@settings(deadline=None, max_examples=25)
def test_a_contribution_is_what_rejecting_the_concept_takes_away(corrections):
    opened = study(RUN).correct(*corrections, confirmed=True)
    for name, moves in told(opened).items():
        without = opened.reject(name).prediction
        assert list(moves) == list(opened.prediction)
        assert moves == pytest.approx({one: opened.prediction[one] - without[one] for one in moves}, abs=1e-6)
        assert sum(moves.values()) == pytest.approx(0.0, abs=1e-6)


def test_every_concept_of_an_untrained_model_contributes_to_the_classes():
    assert all(max(map(abs, moves.values())) > 1e-3 for moves in told(study(RUN)).values())


def test_a_rejected_concept_contributes_nothing_and_the_others_are_computed_without_it():
    gone = study(RUN).apply(LEFT, "cavity").reject("cavity")
    moves = told(gone)
    assert moves["cavity"] == dict.fromkeys(gone.prediction, 0.0)
    without = gone.reject("nodule").prediction
    assert moves["nodule"] == pytest.approx({one: gone.prediction[one] - without[one] for one in without}, abs=1e-6)
    emptied = told(gone.correct(Rejection(None)))
    assert len(emptied) == 3
    assert all(moved == dict.fromkeys(gone.prediction, 0.0) for moved in emptied.values())


def test_all_contributions_are_computed_in_one_batch(monkeypatch):
    opened, asked = study(RUN).rule_out(RIGHT, "effusion"), []
    assert opened.prediction
    real = RUN.model.classify
    monkeypatch.setattr(RUN.model, "classify", lambda found: asked.append(found.shape[0]) or real(found))
    opened.explain()
    opened.explain()
    assert asked == [3]


def test_contributions_are_in_the_json():
    listed = json.loads(json.dumps(study(RUN).explain().to_json(), allow_nan=False))
    for one in listed["concepts"]:
        assert one["moves"] == pytest.approx(dict(study(RUN).moves[one["name"]]), abs=1e-4)


def test_computing_contributions_changes_nothing():
    opened = study(RUN)
    before = opened.output.scores.clone()
    opened.explain()
    assert torch.equal(opened.output.scores, before)
    assert opened.prediction == study(RUN).prediction
