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
from medgrape.datasets.statistics import blind_pointing
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
def test_the_peak_agrees_with_the_map_upsampled_pixel_by_pixel_ties_included(rows, columns, width, height, values):
    scores, film = np.array(values[: rows * columns]).reshape(rows, columns), FilmSize(width, height)
    assert peak(scores, PatchGrid(film, rows, columns)) == slow_peak(scores, film)


@pytest.mark.parametrize("size", [(301, 211), (64, 64), (1000, 37), (5, 6)])
def test_the_peak_is_the_highest_pixel_of_the_map_upsampled_by_opencv_and_torch(size):
    chance = np.random.default_rng(7)
    for _ in range(10):
        scores = chance.normal(size=(7, 9)).astype(np.float32)
        x, y = peak(scores, PatchGrid(FilmSize(*size), 7, 9))
        shape = (size[1], size[0])
        by_torch = torch.nn.functional.interpolate(torch.tensor(scores)[None, None], shape, mode="bilinear")[0, 0]
        for large in (cv2.resize(scores, size, interpolation=cv2.INTER_LINEAR), by_torch.numpy()):
            assert large[int(y), int(x)] == pytest.approx(large.max(), abs=1e-4)


def test_a_constant_map_points_at_its_first_patch():
    assert peak(np.full((4, 4), 0.3), PatchGrid(FilmSize(400, 800), 4, 4)) == (49.5, 99.5)


@pytest.mark.parametrize("row", [0, 3])
@pytest.mark.parametrize("column", [0, 2, 7])
def test_a_mirrored_map_points_at_the_mirrored_place(row, column):
    grid = PatchGrid(FilmSize(803, 641), 8, 8)
    x, y = peak(bump(row, column), grid)
    across, up = peak(bump(row, column)[::-1, ::-1], grid)
    assert (across, up) == (pytest.approx(803 - x, abs=1), pytest.approx(641 - y, abs=1))


def test_the_peak_on_a_film_of_billions_of_pixels_needs_no_full_size_map():
    x, y = peak(bump(2, 5, 32), PatchGrid(FilmSize(60_000, 50_000), 32, 32))
    assert (x, y) == (pytest.approx(5.5 * 60_000 / 32, abs=1), pytest.approx(2.5 * 50_000 / 32, abs=1))


def scene(maps, boxes, **more):
    films = [film("t", split="train"), *(film(f"f{n}") for n in range(len(maps)))]
    return readings(dataset(films, boxes), mean_maps=maps, **more)


def test_a_model_that_points_at_the_middle_of_each_box_hits_every_pair():
    spots = [(1, 2), (4, 4), (7, 0)]
    boxes = {(f"f{n}", "cavity"): [patch_box(*spot)] for n, spot in enumerate(spots)}
    result = localise(scene([[bump(*spot), bump(0, 0)] for spot in spots], boxes))
    assert result.per_pair.count == result.per_pair.mean.hits == 3
    assert result.per_film.mean.share == 1
    assert result.concepts[1].pointing is None
    assert result.pairs[0].mean.point == (pytest.approx(250, abs=1), pytest.approx(120, abs=1))


def test_a_hit_needs_a_box_of_the_same_concept():
    boxes = {("f0", "cavity"): [patch_box(1, 1)], ("f0", "effusion"): [patch_box(6, 6)]}
    result = localise(scene([[bump(6, 6), bump(1, 1)]], boxes))
    assert result.per_pair.mean.hits == 0


def test_a_point_in_any_of_several_boxes_is_a_hit():
    result = localise(scene([[bump(6, 6), bump(0, 0)]], {("f0", "cavity"): [patch_box(1, 1), patch_box(6, 6)]}))
    assert result.per_pair.mean.hits == result.per_pair.count == 1


def test_a_film_with_one_concept_hit_and_one_missed_is_half_by_pair_and_hit_by_film():
    boxes = {("f0", "cavity"): [patch_box(1, 1)], ("f0", "effusion"): [patch_box(6, 6)]}
    boxes |= {("f1", "cavity"): [patch_box(1, 1)]}
    result = localise(scene([[bump(1, 1), bump(2, 2)], [bump(5, 5), bump(0, 0)]], boxes))
    assert (result.per_pair.mean.hits, result.per_pair.count) == (1, 3)
    assert (result.per_film.mean.hits, result.per_film.count) == (1, 2)
    assert result.per_film.mean.share == 0.5


def test_mean_map_and_maximum_map_are_counted_separately():
    boxes = {("f0", "cavity"): [patch_box(1, 1)]}
    result = localise(scene([[bump(1, 1), bump(0, 0)]], boxes, max_maps=[[bump(5, 5), bump(0, 0)]]))
    assert (result.per_pair.mean.share, result.per_pair.maximum.share) == (1, 0)


