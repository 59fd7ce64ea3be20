"""Single stages, on scenes small enough to count by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from medgrape.config import ConceptStage, HeadStage, PrototypeStage, load_config
from medgrape.config.settings import Schedule
from medgrape.datasets.cache import FilmCache
from medgrape.datasets.dataset import Dataset, DrawnBox
from medgrape.geometry import Box
from medgrape.model.evidence import mean_maps
from medgrape.progress import quietly
from medgrape.training.concept_stage import ConceptTraining
from medgrape.training.films import TrainingError, TrainingFilms, shuffled
from medgrape.training.head_stage import head_loss
from medgrape.training.loop import pace
from medgrape.training.losses import (
    alignment_loss,
    contrastive_loss,
    detection_loss,
    film_rarity,
    positive_weights,
    rarity_weights,
    soft_similarity,
)
from medgrape.training.pipeline import build_model
from medgrape.training.prototype_stage import PrototypeTraining, VectorBatch, prototype_loss
from medgrape.training.stored_features import FilmInputs, Views, open_inputs, open_patches, open_vectors
from medgrape.vocabulary.encoders.lexical import LexicalEncoder
from small_settings import small


@pytest.fixture
def inputs(drawn_dataset):
    config = small()
    dataset = Dataset.load(drawn_dataset)
    cached = FilmCache(drawn_dataset / "cache", config).films([dataset.film_path(film) for film in dataset.pictured])
    films = TrainingFilms.of(dataset, cached, "train", "val")
    model = build_model(config, dataset, LexicalEncoder()).eval()
    return model, FilmInputs(
        films, model.backbone, Views(0, augment=True), model.backbone.grid(64), torch.device("cpu")
    )


def test_films_are_never_among_training_films(inputs):
    _, given = inputs
    assert {film.split for film in given.films.records} == {"train", "val"}


def test_cached_activations_equal_those_of_the_frozen_parts(inputs, tmp_path):
    _, given = inputs
    kept = open_inputs(given, 2, tmp_path / "early", quietly)
    assert kept.cached is not None
    for number in (0, 1):
        torch.testing.assert_close(kept.activations([3, 1], number), given.activations([3, 1], number))
        again, fresh = kept.targets([3, 1], number + 2), given.targets([3, 1], number)
        torch.testing.assert_close(again.overlap, fresh.overlap)  # views come again after the last


def test_only_films_that_show_a_concept_give_a_vector_of_it(inputs, tmp_path):
    model, given = inputs
    found = open_vectors(model, given, small().stages.vectors, tmp_path / "v", quietly, background=False)
    labels = given.films.labels.numpy()
    assert all(labels[film, group] == 1 for film, group in zip(found.films, found.groups, strict=True))
    assert {(f, g) for f, g in zip(found.films, found.groups, strict=True)} == set(
        zip(*np.nonzero(labels == 1), strict=True)
    )


def test_normal_tissue_comes_from_healthy_films_and_from_beside_findings(inputs, tmp_path):
    model, given = inputs
    found = open_vectors(model, given, small().stages.vectors, tmp_path / "v", quietly, background=True)
    ordinary = found.films[found.groups == 3]
    classes = {given.films.records[film].class_name for film in ordinary}
    assert classes == {"healthy", "active_tb"}


def test_patches_inside_a_box_are_vectors_if_set(inputs, tmp_path):
    """The left half of a film has eight of its sixteen patches."""
    model, given = inputs
    dataset = given.films.dataset
    film = next(film for film in given.films.records if film.labels["active_tb"])
    half = DrawnBox(film.id, "active_tb", Box(0, 0, film.size.width / 2, film.size.height))
    given = replace(given, films=replace(given.films, dataset=replace(dataset, boxes=(half,))))
    settings = small().stages.vectors.model_copy(update={"boxes": True})
    counts = {}
    for inside in (0, 3, 99):
        wanted = settings.model_copy(update={"inside": inside})
        found = open_vectors(model, given, wanted, tmp_path / str(inside), quietly, background=False)
        place = given.films.records.index(film)
        counts[inside] = int(((found.films == place) & (found.groups == 0)).sum())
    assert counts == {0: 1, 3: 1 + 3, 99: 1 + 8}


def test_vectors_do_not_depend_on_boxes_unless_set(inputs, tmp_path):
    model, given = inputs
    settings = small().stages.vectors.model_copy(update={"boxes": False})
    without = replace(given, films=replace(given.films, dataset=replace(given.films.dataset, boxes=())))
    drawn, bare = (
        open_vectors(model, one, settings, tmp_path / name, quietly, background=True)
        for name, one in (("drawn", given), ("bare", without))
    )
    assert len(given.films.dataset.boxes) > 0
    np.testing.assert_array_equal(drawn.groups, bare.groups)
    np.testing.assert_array_equal(drawn.vectors, bare.vectors)


def test_later_stages_use_the_same_features_as_a_reader(inputs, tmp_path):
    model, given = inputs
    kept = open_inputs(given, 2, tmp_path / "early", quietly)
    one_way = kept.features(model, [2, 5], 0)
    torch.testing.assert_close(one_way, model.features(given.films.pixels([2, 5])), atol=1e-4, rtol=1e-4)
    model.mirror = True
    for number in (0, 1, 2):
        views = given.views.random([2, 5], number % 2)
        expected = model.features(given.films.augmented([2, 5], views))
        torch.testing.assert_close(kept.features(model, [2, 5], number), expected, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(one_way, kept.features(model, [2, 5], 0), atol=1e-3)


def test_without_boxes_the_highest_patches_are_vectors_too(inputs, tmp_path):
    model, given = inputs
    settings = small().stages.vectors.model_copy(update={"boxes": False, "inside": 2})
    found = open_vectors(model, given, settings, tmp_path / "v", quietly, background=False)
    film = int(found.films[0])
    features = model.features(given.films.pixels([film]))
    around = torch.nn.functional.avg_pool2d(model.cam(features), 3, 1, 1, count_include_pad=False)[0, found.groups[0]]
    highest = features[0].flatten(1)[:, around.flatten().topk(2).indices].T.detach().numpy()
    taken = found.vectors[(found.films == film) & (found.groups == found.groups[0])]
    assert len(taken) == 1 + 2
    np.testing.assert_allclose(taken[1:], highest, atol=1e-4)


def test_the_number_of_normal_tissue_patches_is_as_set(inputs, tmp_path):
    model, given = inputs
    settings = small().stages.vectors.model_copy(update={"ordinary": 6, "normal": ()})
    found = open_vectors(model, given, settings, tmp_path / "v", quietly, background=True)
    taken = np.bincount(found.films[found.groups == 3], minlength=len(given.films))
    assert taken.max() == 6


def test_films_without_labels_are_left_out_of_stage_one(inputs):
    model, given = inputs
    unknown = given.films.positions("train")[0]
    labels = given.films.labels.clone()
    labels[unknown] = torch.nan
    object.__setattr__(given.films, "labels", labels)
    for class_weight, looked_at in ((0.0, False), (1.0, True)):
        schedule = ConceptStage(batch=1, class_weight=class_weight)
        training = ConceptTraining(model, given, schedule, (0, 1))
        assert training.steps() == len(given.films.positions("train")) - (not looked_at)


def test_without_cached_views_every_epoch_has_its_own_views(inputs, tmp_path):
    _, given = inputs
    opened = open_inputs(given, 0, tmp_path / "early", quietly)
    assert not (tmp_path / "early").exists()
    first, second = (opened.activations([0], number) for number in (1, 5))
    assert not torch.equal(first, second)


def test_the_alignment_weight_is_applied_once(inputs):
    model, _ = inputs
    vectors, groups = torch.randn(6, model.backbone.features), torch.tensor([0, 1, 2, 3, 0, 1])
    weights = torch.ones(4)
    with_text, without = (
        prototype_loss(model, VectorBatch(vectors, groups), PrototypeStage(alignment=weight, mask_above=9.0), weights)
        for weight in (0.1, 0.0)
    )
    expected = 0.1 * alignment_loss(model.atlas.prototypes, model.anchors())
    torch.testing.assert_close(with_text - without, expected, atol=1e-5, rtol=1e-4)
    similarity = soft_similarity(model.projector(vectors), model.atlas.contrasted, 5.0)
    torch.testing.assert_close(without, contrastive_loss(similarity, groups, 10.0, 0.1, weights))


def test_the_head_learns_from_smoothed_labels():
    logits, classes = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, -100])
    expected = nn.CrossEntropyLoss(label_smoothing=0.05)(logits[:4], classes[:4])
    torch.testing.assert_close(head_loss(logits, classes, HeadStage(), None), expected)


def test_the_learning_rate_warms_up_and_follows_a_cosine():
    schedule = Schedule(warmup=0.1)
    paces = [pace(schedule, step, 100) for step in range(100)]
    assert paces[0] < paces[5] < paces[9] < paces[10] == 1.0
    assert paces[10:] == sorted(paces[10:], reverse=True)
    assert paces[55] == pytest.approx(0.5)
    assert paces[-1] < 0.001


def test_rare_concepts_weigh_more_by_the_root_of_their_rarity():
    labels = torch.tensor([[1.0, 0.0, torch.nan]] + [[0.0, 1.0, torch.nan]] * 16)
    assert positive_weights(labels, balance=True).tolist() == pytest.approx([4.0, 1.0, 1.0])
    assert positive_weights(labels, balance=False).tolist() == [1.0, 1.0, 1.0]
    weights = rarity_weights(torch.tensor([0] * 16 + [1] * 4), 3)
    assert float(weights[1] / weights[0]) == pytest.approx(2.0)
    assert float(16 * weights[0] + 4 * weights[1]) == pytest.approx(20.0)
    assert float(weights[2]) == 0.0


def test_resampling_draws_films_with_rare_findings_more_often(inputs):
    labels = torch.tensor([[1.0, 1.0]] + [[0.0, 1.0]] * 3 + [[0.0, torch.nan]] * 12)
    assert film_rarity(labels).tolist() == pytest.approx([4.0] + [2.0] * 3 + [1.0] * 12)
    model, given = inputs
    training = ConceptTraining(model, given, ConceptStage(batch=4, resample=True), (0, 1))
    positions = [training._resampled(epoch) for epoch in range(1, 60)]
    assert positions[0] == training._resampled(1)
    assert positions[0] != positions[1]
    weights = film_rarity(given.films.labels[given.films.positions("train")])
    rarest, commonest = (given.films.positions("train")[int(place)] for place in (weights.argmax(), weights.argmin()))
    drawn = np.bincount(np.concatenate(positions), minlength=len(given.films))
    assert drawn[rarest] > drawn[commonest]


def test_vectors_are_the_same_from_cached_patches(inputs, tmp_path):
    model, given = inputs
    patches = open_patches(model, given, tmp_path / "p", quietly)
    settings = small().stages.vectors
    read, made = (
        open_vectors(model, replace(given, patches=source), settings, tmp_path / name, quietly, background=True)
        for name, source in (("read", patches), ("made", None))
    )
    np.testing.assert_array_equal(read.groups, made.groups)
    np.testing.assert_allclose(read.vectors, made.vectors, rtol=5e-3, atol=5e-3)  # halves of floats


def test_the_detection_loss_of_some_training_films_is_added(inputs, tmp_path):
    model, given = inputs
    patches = open_patches(model, given, tmp_path / "p", quietly)
    found = open_vectors(model, given, small().stages.vectors, tmp_path / "v", quietly, background=False)
    schedule = PrototypeStage(detection=1.0, batch=4)
    training = PrototypeTraining(model, found, replace(given, patches=patches), schedule)
    batch = next(training.batches(1))
    assert batch.films is not None
    assert len(batch.films.features) == min(32, len(given.films.positions("train")))
    without, with_films = (training.loss(training.learner, one) for one in (replace(batch, films=None), batch))
    maps = mean_maps(model.projector.patches(batch.films.features), list(model.atlas.prototypes))
    torch.testing.assert_close(with_films - without, detection_loss(maps, batch.films.labels), atol=1e-5, rtol=1e-4)


def test_pushed_prototypes_are_vectors_of_training_films_that_show_the_concept(inputs, tmp_path):
    model, given = inputs
    found = open_vectors(model, given, small().stages.vectors, tmp_path / "v", quietly, background=True)
    training = PrototypeTraining(model, found, given, PrototypeStage(background=True))
    training.place()
    training.push()
    shown = {film: film in set(given.films.positions("train")) for film in range(len(given.films))}
    projected = model.projector(torch.from_numpy(found.vectors.copy())).detach()
    for concept, prototypes in enumerate(model.atlas.contrasted.detach()):
        own = [row for row, (group, film) in enumerate(zip(found.groups, found.films, strict=True))
               if group == concept and shown[int(film)]]  # fmt: skip
        if own:
            nearest = (prototypes @ projected[own].T).amax(dim=1)
            torch.testing.assert_close(nearest, torch.ones_like(nearest))


def test_processes_share_every_batch_completely():
    films = list(range(21))
    whole = list(shuffled(films, 6, (0, 1), 0, 1))
    halves = [list(shuffled(films, 6, (rank, 2), 0, 1)) for rank in (0, 1)]
    for batch, first, second in zip(whole, *halves, strict=True):
        assert sorted(first + second) == sorted(batch)
        assert len(first) == len(second) == 3
    with pytest.raises(TrainingError, match="too few"):
        next(shuffled([1], 6, (0, 2), 0))


@pytest.mark.parametrize("name", ["tbx11k", "nih", "demo", "tbx11k-real", "tbx11k-labels-real", "nih-real"])
def test_the_settings_that_come_with_the_package_load(name):
    from medgrape.cli.demo import CONFIG

    config = load_config(CONFIG.with_name(f"{name}.toml"))
    beyond = config.stages
    paper, boxed = name in ("tbx11k", "nih"), name in ("demo", "tbx11k-real")
    assert (beyond.prototypes.dispersion == 0) == paper
    assert (beyond.prototypes.pointing == 0) == (paper or name == "demo")
    assert (beyond.concepts.box_weight > 0 and beyond.vectors.boxes) == boxed
    assert beyond.prototypes.background != paper


@pytest.mark.parametrize(
    ("name", "rates", "tau"), [("tbx11k", (1e-4, 1e-4, 1e-3), 0.10), ("nih", (5e-5, 5e-5, 5e-4), 0.05)]
)
def test_the_papers_settings_have_the_papers_values(name, rates, tau):
    from medgrape.cli.demo import CONFIG

    config = load_config(CONFIG.with_name(f"{name}.toml"))
    stages = (config.stages.concepts, config.stages.prototypes, config.stages.head)
    assert tuple(stage.learning_rate for stage in stages) == rates
    assert tuple(stage.epochs for stage in stages) == (30, 20, 20)
    assert {stage.batch for stage in stages} == {128}
    assert {stage.weight_decay for stage in stages} == {1e-4}
    assert (config.model.tau, config.model.prototypes, config.model.width) == (tau, 100, 256)
    assert config.stages.end_to_end.epochs == 70
    assert config.training.precision == "bf16"
    assert config.preprocessing.size == 224
