import numpy as np
import pytest
from evaluation_scenes import SIDE, bump, dataset, film, patch_box, readings
from hypothesis import given, settings
from hypothesis import strategies as st

from medgrape.evaluation.localisation import FRAME, box_energies
from medgrape.geometry import Box
from oracles import faithfulness as slow

SIZE = (896, 448)
"""Whole cells of the frame: 4 pixels wide and 2 high."""
cells = st.integers(0, FRAME - 2)


def scene(cavity, boxes, size=SIZE, effusion=None):
    """One film with boxes of a cavity, and the maps that a model made of it."""
    data = dataset([film("a", size=size)], {("a", "cavity"): boxes})
    return readings(data, mean_maps=[[cavity, np.zeros_like(cavity) if effusion is None else effusion]])


@st.composite
def cell_box(draw):
    x, y = draw(cells), draw(cells)
    right, bottom = draw(st.integers(x + 1, FRAME)), draw(st.integers(y + 1, FRAME))
    return Box(x * 4, y * 2, right * 4, bottom * 2)


def test_a_map_of_two_by_two_has_as_much_in_a_quarter_as_by_hand():
    """Across, the bilinear map is 1 up to a quarter and falls to 0 at three quarters: 7/16 of its 1/2 lie left."""
    (found,) = box_energies(scene(np.array([[1.0, 0.0], [0.0, 0.0]]), [Box(0, 0, 448, 224)]))
    assert (found.film, found.concept) == ("a", "cavity")
    assert found.share == pytest.approx((7 / 8) ** 2)
    assert found.area == pytest.approx(1 / 4)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 99), boxes=st.lists(cell_box(), min_size=1, max_size=3))
def test_the_share_is_that_of_counting_cell_by_cell(seed, boxes):
    scores = np.random.default_rng(seed).normal(size=(5, 7)).astype(np.float32)
    (found,) = box_energies(scene(scores, boxes))
    counted = slow.box_energy(scores.tolist(), SIZE, [box.corners for box in boxes], FRAME)
    assert found.share == pytest.approx(counted, abs=1e-6)


@settings(deadline=None)
@given(level=st.floats(-1, 1, width=32), corner=st.tuples(st.floats(0, 600), st.floats(0, 400)))
def test_a_flat_map_gets_exactly_the_share_of_the_area(level, corner):
    box = Box(*corner, corner[0] + 123.4, corner[1] + 37.0)
    (found,) = box_energies(scene(np.full((4, 4), level), [box]))
    assert found.share == found.area
    assert found.area == pytest.approx(box.area / (SIZE[0] * SIZE[1]))


@settings(deadline=None)
@given(shift=st.floats(-5, 5), scale=st.floats(0.1, 10))
def test_neither_a_shift_nor_a_scale_of_the_map_counts(shift, scale):
    boxes = [patch_box(2, 3, SIZE)]
    (plain,) = box_energies(scene(bump(2, 3), boxes))
    (other,) = box_energies(scene(bump(2, 3) * scale + shift, boxes))
    assert other.share == pytest.approx(plain.share, abs=1e-4)


def test_a_map_that_stands_out_in_its_box_beats_a_flat_one_and_elsewhere_does_not():
    boxes = [patch_box(2, 3, SIZE)]
    (right,), (wrong,) = (box_energies(scene(bump(*at), boxes)) for at in ((2, 3), (6, 6)))
    assert right.share > 3 * right.area
    assert wrong.share < wrong.area


def test_two_boxes_that_overlap_count_their_common_part_once():
    whole = Box(0, 0, *SIZE)
    (found,) = box_energies(scene(bump(2, 3), [whole, patch_box(2, 3, SIZE)]))
    assert found.share == pytest.approx(1)
    assert found.area == pytest.approx(1)


def test_each_concept_answers_for_its_own_boxes_on_every_film_that_has_some():
    boxes = {
        ("a", "cavity"): [patch_box(1, 1)],
        ("a", "effusion"): [patch_box(6, 6)],
        ("b", "cavity"): [patch_box(1, 1)],
    }
    data = dataset([film("a"), film("b"), film("c")], boxes)
    found = box_energies(readings(data, mean_maps=[[bump(1, 1), bump(1, 1)]] * 3))
    assert [(one.film, one.concept) for one in found] == [("a", "cavity"), ("b", "cavity"), ("a", "effusion")]
    assert found[0].share > found[0].area > found[2].share
    assert found[0].area == pytest.approx(1 / SIDE**2)
