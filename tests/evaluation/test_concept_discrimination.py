"""Discrimination of findings inside a box."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from medgrape.concepts import Concept, ConceptSet
from medgrape.datasets.dataset import Dataset, DrawnBox, FilmRecord, Source
from medgrape.evaluation.concept_discrimination import discriminate
from medgrape.evaluation.statistics import auc, resampled_aucs
from medgrape.geometry import Box, FilmSize
from medgrape.safety.boxes import MeasuredBox
from medgrape.safety.claims import SimulatedClaims

HERE, NEARLY_HERE = Box(10, 10, 30, 30), Box(11, 11, 30, 30)
NAMES = ("active", "obsolete", "effusion", "nodule", "never boxed")


def concepts(count):
    return ConceptSet(tuple(Concept(name.replace(" ", "_"), name.title(), "A finding.") for name in NAMES[:count]))


def film(name, patient):
    return FilmRecord(name, "", "ill", patient, FilmSize(100, 100), {}, "test")


def compare(rows, known, *, more=(), patients=None):
    """Compare boxes given as (concept, means), each on a film of another patient if ``patients`` is None."""
    whose = patients or [f"p{place}" for place in range(len(rows))]
    films = tuple(film(f"f{place}", whose[place]) for place in range(len(rows)))
    seen = [
        MeasuredBox(record, name, HERE, torch.tensor(means), torch.zeros(len(known)))
        for record, (name, means) in zip(films, rows, strict=True)
    ]
    drawn = (*(DrawnBox(box.film.id, box.concept, box.box) for box in seen), *more)
    data = Dataset("scene", ("ill",), known, Path(), films, drawn, Source("scene", "nowhere"))
    return discriminate(seen, known, SimulatedClaims.on(seen, data))


def test_active_against_obsolete_is_one_figure_counted_by_hand():
    rows = [
        ("active", (0.75, 0.25, 9.0)),  # leads by 0.5
        ("active", (0.50, 0.25, 0.0)),  # by 0.25
        ("obsolete", (0.75, 0.50, 0.0)),  # by 0.25 too: half a point
        ("obsolete", (0.25, 0.50, 9.0)),  # trails
    ]
    result = compare(rows, concepts(3))  # nothing is drawn of the third finding, however high its map
    (pair,) = result.pairs
    assert (pair.name, pair.against, pair.against_title) == ("active", "obsolete", "Obsolete")
    assert (pair.boxes, pair.other_boxes) == (2, 2)
    assert pair.auc == result.mean_auc == (1 + 1 + 0.5 + 1) / 4
    assert result.chance == 0.5


def test_maps_that_are_equal_in_every_box_have_an_auc_of_one_half():
    (pair,) = compare([("active", (0.9, 0.1)), ("obsolete", (0.9, 0.1))], concepts(2)).pairs
    assert pair.auc == 0.5


def test_three_findings_are_compared_in_pairs():
    rows = [("active", (1.0, 0.0, 0.0)), ("obsolete", (0.0, 1.0, 2.0)), ("effusion", (0.0, 1.0, 1.0))]
    result = compare(rows, concepts(3))
    assert [(pair.name, pair.against, pair.auc) for pair in result.pairs] == [
        ("active", "obsolete", 1.0), ("active", "effusion", 1.0), ("obsolete", "effusion", 0.0)
    ]  # fmt: skip
    assert result.mean_auc == pytest.approx(2 / 3)


def test_each_of_four_findings_is_compared_with_the_highest_of_the_others():
    rows = [
        ("active", (0.5, 0.0, 0.25, 0.0, 9.0)),  # active leads by 0.25 over the highest other that has boxes
        ("obsolete", (0.5, 0.5, 0.0, 0.0, 0.0)),  # active leads by 0
        ("effusion", (1.0, 0.0, 0.5, 0.0, 0.0)),  # active leads by 0.5
        ("nodule", (0.0, 0.0, 0.0, 1.0, 0.0)),  # active trails by 1
    ]
    active, *others = compare(rows, concepts(5)).pairs
    assert (active.against, active.against_title, active.boxes, active.other_boxes) == (None, "all others", 1, 3)
    assert active.auc == pytest.approx(2 / 3)
    assert [pair.name for pair in others] == ["obsolete", "effusion", "nodule"]


def test_boxes_of_both_findings_in_nearly_the_same_place_do_not_count():
    rows = [("active", (1.0, 0.0)), ("active", (0.0, 1.0)), ("obsolete", (0.0, 1.0))]
    (plain,) = compare(rows, concepts(2)).pairs
    (spared,) = compare(rows, concepts(2), more=[DrawnBox("f1", "obsolete", NEARLY_HERE)]).pairs
    assert (plain.boxes, plain.auc) == (2, 0.75)
    assert (spared.boxes, spared.auc) == (1, 1.0)


def test_with_boxes_of_a_single_finding_nothing_is_compared():
    result = compare([("active", (1.0, 0.0)), ("active", (0.5, 0.0))], concepts(2))
    assert (result.pairs, result.mean_auc) == ((), None)


def test_maps_are_chosen_by_concept_name_if_the_model_knows_more_concepts_in_another_order():
    known = concepts(3)
    fewer = ConceptSet((known["effusion"], known["active"]))
    seen = [
        MeasuredBox(film("f0", "p0"), "active", HERE, torch.tensor((1.0, 5.0, 0.0)), torch.zeros(3)),
        MeasuredBox(film("f1", "p1"), "effusion", HERE, torch.tensor((0.0, 5.0, 1.0)), torch.zeros(3)),
    ]
    drawn = tuple(DrawnBox(box.film.id, box.concept, box.box) for box in seen)
    data = Dataset("scene", ("ill",), fewer, Path(), tuple(o.film for o in seen), drawn, Source("scene", "nowhere"))
    (pair,) = discriminate(seen, known, SimulatedClaims.on(seen, data)).pairs
    assert (pair.name, pair.against, pair.auc) == ("effusion", "active", 1.0)


def test_the_interval_is_wider_if_the_same_boxes_come_from_few_patients():
    chance, names = np.random.default_rng(0), ["active", "obsolete"] * 40
    right = [1 if place // 20 % 2 else -1 for place in range(80)]  # of twenty boxes in a row all right, or all wrong
    leads = [(1 if name == "active" else -1) * side + chance.normal() for name, side in zip(names, right, strict=True)]
    rows = [(name, (float(lead), 0.0)) for name, lead in zip(names, leads, strict=True)]
    width = []
    for patients in (None, [f"p{place // 20}" for place in range(80)]):
        (pair,) = compare(rows, concepts(2), patients=patients).pairs
        assert pair.interval.low < pair.auc < pair.interval.high
        width.append(pair.interval.high - pair.interval.low)
    assert width[1] > 2 * width[0]
    assert compare(rows, concepts(2), patients=["anna"] * 80).pairs[0].interval is None


def test_the_auc_agrees_with_scikit_learn_ties_included():
    chance = np.random.default_rng(1)
    present, scores = chance.random(60) < 0.4, chance.integers(8, size=60) / 8
    assert auc(present, scores) == pytest.approx(roc_auc_score(present, scores))
    assert auc(np.ones(3, dtype=bool), np.arange(3.0)) is None


def test_a_patient_who_is_drawn_twice_counts_twice():
    chance = np.random.default_rng(2)
    present, scores = chance.random(30) < 0.5, chance.integers(5, size=30) / 4
    owner = np.arange(30) // 3
    films = [film(f"f{place}", f"p{whose:02}") for place, whose in enumerate(owner)]
    everyone = np.ones((1, 30), dtype=bool)
    result = resampled_aucs(present, scores, everyone, films, seed=7, rounds=5)[:, 0]
    lots = np.random.default_rng(7)
    for value in result:
        drawn = lots.integers(10, size=10)
        rows = np.concatenate([np.flatnonzero(owner == patient) for patient in drawn])
        assert value == pytest.approx(roc_auc_score(present[rows], scores[rows]))
