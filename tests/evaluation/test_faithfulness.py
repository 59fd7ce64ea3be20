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
    """Every pixel has a say in every class, and not a linear one."""
    weights = torch.randn(2, side * side, classes, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return lambda films: (films.flatten(1) @ weights[0] + films.flatten(1).square() @ weights[1]).softmax(dim=-1)


def slow_answer(model):
    """The same of one film, as plain numbers."""
    return lambda film: model(torch.tensor(film, dtype=torch.float64)[None, None])[0].tolist()


def texture_reader(films):
    """Sees nothing but how rough one block of 8 x 8 pixels is."""
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
def test_curves_and_areas_equal_those_of_changing_one_pixel_after_the_other(side, grid, steps, seed):
    films, saliency, model = drawn(2, side, seed), random_order(2, grid, seed), some_model(side, seed)
    found, answer = faithfulness(model, films, saliency, steps=steps), slow_answer(model)
    for number in range(2):
        film, one_map = films[number, 0].tolist(), saliency[number].tolist()
        deleted = slow.deletion_curve(answer, film, one_map, steps)
        inserted = slow.insertion_curve(answer, film, one_map, steps, BLUR * side)
        assert found.deletion_curves[number] == pytest.approx(deleted, abs=1e-6)
        assert found.insertion_curves[number] == pytest.approx(inserted, abs=1e-6)
        assert found.deletion[number] == pytest.approx(slow.area(deleted), abs=1e-6)
        assert found.insertion[number] == pytest.approx(slow.area(inserted), abs=1e-6)


def test_a_map_of_the_one_place_that_the_model_looks_at_beats_a_random_order(rough_films):
    right = torch.zeros(3, 4, 4)
    right[:, 1, 2] = 1.0
    ours = faithfulness(texture_reader, rough_films, right)
    blind = [faithfulness(texture_reader, rough_films, random_order(3, (4, 4), seed)) for seed in range(5)]
    assert (ours.deletion < np.mean([one.deletion for one in blind], axis=0) - 0.2).all()
    assert (ours.insertion > np.mean([one.insertion for one in blind], axis=0) + 0.05).all()


def test_a_map_of_everywhere_else_loses_to_a_random_order(rough_films):
    wrong = torch.ones(3, 4, 4)
    wrong[:, 1, 2] = 0.0
    ours = faithfulness(texture_reader, rough_films, wrong)
    blind = faithfulness(texture_reader, rough_films, random_order(3, (4, 4)))
    assert (ours.deletion > blind.deletion).all()
    assert (ours.insertion < blind.insertion).all()


@settings(max_examples=25, deadline=None)
@given(films=st.integers(1, 7), steps=st.integers(1, 12), batch=st.integers(1, 40), seed=seeds)
def test_how_films_are_batched_changes_nothing_and_no_batch_is_too_large(films, steps, batch, seed):
    shown, saliency, model = drawn(films, 6, seed), random_order(films, (3, 3), seed), some_model(6, seed)
    sizes = []

    def watched(some):
        sizes.append(len(some))
        return model(some)

    alone = [faithfulness(model, shown[n : n + 1], saliency[n : n + 1], steps=steps, batch=1) for n in range(films)]
    found = faithfulness(watched, shown, saliency, steps=steps, batch=batch)
    assert max(sizes) <= batch
    assert sum(sizes) == films * (2 * steps + 1)  # the untouched film once, for both curves
    for kind in ("deletion", "insertion", "deletion_curves", "insertion_curves"):
        np.testing.assert_allclose(getattr(found, kind), np.concatenate([getattr(one, kind) for one in alone]), 1e-12)


@settings(deadline=None)
@given(side=sides, steps=st.integers(1, 9), seed=seeds)
def test_every_step_changes_equally_many_pixels_to_within_one(side, steps, seed):
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
    found = faithfulness(model, films, random_order(2, (4, 4)), steps=5)
    whole = model(films)
    row, asked = torch.arange(2), whole.argmax(dim=1)
    grey, soft = films.mean(dim=(1, 2, 3), keepdim=True).expand_as(films), blurred(films)
    assert found.deletion_curves.shape == found.insertion_curves.shape == (2, 6)
    np.testing.assert_allclose(found.deletion_curves[:, 0], whole[row, asked])
    np.testing.assert_allclose(found.insertion_curves[:, -1], whole[row, asked])
    np.testing.assert_allclose(found.deletion_curves[:, -1], model(grey)[row, asked])
    np.testing.assert_allclose(found.insertion_curves[:, 0], model(soft)[row, asked])


@settings(deadline=None)
@given(level=st.floats(-1, 1, width=32), grid=st.integers(1, 7))
def test_pixels_that_are_equally_salient_go_row_by_row(level, grid):
    films = drawn(1, 7, 3)

    def rows_from_the_top(some):
        changed = (some[:, 0] != films[0, 0]).all(dim=-1).double()
        whole = 1 - changed.cumprod(dim=1).sum(dim=1) / 7
        return torch.stack([whole, torch.zeros_like(whole)], dim=1)

    found = faithfulness(rows_from_the_top, films, torch.full((1, grid, grid), level), steps=7)
    np.testing.assert_allclose(found.deletion_curves[0], 1 - np.arange(8) / 7, atol=1e-12)


@settings(deadline=None)
@given(side=sides, patches=st.integers(1, 5), steps=st.integers(1, 20))
def test_places_that_are_equal_by_symmetry_are_equal_whatever_rounding_does(side, patches, steps):
    """A map that is its own mirror image: the oracle counts in fractions."""
    half = random_order(1, (patches, patches), side)
    films, saliency, model = drawn(1, side, 5), half + half.flip(-1), some_model(side, 5)
    found = faithfulness(model, films, saliency, steps=min(steps, side))
    slowly = slow.deletion_curve(slow_answer(model), films[0, 0].tolist(), saliency[0].tolist(), min(steps, side))
    assert found.deletion_curves[0] == pytest.approx(slowly, abs=1e-6)


def test_a_film_of_one_grey_is_as_sharp_as_ever_after_the_blur():
    torch.testing.assert_close(blurred(torch.full((1, 1, 20, 20), 0.3)), torch.full((1, 1, 20, 20), 0.3))
    assert blurred(drawn(1, 64, 0)).std() < drawn(1, 64, 0).std() / 2


def test_a_random_order_is_the_same_for_a_seed_and_another_for_each_film():
    torch.testing.assert_close(random_order(2, (3, 4), 7), random_order(2, (3, 4), 7))
    assert not torch.equal(random_order(2, (3, 4), 7), random_order(2, (3, 4), 8))
    first, second = random_order(2, (3, 4), 7)
    assert not torch.equal(first, second)


def test_the_saliency_of_grape_is_the_strongest_of_all_maps_that_it_shows(grape):
    films = torch.rand(3, 1, 64, 64)
    grape.atlas.curated(torch.tensor([[True, False, True], [True, True, True]]), torch.zeros(2, 3))
    with torch.no_grad():
        shown = grape.read(films)[1].strongest
        torch.testing.assert_close(answer_of(grape)(films), grape(films).probabilities)
    torch.testing.assert_close(saliency_of(grape, films, batch=2), shown.amax(dim=1))
    found = faithfulness(answer_of(grape), films, saliency_of(grape, films), steps=4)
    assert np.isfinite(found.deletion).all()


def test_a_model_that_is_still_learning_is_refused(grape):
    grape.train()
    for ask in (answer_of, lambda model: saliency_of(model, torch.rand(1, 1, 64, 64))):
        with pytest.raises(EvaluationError, match=r"model\.eval"):
            ask(grape)


def test_what_cannot_be_measured_is_refused():
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
