from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from evaluation_scenes import CAVITY, bump, dataset, film, patch_box, readings
from evaluation_scenes import drawn_dataset as sixty_films
from hypothesis import given
from hypothesis import strategies as st

from medgrape.concepts import ConceptSet
from medgrape.datasets.dataset import Dataset, DrawnBox
from medgrape.datasets.statistics import guess
from medgrape.evaluation.evaluate import read_split
from medgrape.evaluation.localisation import localise
from medgrape.geometry import Box, FilmSize, PatchGrid, peak
from medgrape.progress import quietly
from medgrape.reader import load
from medgrape.runs.checkpoint import load_run


def slow_map(scores, film):
    """The film-sized map, pixel by pixel."""
    rows, columns = scores.shape
    large = np.empty((film.height, film.width))
    for y in range(film.height):
        down = min(max((2 * y + 1) * rows - film.height, 0), (rows - 1) * 2 * film.height)
        top, low = divmod(down, 2 * film.height)
        for x in range(film.width):
            across = min(max((2 * x + 1) * columns - film.width, 0), (columns - 1) * 2 * film.width)
            left, right = divmod(across, 2 * film.width)
            below, beside = min(top + 1, rows - 1), min(left + 1, columns - 1)
            here, there = (
                scores[top, c] + low / (2 * film.height) * (scores[below, c] - scores[top, c]) for c in (left, beside)
            )
            large[y, x] = here + right / (2 * film.width) * (there - here)
    return large


def slow_peak(scores, film):
    """Its highest pixel, row by row; of the margin beyond the outermost centres only the innermost line counts."""
    large = slow_map(scores, film)
    first_row, first_column = (
        max((n for n in range(length) if (2 * n + 1) * patches <= length), default=0)
        for length, patches in ((film.height, scores.shape[0]), (film.width, scores.shape[1]))
    )
    row, column = np.unravel_index(large[first_row:, first_column:].argmax(), large[first_row:, first_column:].shape)
    assert large[first_row + row, first_column + column] == large.max()
    return first_column + column + 0.5, first_row + row + 0.5


@given(
    st.integers(1, 5), st.integers(1, 5), st.integers(1, 30), st.integers(1, 30),
    st.lists(st.sampled_from([-1.0, 0.0, 0.25, 1.0]), min_size=25, max_size=25),
)  # fmt: skip
def test_the_peak_is_that_of_the_whole_map_made_pixel_by_pixel_ties_included(rows, columns, width, height, values):
    scores, film = np.array(values[: rows * columns]).reshape(rows, columns), FilmSize(width, height)
    assert peak(scores, PatchGrid(film, rows, columns)) == slow_peak(scores, film)


@pytest.mark.parametrize("size", [(301, 211), (64, 64), (1000, 37), (5, 6)])
def test_the_peak_is_the_highest_pixel_of_what_opencv_and_torch_make_of_the_map(size):
    chance = np.random.default_rng(7)
    for _ in range(10):
        scores = chance.normal(size=(7, 9)).astype(np.float32)
        x, y = peak(scores, PatchGrid(FilmSize(*size), 7, 9))
        shape = (size[1], size[0])
        by_torch = torch.nn.functional.interpolate(torch.tensor(scores)[None, None], shape, mode="bilinear")[0, 0]
        for large in (cv2.resize(scores, size, interpolation=cv2.INTER_LINEAR), by_torch.numpy()):
            assert large[int(y), int(x)] == pytest.approx(large.max(), abs=1e-4)


def test_a_map_that_is_the_same_everywhere_points_at_its_first_patch():
    assert peak(np.full((4, 4), 0.3), PatchGrid(FilmSize(400, 800), 4, 4)) == (49.5, 99.5)


@pytest.mark.parametrize("row", [0, 3])
@pytest.mark.parametrize("column", [0, 2, 7])
def test_a_map_seen_in_a_mirror_points_at_the_mirrored_place(row, column):
    grid = PatchGrid(FilmSize(803, 641), 8, 8)
    x, y = peak(bump(row, column), grid)
    across, up = peak(bump(row, column)[::-1, ::-1], grid)
    assert (across, up) == (pytest.approx(803 - x, abs=1), pytest.approx(641 - y, abs=1))


def test_a_film_of_many_million_pixels_costs_next_to_nothing():
    x, y = peak(bump(2, 5, 32), PatchGrid(FilmSize(60_000, 50_000), 32, 32))
    assert (x, y) == (pytest.approx(5.5 * 60_000 / 32, abs=1), pytest.approx(2.5 * 50_000 / 32, abs=1))


