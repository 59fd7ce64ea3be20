"""Evidence and scores after boxes and rejections."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from correcting_scenes import CONCEPTS, FILM, LEFT, RIGHT, anything, boxes, cavity_left_effusion_right
from medgrape.concepts import ConceptError
from medgrape.corrections.effects import importance, rejected, revise, revised_scores
from medgrape.corrections.statements import BoxCorrection, Rejection
from medgrape.geometry import Box, BoxOutsideError, PatchGrid
from oracles import feedback as slow

SCENE = cavity_left_effusion_right()
ROUNDING = 1e-6
CALM = settings(deadline=None, max_examples=60)


def here(box, concept="cavity"):
    return BoxCorrection(box, concept)


def not_here(box, concept="cavity"):
    return BoxCorrection(box, concept, positive=False)


drawn = st.builds(BoxCorrection, boxes(), st.sampled_from([*CONCEPTS.names, None]), st.booleans())
about_cavity = st.builds(BoxCorrection, boxes(), st.sampled_from(["cavity", None]), st.booleans())
whole = st.builds(BoxCorrection, boxes(whole=True), st.just("cavity"), st.booleans())


def test_a_positive_box_keeps_its_inside_and_halves_the_rest():
    revised = revise(SCENE, [here(LEFT)])
    assert torch.equal(revised.mean[0, :, 0], SCENE.mean[0, :, 0])
    torch.testing.assert_close(revised.mean[0, :, 1], (SCENE.mean[0, :, 1] + 1) / 2 - 1)
    assert torch.equal(revised.similarity[1:], SCENE.similarity[1:])


def test_a_negative_box_removes_the_concept_inside_and_wins_over_a_positive_one():
    for corrections in ([not_here(LEFT)], [here(LEFT), not_here(LEFT)], [not_here(LEFT), here(LEFT)]):
        assert torch.equal(revise(SCENE, corrections).similarity[0, :, :, 0], torch.full((2, 2), -1.0))


def test_a_single_negative_box_halves_the_rest_too():
    revised = revise(SCENE, [not_here(LEFT)])
    torch.testing.assert_close(revised.mean[0, :, 1], (SCENE.mean[0, :, 1] + 1) / 2 - 1)


def test_a_negative_box_lowers_negative_similarities_too():
    unlike = anything(0)
    revised = revise(unlike, [not_here(Box(0, 0, 200, 200))])
    assert (unlike.similarity[0] < 0).any()
    assert (revised.similarity[0] <= unlike.similarity[0]).all()


def test_a_box_for_every_concept_equals_one_box_for_each():
    revised = revise(SCENE, [not_here(RIGHT, None)])
    assert torch.equal(revised.similarity[:, :, :, 1], torch.full((3, 2, 2), -1.0))
    one_by_one = revise(SCENE, [not_here(RIGHT, name) for name in CONCEPTS.names])
    assert torch.equal(revised.similarity, one_by_one.similarity)


def test_boxes_cover_a_patch_together_and_their_overlap_counts_once():
    grid = PatchGrid(FILM, 2, 2)
    halves = [here(Box(0, 0, 50, 100)), here(Box(50, 0, 100, 100))]
    assert importance(grid, halves)[0, 0] == 1.0
    twice = [here(Box(0, 0, 50, 100)), here(Box(0, 0, 50, 100))]
    assert importance(grid, twice)[0, 0] == 0.75


@given(st.lists(whole, min_size=1, max_size=4), st.integers(0, 99))
@settings(deadline=None, max_examples=12)
def test_revised_evidence_agrees_with_counting_pixels(corrections, seed):
    seen = anything(seed, 2, 4)
    of = {sign: [one.box.corners for one in corrections if one.positive is sign] for sign in (True, False)}
    counts = slow.importance((FILM.width, FILM.height), (2, 4), of[True], of[False])
    expected = torch.tensor(slow.revised(seen.similarity[0].tolist(), counts))
    torch.testing.assert_close(revise(seen, corrections).similarity[0], expected, atol=1e-6, rtol=0)


@given(st.lists(about_cavity, max_size=4), boxes(), st.sampled_from(["cavity", None]), st.integers(0, 99))
@CALM
def test_adding_a_negative_box_never_raises_the_concepts_score(corrections, box, concept, seed):
    seen = anything(seed)
    before, after = revise(seen, corrections), revise(seen, [*corrections, not_here(box, concept)])
    assert (after.scores[0] <= before.scores[0] + ROUNDING).all()
    assert (after.mean[0] <= before.mean[0] + ROUNDING).all()


@given(st.lists(about_cavity, min_size=1, max_size=4), boxes(), st.sampled_from(["cavity", None]), st.integers(0, 99))
@CALM
def test_a_second_positive_box_never_lowers_the_concepts_score(corrections, box, concept, seed):
    seen, corrections = anything(seed), [here(LEFT), *corrections]
    before, after = revise(seen, corrections), revise(seen, [*corrections, here(box, concept)])
    assert (after.scores[0] >= before.scores[0] - ROUNDING).all()
    assert (after.mean[0] >= before.mean[0] - ROUNDING).all()


@given(st.lists(drawn, max_size=5).flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))))
@CALM
def test_the_order_of_boxes_does_not_matter_to_the_last_bit(both):
    drawn_first, shuffled = both
    seen = anything(7)
    assert torch.equal(revise(seen, drawn_first).similarity, revise(seen, shuffled).similarity)


@given(st.lists(drawn, min_size=1, max_size=4))
@CALM
def test_the_original_evidence_never_changes(corrections):
    seen = anything(11)
    kept = seen.similarity.clone()
    revise(seen, corrections)
    assert torch.equal(seen.similarity, kept)


def test_without_a_box_the_evidence_does_not_change():
    assert revise(SCENE, []) is SCENE
    assert revise(SCENE, [Rejection("cavity")]) is SCENE


def test_a_rejected_concept_scores_as_on_films_without_it_and_the_others_as_before():
    absent = torch.tensor([[0.01, 0.02], [0.03, 0.04], [0.05, 0.06]])
    found = revised_scores(SCENE, [Rejection("effusion")], absent)
    assert torch.equal(found[1], absent[1])
    assert torch.equal(found[[0, 2]], SCENE.scores[[0, 2]])
    assert torch.equal(revised_scores(SCENE, [Rejection(None)], absent), absent)
    assert rejected(CONCEPTS, [Rejection("effusion"), here(LEFT)]) == {"effusion"}


@pytest.mark.parametrize("positive", [True, False])
def test_a_box_outside_the_film_and_an_unknown_concept_are_errors(positive):
    with pytest.raises(BoxOutsideError, match="outside the film"):
        revise(SCENE, [BoxCorrection(Box(200, 0, 220, 20), None, positive)])
    with pytest.raises(ConceptError, match="cavty"):
        revise(SCENE, [BoxCorrection(LEFT, "cavty", positive)])
