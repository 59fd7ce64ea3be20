"""Scores that are kept beside a data set, and what they tell about prototypes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import medgrape as mg
from medgrape.training.film_scores import _name, films_for, kept_scores, usage_of
from medgrape.vocabulary.curation import prototypes_of


@pytest.fixture(scope="module")
def reader(trained_run):
    return mg.load(trained_run)


def passes(monkeypatch):
    """Counts how often a batch goes through the backbone."""
    from medgrape.model.backbones import Backbone

    counted = []
    forward = Backbone.forward_trainable
    monkeypatch.setattr(
        Backbone, "forward_trainable", lambda self, seen: counted.append(len(seen)) or forward(self, seen)
    )
    return counted


def test_scores_of_other_prototypes_are_not_taken_for_those_on_disk(reader, drawn_dataset, monkeypatch):
    run = reader.loaded.run
    kept_scores(run, films_for(run, drawn_dataset), drawn_dataset)
    other = replace(run, model=mg.load(reader.loaded.folder).loaded.run.model)
    with torch.no_grad():
        other.model.atlas.vectors[0, 0] += 0.5
    counted = passes(monkeypatch)
    moved = kept_scores(other, films_for(run, drawn_dataset), drawn_dataset)
    assert sum(counted) > 2
    same = kept_scores(run, films_for(run, drawn_dataset), drawn_dataset)
    assert not np.array_equal(moved.scores[0, :, 0, 0], same.scores[0, :, 0, 0])
    np.testing.assert_array_equal(moved.scores[:, :, 1], same.scores[:, :, 1])


@pytest.mark.parametrize("how", ["smooth", "mirror"])
def test_scores_of_films_that_are_prepared_differently_have_another_folder(reader, drawn_dataset, how):
    run = reader.loaded.run
    films = films_for(run, drawn_dataset)
    other = run.config.model_copy(update={"model": run.config.model.overridden(**{how: True})})
    assert _name(run, films, 2) != _name(replace(run, config=other), films, 2)


def test_cached_scores_and_their_patches_equal_those_of_a_study(reader, drawn_dataset):
    run = reader.loaded.run
    films = films_for(run, drawn_dataset)
    found = kept_scores(run, films, drawn_dataset)
    study = reader.open(films.dataset.film_path(films.records[3]))
    np.testing.assert_allclose(found.scores[0, 3], study.evidence.scores.numpy(), atol=1e-5)
    flat = study.evidence.similarity.flatten(start_dim=2)
    at = flat.gather(2, torch.from_numpy(found.where[3].astype(np.int64)).unsqueeze(-1))[..., 0]
    np.testing.assert_allclose(at.numpy(), study.evidence.scores.numpy(), atol=1e-5)


def test_usage_counts_films_on_which_a_prototype_is_the_strongest_of_its_concept(reader, drawn_dataset):
    curated = reader.discard("active_tb", [0, 2])
    films = films_for(reader.loaded.run, drawn_dataset)
    used = usage_of(reader.loaded.run, drawn_dataset)
    for row, name in enumerate(reader.concepts.names):
        shown = sum(bool(film.labels[name]) for film in films.dataset.in_split("train"))
        assert used.shown[row] == used.strongest[row].sum() == shown
    row = reader.concepts.index("active_tb")
    without = usage_of(curated.loaded.run, drawn_dataset)
    assert without.strongest[row, [0, 2]].tolist() == [0, 0]
    assert without.strongest[row].sum() == used.strongest[row].sum()
    assert ((used.in_box >= 0) & (used.in_box <= 1)).all()


def test_the_fraction_in_a_box_equals_a_count_by_hand(reader, drawn_dataset):
    """Counted again by hand, patch by patch."""
    run, films = reader.loaded.run, films_for(reader.loaded.run, drawn_dataset)
    row = reader.concepts.index("active_tb")
    touched = []
    for position in films.positions("train"):
        film = films.records[position]
        boxes = [drawn.box for drawn in films.dataset.boxes_by_film.get(film.id, ()) if drawn.concept == "active_tb"]
        if not boxes:
            continue
        patches = run.model.patches(films.pixels([position]))[0]
        found = torch.einsum("dhw,d->hw", patches, run.model.atlas.prototypes[row, 1])
        grid = mg.PatchGrid(film.size, *found.shape)
        patch = grid.patch(*divmod(int(found.argmax()), grid.columns))
        touched.append(any(b.x1 < patch.x2 and patch.x1 < b.x2 and b.y1 < patch.y2 and patch.y1 < b.y2 for b in boxes))
    card = prototypes_of(run, "active_tb", usage_of(run, drawn_dataset))[1]
    assert card.in_box == pytest.approx(np.mean(touched))