def scene(maps, boxes, **more):
    films = [film("t", split="train"), *(film(f"f{n}") for n in range(len(maps)))]
    return readings(dataset(films, boxes), mean_maps=maps, **more)


def test_a_model_that_points_at_the_middle_of_each_box_hits_every_pair():
    spots = [(1, 2), (4, 4), (7, 0)]
    boxes = {(f"f{n}", "cavity"): [patch_box(*spot)] for n, spot in enumerate(spots)}
    found = localise(scene([[bump(*spot), bump(0, 0)] for spot in spots], boxes))
    assert found.per_pair.count == found.per_pair.mean.hits == 3
    assert found.per_film.mean.share == 1
    assert found.concepts[1].pointing is None
    assert found.pairs[0].mean.point == (pytest.approx(250, abs=1), pytest.approx(120, abs=1))


def test_a_hit_needs_a_box_of_the_same_concept():
    boxes = {("f0", "cavity"): [patch_box(1, 1)], ("f0", "effusion"): [patch_box(6, 6)]}
    found = localise(scene([[bump(6, 6), bump(1, 1)]], boxes))
    assert found.per_pair.mean.hits == 0


def test_any_of_several_boxes_counts():
    found = localise(scene([[bump(6, 6), bump(0, 0)]], {("f0", "cavity"): [patch_box(1, 1), patch_box(6, 6)]}))
    assert found.per_pair.mean.hits == found.per_pair.count == 1


def test_a_film_with_one_concept_hit_and_one_missed_is_half_by_pair_and_hit_by_film():
    boxes = {("f0", "cavity"): [patch_box(1, 1)], ("f0", "effusion"): [patch_box(6, 6)]}
    boxes |= {("f1", "cavity"): [patch_box(1, 1)]}
    found = localise(scene([[bump(1, 1), bump(2, 2)], [bump(5, 5), bump(0, 0)]], boxes))
    assert (found.per_pair.mean.hits, found.per_pair.count) == (1, 3)
    assert (found.per_film.mean.hits, found.per_film.count) == (1, 2)
    assert found.per_film.mean.share == 0.5


def test_both_maps_are_counted_each_by_itself():
    boxes = {("f0", "cavity"): [patch_box(1, 1)]}
    found = localise(scene([[bump(1, 1), bump(0, 0)]], boxes, max_maps=[[bump(5, 5), bump(0, 0)]]))
    assert (found.per_pair.mean.share, found.per_pair.maximum.share) == (1, 0)


def test_the_cam_is_counted_beside_the_prototypes_on_the_same_pairs():
    boxes = {("f0", "cavity"): [patch_box(1, 1)], ("f1", "cavity"): [patch_box(6, 6)]}
    maps = [[bump(1, 1), bump(0, 0)]] * 2
    found = localise(scene(maps, boxes, cam_maps={"cavity": [bump(3, 3), bump(6, 6)]}))
    counted = found.concepts[0].pointing
    assert (counted.mean.hits, counted.maximum.hits, counted.cam.hits) == (1, 1, 1)
    assert [pair.cam.hit for pair in found.pairs] == [False, True]
    assert [pair.mean.hit for pair in found.pairs] == [True, False]
    assert found.per_pair.cam.share == found.per_film.cam.share == 0.5
    assert found.per_pair.cam.interval is not None


def test_a_finding_learnt_later_has_no_cam_and_leaves_the_pooled_one_without():
    boxes = {("f0", "cavity"): [patch_box(1, 1)], ("f0", "effusion"): [patch_box(6, 6)]}
    found = localise(scene([[bump(1, 1), bump(6, 6)]], boxes, cam_maps={"cavity": [bump(1, 1)]}))
    cavity, effusion = (one.pointing for one in found.concepts)
    assert (cavity.cam.hits, effusion.cam) == (1, None)
    assert found.per_pair.cam is None, "two pairs by prototypes and one by CAM could not be compared"
    assert found.per_film.cam is None
    assert found.per_pair.mean.hits == 2


def test_the_cam_maps_come_from_the_same_single_look_of_the_backbone(trained_run, drawn_dataset):
    loaded, data = load_run(trained_run), Dataset.load(drawn_dataset)
    looks = []
    loaded.run.model.backbone.register_forward_hook(lambda *seen: looks.append(seen[2]))
    read = read_split(loaded, data, drawn_dataset, "test", quietly).readings
    assert sum(len(look) for look in looks) == len(read.films)
    wanted = loaded.run.model.cam(torch.cat(looks)).numpy()
    assert list(read.cam_maps) == list(data.concepts.names)
    for row, name in enumerate(loaded.run.concepts.names):
        np.testing.assert_array_equal(read.cam_maps[name], wanted[:, row])