def test_the_cam_is_counted_on_the_same_pairs_as_the_prototypes():
    boxes = {("f0", "cavity"): [patch_box(1, 1)], ("f1", "cavity"): [patch_box(6, 6)]}
    maps = [[bump(1, 1), bump(0, 0)]] * 2
    result = localise(scene(maps, boxes, cam_maps={"cavity": [bump(3, 3), bump(6, 6)]}))
    counted = result.concepts[0].pointing
    assert (counted.mean.hits, counted.maximum.hits, counted.cam.hits) == (1, 1, 1)
    assert [pair.cam.hit for pair in result.pairs] == [False, True]
    assert [pair.mean.hit for pair in result.pairs] == [True, False]
    assert result.per_pair.cam.share == result.per_film.cam.share == 0.5
    assert result.per_pair.cam.interval is not None


def test_a_finding_learned_later_has_no_cam_so_the_pooled_figure_has_none_either():
    boxes = {("f0", "cavity"): [patch_box(1, 1)], ("f0", "effusion"): [patch_box(6, 6)]}
    result = localise(scene([[bump(1, 1), bump(6, 6)]], boxes, cam_maps={"cavity": [bump(1, 1)]}))
    cavity, effusion = (concept.pointing for concept in result.concepts)
    assert (cavity.cam.hits, effusion.cam) == (1, None)
    assert result.per_pair.cam is None, "two pairs by prototypes and one by CAM could not be compared"
    assert result.per_film.cam is None
    assert result.per_pair.mean.hits == 2


def test_the_cam_maps_come_from_the_same_single_pass_of_the_backbone(trained_run, drawn_dataset):
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
def test_a_finding_learned_later_is_read_without_a_cam(trained_run, drawn_dataset, grown):
    reader = load(trained_run).learn("cavity", "A thick-walled lucency.")
    reader = reader.grow_head() if grown else reader
    data = Dataset.load(drawn_dataset)
    data = replace(data, concepts=ConceptSet((CAVITY, *data.concepts)))
    read = read_split(reader.loaded, data, drawn_dataset, "test", quietly).readings
    assert list(read.cam_maps) == list(data.concepts.names[1:])
    assert read.mean_maps.shape[1] == 4
    shown = next(record for record in read.films if record.id in data.boxes_by_film)
    boxes = (*data.boxes, DrawnBox(shown.id, "cavity", Box(0, 0, 9, 9)))
    result = localise(replace(read, dataset=replace(data, boxes=boxes)))
    assert result.concepts[0].pointing.cam is None
    assert any(concept.pointing.cam is not None for concept in result.concepts if concept.pointing is not None)


def test_blind_pointing_agrees_with_the_data_check():
    read = sixty_films()
    result = localise(read)
    blind = [blind_pointing(read.dataset, name) for name in read.dataset.concepts.names]
    for concept, expected in zip(result.concepts, blind, strict=True):
        assert concept.pointing.count == expected.pairs
        assert concept.pointing.chance == pytest.approx(expected.random)
        assert concept.pointing.fixed == pytest.approx(expected.fixed)
        assert concept.fixed_point == expected.point
    pairs = sum(baseline.pairs for baseline in blind)
    assert result.per_pair.chance == pytest.approx(sum(baseline.pairs * baseline.random for baseline in blind) / pairs)
    assert result.per_pair.fixed == pytest.approx(sum(baseline.pairs * baseline.fixed for baseline in blind) / pairs)


def test_blind_pointing_is_tested_only_on_the_films_that_were_read():
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
    result = localise(scene([[bump(0, 0), bump(0, 0)]], boxes))
    assert result.per_pair.chance == pytest.approx((0.5 + 0.25) / 2)
    assert result.per_film.chance == pytest.approx(1 - 0.5 * 0.75)
    assert (result.per_pair.fixed, result.per_film.fixed) == (0.5, 1)


def test_without_a_training_box_the_fixed_prior_is_a_random_point_and_the_report_says_so():
    boxes = {("f0", "cavity"): [Box(0, 0, 400, 640)], ("f0", "effusion"): [Box(0, 0, 400, 640)]}
    boxes |= {("t", "effusion"): [Box(0, 0, 400, 640)]}
    result = localise(scene([[bump(0, 0), bump(0, 0)]], boxes))
    assert result.concepts[0].pointing.fixed is None
    assert result.per_pair.fixed == pytest.approx((0.5 + 1) / 2)
    assert "no box of Cavity" in result.warnings[0]


def test_without_any_training_box_there_is_no_fixed_prior():
    assert localise(scene([[bump(0, 0)] * 2], {("f0", "cavity"): [patch_box(0, 0)]})).per_pair.fixed is None


def test_films_without_boxes_have_no_pointing_game():
    result = localise(scene([[bump(0, 0)] * 2], {}))
    assert result.per_pair is None
    assert result.per_film is None
    assert result.pairs == ()
    assert "nothing can be said" in result.warnings[0]


def test_the_interval_includes_the_share_of_hits():
    rate = localise(sixty_films()).per_pair.mean
    assert rate.interval.low < rate.share < rate.interval.high
