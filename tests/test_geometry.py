import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medgrape.geometry import Box, FilmSize, GeometryError, PatchGrid, Turn

FILM = FilmSize(512, 400)
edges = st.floats(0, 400, allow_nan=False)


@st.composite
def boxes(draw):
    x1, x2 = sorted((draw(edges), draw(edges)))
    y1, y2 = sorted((draw(edges), draw(edges)))
    return Box(x1, y1, x2 + 1, y2 + 1)


@pytest.mark.parametrize("corners", [(5, 5, 5, 9), (9, 5, 5, 9), (0, 3, 4, 3), (0, 0, float("nan"), 1)])
def test_a_box_without_area_is_refused_with_its_numbers(corners):
    with pytest.raises(GeometryError, match="box needs"):
        Box(*corners)


def test_a_coco_box_gives_the_same_box_as_its_corners():
    assert Box.from_corner_and_size(10, 20, 30, 40) == Box(10, 20, 40, 60)


def test_the_box_around_a_mask_holds_every_pixel_and_no_empty_edge():
    mask = np.zeros((10, 12), bool)
    mask[3:5, 7] = mask[8, 2] = True
    assert Box.around(mask) == Box(2, 3, 8, 9)


def test_an_empty_mask_has_no_box():
    with pytest.raises(GeometryError):
        Box.around(np.zeros((4, 4), bool))


@given(box=boxes())
def test_a_box_is_the_same_after_resizing_the_film_and_back(box):
    there = box.moved(FILM, FilmSize(224, 224))
    assert there.moved(FilmSize(224, 224), FILM).corners == pytest.approx(box.corners)


@given(box=boxes(), rows=st.integers(1, 20), columns=st.integers(1, 20))
def test_the_overlaps_of_all_patches_sum_to_the_area_of_the_box(box, rows, columns):
    grid = PatchGrid(FILM, rows, columns)
    on_film = box.clipped(FILM)
    area = 0.0 if on_film is None else on_film.area
    assert grid.overlap(box).sum() * FILM.pixels / (rows * columns) == pytest.approx(area)


def test_a_box_smaller_than_a_patch_still_counts():
    overlap = PatchGrid(FilmSize(70, 70), 7, 7).overlap(Box(12, 12, 14, 14))
    assert overlap[1, 1] == pytest.approx(0.04)
    assert np.count_nonzero(overlap) == 1


def test_a_patch_overlaps_itself_completely_and_no_other():
    grid = PatchGrid(FILM, 5, 8)
    overlap = grid.overlap(grid.patch(2, 6))
    assert overlap[2, 6] == pytest.approx(1.0)
    assert overlap.sum() == pytest.approx(1.0)


def test_a_box_beside_the_film_is_clipped_to_nothing():
    assert Box(600, 10, 620, 30).clipped(FILM) is None
    assert Box(500, 390, 620, 430).clipped(FILM) == Box(500, 390, 512, 400)


def test_a_box_holds_its_first_corner_and_not_its_last():
    box = Box(0, 0, 10, 10)
    assert box.contains(0, 0)
    assert box.contains(9.9, 5)
    assert not box.contains(10, 10)


def test_an_invalid_grid_or_patch_is_refused():
    with pytest.raises(GeometryError):
        PatchGrid(FILM, 0, 3)
    with pytest.raises(GeometryError):
        PatchGrid(FILM, 3, 3).patch(3, 0)
    with pytest.raises(GeometryError):
        FilmSize(0, 4)


TURNS = [Turn(quarters, flipped) for quarters in range(4) for flipped in (False, True)]


@pytest.mark.parametrize("turn", TURNS, ids=str)
def test_a_film_that_is_turned_upright_and_back_is_as_it_was_stored(turn):
    stored = np.arange(6 * 4).reshape(6, 4)
    assert np.array_equal(turn.back.pixels(turn.pixels(stored)), stored)
    assert turn.back.size(turn.size(FilmSize(4, 6))) == FilmSize(4, 6)


@pytest.mark.parametrize("turn", TURNS, ids=str)
def test_a_box_turns_with_the_pixels_that_it_holds(turn):
    stored, size = np.zeros((6, 4), bool), FilmSize(4, 6)
    stored[1:3, 2:4] = True
    box = turn.box(Box(2, 1, 4, 3), size)
    assert Box.around(turn.pixels(stored)) == box
    assert turn.back.box(box, turn.size(size)) == Box(2, 1, 4, 3)
    assert turn.point(2, 1, size) in {(x, y) for x in (box.x1, box.x2) for y in (box.y1, box.y2)}


@given(width=st.integers(1, 40), height=st.integers(1, 40), rows=st.integers(1, 9), columns=st.integers(1, 9))
def test_upsampling_gives_each_pixel_the_value_of_the_patch_at_its_centre(width, height, rows, columns):
    grid = PatchGrid(FilmSize(width, height), rows, columns)
    values = np.arange(rows * columns).reshape(rows, columns)
    spread = grid.spread(values)
    for y in range(height):
        for x in range(width):
            row, column = divmod(int(spread[y, x]), columns)
            assert grid.patch(row, column).contains(x + 0.5 + 1e-9, y + 0.5 + 1e-9)


@given(x=st.floats(0, 4999), y=st.floats(0, 4999), width=st.floats(1e-3, 5000), height=st.floats(1e-3, 5000))
def test_a_box_is_identical_after_conversion_to_corner_and_size_and_back(x, y, width, height):
    box = Box(x, y, x + width, y + height)
    assert Box.from_corner_and_size(*box.corner_and_size) == box


def test_a_rotated_box_lies_inside_its_bounding_box():
    box = Box(10, 20, 40, 30)
    assert box.turned(90, 10, 20).corners == pytest.approx((0, 20, 10, 50)), "clockwise about its upper left corner"
    assert box.turned(180, 25, 25).corners == pytest.approx(box.corners)
    assert box.turned(45, 25, 25).width == pytest.approx((30 + 10) / 2**0.5)


def test_a_bounding_box_contains_every_point_of_a_polygon():
    assert Box.holding([(3, 9), (1, 4), (7, 5)]) == Box(1, 4, 7, 9)
    with pytest.raises(GeometryError):
        Box.holding([(1, 1), (1, 5)])