@pytest.mark.parametrize("grown", [False, True])
def test_a_model_that_learnt_a_finding_later_reads_it_without_a_cam(trained_run, drawn_dataset, grown):
    reader = load(trained_run).learn("cavity", "A thick-walled lucency.")
    reader = reader.grow_head() if grown else reader
    data = Dataset.load(drawn_dataset)
    data = replace(data, concepts=ConceptSet((CAVITY, *data.concepts)))
    read = read_split(reader.loaded, data, drawn_dataset, "test", quietly).readings
    assert list(read.cam_maps) == list(data.concepts.names[1:])
    assert read.mean_maps.shape[1] == 4
    shown = next(one for one in read.films if one.id in data.boxes_by_film)
    boxes = (*data.boxes, DrawnBox(shown.id, "cavity", Box(0, 0, 9, 9)))
    found = localise(replace(read, dataset=replace(data, boxes=boxes)))
    assert found.concepts[0].pointing.cam is None
    assert any(one.pointing.cam is not None for one in found.concepts if one.pointing is not None)


def test_blind_pointing_is_that_of_the_data_check():
    read = sixty_films()
    found = localise(read)
    blind = [guess(read.dataset, name) for name in read.dataset.concepts.names]
    for one, expected in zip(found.concepts, blind, strict=True):
        assert one.pointing.count == expected.pairs
        assert one.pointing.chance == pytest.approx(expected.random)
        assert one.pointing.fixed == pytest.approx(expected.fixed)
        assert one.fixed_point == expected.point
    pairs = sum(one.pairs for one in blind)
    assert found.per_pair.chance == pytest.approx(sum(one.pairs * one.random for one in blind) / pairs)
    assert found.per_pair.fixed == pytest.approx(sum(one.pairs * one.fixed for one in blind) / pairs)


def test_blind_pointing_is_judged_on_the_films_that_were_read_and_no_others():
    boxes = {("f0", "cavity"): [Box(0, 0, 800, 640)], ("f1", "cavity"): [patch_box(1, 1)]}
    read = scene([[bump(1, 1), bump(0, 0)]] * 2, boxes)
    only_first = type(read)(
        read.dataset, read.films[:1], read.probabilities[:1], read.scores[:1], read.mean_maps[:1], read.max_maps[:1]
    )
    assert localise(only_first).per_pair.chance == 1
    assert localise(read).per_pair.chance == pytest.approx((1 + 1 / 64) / 2)


def test_by_film_blind_pointing_has_as_many_tries_as_the_film_has_concepts():
    half, quarter = Box(0, 0, 400, 640), Box(0, 0, 400, 320)
    boxes = {("f0", "cavity"): [half], ("f0", "effusion"): [quarter]}
    boxes |= {("t", "cavity"): [Box(700, 0, 800, 640)], ("t", "effusion"): [quarter]}
    found = localise(scene([[bump(0, 0), bump(0, 0)]], boxes))
    assert found.per_pair.chance == pytest.approx((0.5 + 0.25) / 2)
    assert found.per_film.chance == pytest.approx(1 - 0.5 * 0.75)
    assert (found.per_pair.fixed, found.per_film.fixed) == (0.5, 1)


def test_without_a_training_box_the_fixed_prior_is_a_random_point_and_the_report_says_so():
    boxes = {("f0", "cavity"): [Box(0, 0, 400, 640)], ("f0", "effusion"): [Box(0, 0, 400, 640)]}
    boxes |= {("t", "effusion"): [Box(0, 0, 400, 640)]}
    found = localise(scene([[bump(0, 0), bump(0, 0)]], boxes))
    assert found.concepts[0].pointing.fixed is None
    assert found.per_pair.fixed == pytest.approx((0.5 + 1) / 2)
    assert "no box of Cavity" in found.warnings[0]


def test_without_any_training_box_there_is_no_fixed_prior():
    assert localise(scene([[bump(0, 0)] * 2], {("f0", "cavity"): [patch_box(0, 0)]})).per_pair.fixed is None


def test_films_without_boxes_say_nothing_on_pointing():
    found = localise(scene([[bump(0, 0)] * 2], {}))
    assert found.per_pair is None
    assert found.per_film is None
    assert found.pairs == ()
    assert "nothing can be said" in found.warnings[0]


def test_the_interval_holds_the_share_of_hits():
    rate = localise(sixty_films()).per_pair.mean
    assert rate.interval.low < rate.share < rate.interval.high
