import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.faithfulness import bench_faithfulness
from medgrape.config import BackboneSettings, ModelSettings
from medgrape.errors import UserError
from medgrape.evaluation.faithfulness import (
    BLUR,
    answer_of,
    blurred,
    faithfulness,
    random_order,
    saliency_of,
)
from medgrape.evaluation.readings import EvaluationError
from medgrape.model.backbones import build_backbone
from medgrape.model.grape import Grape
from medgrape.model.graph import ConceptGraph
from oracles import faithfulness as slow

sides, seeds = st.integers(3, 9), st.integers(0, 999)


def drawn(count, side, seed):
    return torch.rand(count, 1, side, side, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def some_model(side, seed, classes=3):
    """Every class depends on every pixel, not linearly."""
    weights = torch.randn(2, side * side, classes, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return lambda films: (films.flatten(1) @ weights[0] + films.flatten(1).square() @ weights[1]).softmax(dim=-1)


def slow_answer(model):
    """The same for a single film, as plain numbers."""
    return lambda film: model(torch.tensor(film, dtype=torch.float64)[None, None])[0].tolist()


def texture_reader(films):
    """A model that uses only the roughness of a block of 8 x 8 pixels."""
    rough = films[:, 0, 8:16, 16:24].flatten(1).std(dim=1)
    return torch.stack([rough * 2, 1 - rough * 2], dim=1)


@pytest.fixture
def rough_films():
    """Films of 32 x 32, smooth but for that block."""
    films = drawn(3, 32, 0) * 0.02 + 0.5
    films[:, :, 8:16, 16:24] = (torch.arange(64).reshape(8, 8) + torch.arange(8)[:, None]) % 2
    return films


@pytest.fixture
def grape():
    torch.manual_seed(0)
    backbone = build_backbone(BackboneSettings(leave_off=2, pretrained=False))
    model = Grape(backbone, ModelSettings(prototypes=3, width=4), ConceptGraph(torch.eye(2), 0.1), 2, None)
    return model.eval()


@settings(max_examples=25, deadline=None)
@given(side=sides, grid=st.tuples(st.integers(1, 4), st.integers(1, 4)), steps=st.integers(1, 9), seed=seeds)
def test_curves_and_areas_agree_with_changing_pixel_by_pixel(side, grid, steps, seed):
    films, saliency, model = drawn(2, side, seed), random_order(2, grid, seed), some_model(side, seed)
    result, answer = faithfulness(model, films, saliency, steps=steps), slow_answer(model)
    for number in range(2):
        film, one_map = films[number, 0].tolist(), saliency[number].tolist()
        deleted = slow.deletion_curve(answer, film, one_map, steps)
        inserted = slow.insertion_curve(answer, film, one_map, steps, BLUR * side)
        assert result.deletion_curves[number] == pytest.approx(deleted, abs=1e-6)
        assert result.insertion_curves[number] == pytest.approx(inserted, abs=1e-6)
        assert result.deletion[number] == pytest.approx(slow.area(deleted), abs=1e-6)
        assert result.insertion[number] == pytest.approx(slow.area(inserted), abs=1e-6)


def test_a_map_of_the_only_place_the_model_uses_beats_a_random_order(rough_films):
    right = torch.zeros(3, 4, 4)
    right[:, 1, 2] = 1.0
    ours = faithfulness(texture_reader, rough_films, right)
    blind = [faithfulness(texture_reader, rough_films, random_order(3, (4, 4), seed)) for seed in range(5)]
    assert (ours.deletion < np.mean([baseline.deletion for baseline in blind], axis=0) - 0.2).all()
    assert (ours.insertion > np.mean([baseline.insertion for baseline in blind], axis=0) + 0.05).all()


def test_a_map_of_all_other_places_is_worse_than_a_random_order(rough_films):
    wrong = torch.ones(3, 4, 4)
    wrong[:, 1, 2] = 0.0
    ours = faithfulness(texture_reader, rough_films, wrong)
    blind = faithfulness(texture_reader, rough_films, random_order(3, (4, 4)))
    assert (ours.deletion > blind.deletion).all()
    assert (ours.insertion < blind.insertion).all()


@settings(max_examples=25, deadline=None)
@given(films=st.integers(1, 7), steps=st.integers(1, 12), batch=st.integers(1, 40), seed=seeds)
def test_the_batch_size_does_not_change_the_result_and_is_never_exceeded(films, steps, batch, seed):
    shown, saliency, model = drawn(films, 6, seed), random_order(films, (3, 3), seed), some_model(6, seed)
    sizes = []

    def watched(some):
        sizes.append(len(some))
        return model(some)

    alone = [faithfulness(model, shown[n : n + 1], saliency[n : n + 1], steps=steps, batch=1) for n in range(films)]
    result = faithfulness(watched, shown, saliency, steps=steps, batch=batch)
    assert max(sizes) <= batch
    assert sum(sizes) == films * (2 * steps + 1)  # the untouched film once, for both curves
    for kind in ("deletion", "insertion", "deletion_curves", "insertion_curves"):
        np.testing.assert_allclose(
            getattr(result, kind), np.concatenate([getattr(single, kind) for single in alone]), 1e-12
        )


@settings(deadline=None)
@given(side=sides, steps=st.integers(1, 9), seed=seeds)
def test_every_step_changes_the_same_number_of_pixels_up_to_one(side, steps, seed):
    films = drawn(1, side, seed)
    grey, counts = films.mean(dim=(1, 2, 3)), []

    def counting(some):
        counts.extend(((some - grey).abs() < 1e-12).sum(dim=(1, 2, 3)).tolist())
        return torch.ones(len(some), 2, dtype=torch.float64) / 2

    faithfulness(counting, films, random_order(1, (2, 2), seed), steps=steps)
    grew = np.diff(counts[: steps + 1])  # deletion is asked about first, from the untouched film on
    assert (counts[0], counts[steps]) == (0, side * side)
    assert grew.max() - grew.min() <= 1


def test_a_curve_begins_with_no_pixel_changed_and_ends_with_all_of_them():
    films, model = drawn(2, 8, 1), some_model(8, 1)
    result = faithfulness(model, films, random_order(2, (4, 4)), steps=5)
    whole = model(films)
    row, asked = torch.arange(2), whole.argmax(dim=1)
    grey, soft = films.mean(dim=(1, 2, 3), keepdim=True).expand_as(films), blurred(films)
    assert result.deletion_curves.shape == result.insertion_curves.shape == (2, 6)
    np.testing.assert_allclose(result.deletion_curves[:, 0], whole[row, asked])
    np.testing.assert_allclose(result.insertion_curves[:, -1], whole[row, asked])
    np.testing.assert_allclose(result.deletion_curves[:, -1], model(grey)[row, asked])
    np.testing.assert_allclose(result.insertion_curves[:, 0], model(soft)[row, asked])


@settings(deadline=None)
@given(level=st.floats(-1, 1, width=32), grid=st.integers(1, 7))
def test_equally_salient_pixels_are_changed_row_by_row(level, grid):
    films = drawn(1, 7, 3)

    def rows_from_the_top(some):
        changed = (some[:, 0] != films[0, 0]).all(dim=-1).double()
        whole = 1 - changed.cumprod(dim=1).sum(dim=1) / 7
        return torch.stack([whole, torch.zeros_like(whole)], dim=1)

    result = faithfulness(rows_from_the_top, films, torch.full((1, grid, grid), level), steps=7)
    np.testing.assert_allclose(result.deletion_curves[0], 1 - np.arange(8) / 7, atol=1e-12)


@settings(deadline=None)
@given(side=sides, patches=st.integers(1, 5), steps=st.integers(1, 20))
def test_places_that_are_equal_by_symmetry_stay_equal_despite_rounding(side, patches, steps):
    """A map that is its own mirror image: the oracle counts in fractions."""
    half = random_order(1, (patches, patches), side)
    films, saliency, model = drawn(1, side, 5), half + half.flip(-1), some_model(side, 5)
    result = faithfulness(model, films, saliency, steps=min(steps, side))
    slowly = slow.deletion_curve(slow_answer(model), films[0, 0].tolist(), saliency[0].tolist(), min(steps, side))
    assert result.deletion_curves[0] == pytest.approx(slowly, abs=1e-6)


def test_blurring_does_not_change_a_film_of_a_single_grey():
    torch.testing.assert_close(blurred(torch.full((1, 1, 20, 20), 0.3)), torch.full((1, 1, 20, 20), 0.3))
    assert blurred(drawn(1, 64, 0)).std() < drawn(1, 64, 0).std() / 2


def test_a_random_order_depends_on_the_seed_and_differs_between_films():
    torch.testing.assert_close(random_order(2, (3, 4), 7), random_order(2, (3, 4), 7))
    assert not torch.equal(random_order(2, (3, 4), 7), random_order(2, (3, 4), 8))
    first, second = random_order(2, (3, 4), 7)
    assert not torch.equal(first, second)


def test_the_saliency_of_grape_is_the_maximum_of_all_its_maps(grape):
    films = torch.rand(3, 1, 64, 64)
    grape.atlas.curated(torch.tensor([[True, False, True], [True, True, True]]), torch.zeros(2, 3))
    with torch.no_grad():
        shown = grape.predict_with_all_maps(films)[1].strongest
        torch.testing.assert_close(answer_of(grape)(films), grape(films).probabilities)
    torch.testing.assert_close(saliency_of(grape, films, batch=2), shown.amax(dim=1))
    result = faithfulness(answer_of(grape), films, saliency_of(grape, films), steps=4)
    assert np.isfinite(result.deletion).all()


def test_a_model_in_training_mode_is_refused(grape):
    grape.train()
    for ask in (answer_of, lambda model: saliency_of(model, torch.rand(1, 1, 64, 64))):
        with pytest.raises(EvaluationError, match=r"model\.eval"):
            ask(grape)


def test_impossible_steps_missing_maps_and_infinite_values_are_refused():
    films, model = drawn(2, 4, 0), some_model(4, 0)
    with pytest.raises(EvaluationError, match="1 to 16 steps"):
        faithfulness(model, films, random_order(2, (2, 2)), steps=17)
    with pytest.raises(EvaluationError, match="0 films and 0 maps"):
        faithfulness(model, films[:0], random_order(0, (2, 2)), steps=4)
    with pytest.raises(EvaluationError, match="not finite"):
        faithfulness(model, films, random_order(2, (2, 2)) * float("nan"), steps=4)


def test_the_benchmark_says_what_to_install_where_quantus_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "quantus", None)
    with pytest.raises(UserError, match="pip install quantus"):
        list(bench_faithfulness(1))
