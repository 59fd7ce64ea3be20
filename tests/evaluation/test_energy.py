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


def test_the_energy_of_a_two_by_two_map_agrees_with_a_count_by_hand():
    """Across, the bilinear map is 1 up to a quarter and falls to 0 at three quarters: 7/16 of its 1/2 lie left."""
    (result,) = box_energies(scene(np.array([[1.0, 0.0], [0.0, 0.0]]), [Box(0, 0, 448, 224)]))
    assert (result.film, result.concept) == ("a", "cavity")
    assert result.share == pytest.approx((7 / 8) ** 2)
    assert result.area == pytest.approx(1 / 4)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 99), boxes=st.lists(cell_box(), min_size=1, max_size=3))
def test_the_energy_agrees_with_a_count_cell_by_cell(seed, boxes):
    scores = np.random.default_rng(seed).normal(size=(5, 7)).astype(np.float32)
    (result,) = box_energies(scene(scores, boxes))
    counted = slow.box_energy(scores.tolist(), SIZE, [box.corners for box in boxes], FRAME)
    assert result.share == pytest.approx(counted, abs=1e-6)


@settings(deadline=None)
@given(level=st.floats(-1, 1, width=32), corner=st.tuples(st.floats(0, 600), st.floats(0, 400)))
def test_the_energy_of_a_flat_map_equals_the_area_of_the_boxes(level, corner):
    box = Box(*corner, corner[0] + 123.4, corner[1] + 37.0)
    (result,) = box_energies(scene(np.full((4, 4), level), [box]))
    assert result.share == result.area
    assert result.area == pytest.approx(box.area / (SIZE[0] * SIZE[1]))


@settings(deadline=None)
@given(shift=st.floats(-5, 5), scale=st.floats(0.1, 10))
def test_shifting_or_scaling_the_map_does_not_change_its_energy(shift, scale):
    boxes = [patch_box(2, 3, SIZE)]
    (plain,) = box_energies(scene(bump(2, 3), boxes))
    (other,) = box_energies(scene(bump(2, 3) * scale + shift, boxes))
    assert other.share == pytest.approx(plain.share, abs=1e-4)


def test_a_map_that_peaks_in_the_box_beats_a_flat_map_and_one_that_peaks_elsewhere_does_not():
    boxes = [patch_box(2, 3, SIZE)]
    (right,), (wrong,) = (box_energies(scene(bump(*at), boxes)) for at in ((2, 3), (6, 6)))
    assert right.share > 3 * right.area
    assert wrong.share < wrong.area


def test_two_boxes_that_overlap_count_their_common_part_once():
    whole = Box(0, 0, *SIZE)
    (result,) = box_energies(scene(bump(2, 3), [whole, patch_box(2, 3, SIZE)]))
    assert result.share == pytest.approx(1)
    assert result.area == pytest.approx(1)


def test_each_concept_is_measured_on_its_own_boxes_film_by_film():
    boxes = {
        ("a", "cavity"): [patch_box(1, 1)],
        ("a", "effusion"): [patch_box(6, 6)],
        ("b", "cavity"): [patch_box(1, 1)],
    }
    data = dataset([film("a"), film("b"), film("c")], boxes)
    result = box_energies(readings(data, mean_maps=[[bump(1, 1), bump(1, 1)]] * 3))
    assert [(entry.film, entry.concept) for entry in result] == [("a", "cavity"), ("b", "cavity"), ("a", "effusion")]
    assert result[0].share > result[0].area > result[2].share
    assert result[0].area == pytest.approx(1 / SIDE**2)
