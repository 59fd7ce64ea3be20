"""The concept-mismatch check of a box."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from correcting_scenes import CONCEPTS, FILM, LEFT, RIGHT, anything, boxes, cavity_left_effusion_right, untaught
from medgrape.concepts import ConceptError
from medgrape.geometry import Box, BoxOutsideError, GeometryError
from medgrape.runs.checkpoint import SafetyRule, SafetyThresholds
from medgrape.safety.check import check_box, inside
from oracles import feedback as slow

SCENE = cavity_left_effusion_right()


def thresholds(**leads):
    return SafetyThresholds(leads, 0.2, None, 0.1, 0.9, dict.fromkeys(CONCEPTS.names, 40), {"name": "drawn_dataset"})


def means(check):
    return {one.name: one.mean for one in check.concepts}


def test_a_cavity_claimed_where_the_model_sees_an_effusion_gives_a_warning_that_names_both():
    check = check_box(SCENE, RIGHT, "cavity")
    assert check.mismatch
    assert (check.claimed, check.dominant) == ("cavity", "effusion")
    assert check.gap == pytest.approx(0.6, abs=1e-6)
    assert "Pleural effusion leads over Cavity by 0.600" in check.reason
    assert [one.name for one in check.concepts] == ["effusion", "nodule", "cavity"]
    assert [one.mean for one in check.concepts] == pytest.approx([0.7, 0.3, 0.1], abs=1e-6)
    assert [one.variance for one in check.concepts] == pytest.approx([1e-4] * 3, abs=1e-7)


def test_a_cavity_claimed_where_the_model_sees_one_gives_no_warning():
    check = check_box(SCENE, LEFT, "cavity")
    assert (check.mismatch, check.silenced, check.dominant) == (False, False, "cavity")
    assert check.gap == pytest.approx(means(check)[check.rival] - means(check)["cavity"])
    assert check.gap < 0


@given(box=boxes(), seed=st.integers(0, 99), eta=st.floats(0.0, 0.5))
@settings(deadline=None, max_examples=60)
def test_claiming_the_dominant_concept_never_gives_a_warning(box, seed, eta):
    seen, rule = anything(seed), SafetyRule.plain(eta, float("inf"))
    dominant = check_box(seen, box, "cavity", rule).dominant
    check = check_box(seen, box, dominant, rule)
    assert not check.mismatch
    assert check.gap <= 0.0


def test_with_a_negative_threshold_a_finding_that_leads_by_too_little_gives_a_warning():
    lead = -check_box(SCENE, LEFT, "cavity").gap
    loose, tight = (SafetyRule(lambda _, least=least: -least, float("inf")) for least in (lead - 0.01, lead + 0.01))
    assert not check_box(SCENE, LEFT, "cavity", loose).mismatch
    check = check_box(SCENE, LEFT, "cavity", tight)
    assert (check.mismatch, check.dominant) == (True, "cavity")
    assert f"Cavity is only {lead:.3f} above {CONCEPTS[check.rival].title}" in check.reason
    assert f"correct boxes show at least {lead + 0.01:.3f}" in check.reason


@given(box=boxes(whole=True), seed=st.integers(0, 99), claimed=st.integers(0, 2), gate=st.sampled_from([0.1, 0.3, 9.0]))
@settings(deadline=None, max_examples=15)
def test_the_check_agrees_with_counting_pixels(box, seed, claimed, gate):
    seen, film = anything(seed, 2, 4), (FILM.width, FILM.height)
    corners = box.clipped(FILM).corners
    mean = [slow.mean_inside(one, film, corners) for one in seen.mean.tolist()]
    variance = [slow.mean_inside(one, film, corners) for one in seen.disagreement.tolist()]
    check = check_box(seen, box, CONCEPTS.names[claimed], SafetyRule.plain(0.05, gate))
    assert [means(check)[name] for name in CONCEPTS.names] == pytest.approx(mean, abs=1e-5)
    assert {one.name: one.variance for one in check.concepts} == pytest.approx(
        dict(zip(CONCEPTS.names, variance, strict=True)), abs=1e-5
    )
    assert check.mismatch == slow.warns(mean, variance, claimed, 0.05, gate)


def test_a_box_over_the_edge_counts_with_the_part_that_lies_on_the_film():
    beyond, on_it = Box(120, -80, 900, 60), Box(120, 0, 200, 60)
    assert check_box(SCENE, beyond, "cavity") == check_box(SCENE, on_it, "cavity")


def test_a_box_smaller_than_a_patch_sees_the_patch_it_lies_in():
    tiny = check_box(SCENE, Box(150, 150, 150.5, 150.25), "cavity")
    assert means(tiny)["effusion"] == pytest.approx(0.7, abs=1e-6)
    assert tiny.mismatch


def test_a_small_box_across_two_patches_sees_each_by_how_much_it_covers():
    check = check_box(SCENE, Box(97, 10, 101, 12), "cavity")
    assert means(check)["cavity"] == pytest.approx(0.75 * 0.8 + 0.25 * 0.1, abs=1e-6)


def test_a_box_over_the_whole_film_is_checked_against_the_whole_film_and_says_so():
    check = check_box(SCENE, Box(-10, -10, 300, 300), "nodule")
    assert means(check)["cavity"] == pytest.approx(0.45, abs=1e-6)
    assert check.reason.startswith("The box covers the whole film")
    assert "whole film" not in check_box(SCENE, LEFT, "cavity").reason


@pytest.mark.parametrize("box", [Box(200, 0, 300, 100), Box(-40, 0, 0, 100), Box(0, 201, 10, 300)])
def test_a_box_outside_the_film_is_an_error(box):
    with pytest.raises(BoxOutsideError, match="outside the film of 200 x 200 pixels"):
        check_box(SCENE, box, "cavity")
    with pytest.raises(BoxOutsideError):
        inside(SCENE.mean, SCENE.grid, box)


def test_a_box_without_area_and_an_unknown_concept_are_errors():
    with pytest.raises(GeometryError, match="x1 < x2"):
        check_box(SCENE, Box(10, 10, 10, 20), "cavity")
    with pytest.raises(ConceptError, match="There is no concept 'cavty'"):
        check_box(SCENE, LEFT, "cavty")


def test_a_rival_whose_prototypes_disagree_gives_no_warning():
    doubtful = cavity_left_effusion_right(spread=0.1)  # U = 0.01
    check = check_box(doubtful, RIGHT, "cavity", SafetyRule.plain(0.05, 2e-4))
    assert (check.mismatch, check.silenced) == (False, True)
    assert "is above the limit" in check.reason
    assert check_box(doubtful, RIGHT, "cavity", SafetyRule.plain(0.05, 0.02)).mismatch


def test_a_lead_equal_to_the_threshold_gives_no_warning():
    gap = check_box(SCENE, RIGHT, "cavity").gap
    at, below = (check_box(SCENE, RIGHT, "cavity", SafetyRule.plain(eta)) for eta in (gap, gap - 1e-9))
    assert not at.mismatch
    assert "no more than" in at.reason
    assert below.mismatch


@pytest.mark.parametrize("claimed", ["cavity", "effusion", "nodule"])
def test_if_concepts_are_equal_the_claimed_one_leads(claimed):
    level = replace(SCENE, similarity=SCENE.similarity[:1].expand(3, -1, -1, -1))
    check = check_box(level, LEFT, claimed, SafetyRule.plain(0.0, float("inf")))
    assert check.dominant == claimed
    assert not check.mismatch


def test_a_concept_without_training_films_is_listed_but_leads_only_if_it_is_claimed():
    rule = replace(SafetyRule.plain(), untrained=frozenset({"effusion"}))
    check = check_box(SCENE, RIGHT, "cavity", rule)
    assert check.dominant == "nodule"
    assert check.concepts[0].name == "effusion"
    assert check_box(SCENE, RIGHT, "effusion", rule).dominant == "effusion"


def test_a_calibrated_run_uses_its_own_thresholds_for_each_concept():
    calibrated = SafetyRule.of(untaught(safety=thresholds(cavity=0.65, nodule=0.35)))
    lenient, strict = (check_box(SCENE, RIGHT, claimed, calibrated) for claimed in ("cavity", "nodule"))
    assert (lenient.allowed, lenient.mismatch) == (0.65, False)  # leads by 0.6
    assert (strict.allowed, strict.mismatch) == (0.35, True)  # leads by 0.4
    assert calibrated.lead("effusion") == 0.2  # learnt from the boxes of all
    assert lenient.calibrated
    assert calibrated.gate == float("inf")


def test_a_run_without_calibration_uses_its_settings_and_ignores_untrained_concepts():
    run = untaught(metrics={"untrained_concepts": ["nodule"]})
    rule = SafetyRule.of(run)
    assert (rule.lead("cavity"), rule.gate) == (run.config.safety.lead, run.config.safety.gate)
    assert not rule.calibrated
    assert rule.untrained == {"nodule"}


def test_a_check_without_a_gate_is_valid_json():
    told = json.loads(json.dumps(check_box(SCENE, RIGHT, "cavity", SafetyRule.plain(0.05, float("inf"))).to_json()))
    assert told["gate"] is None
    assert told["mismatch"] is True
    assert told["concepts"][0]["name"] == "effusion"
