"""The head learns again while everything before it stands still."""

import shutil

import numpy as np
import pytest
import torch

import medgrape as mg
from medgrape.datasets.dataset import Dataset
from medgrape.evaluation.evaluate import read_split
from medgrape.model.evidence import mean_maps
from medgrape.progress import quietly
from medgrape.training.film_scores import films_for
from medgrape.training.films import TrainingError
from medgrape.training.refit import refit


@pytest.fixture(scope="module")
def reader(trained_run):
    return mg.load(trained_run)


@pytest.fixture(scope="module")
def curated(reader):
    return reader.discard("active_tb", [0, 2])


@pytest.fixture(scope="module")
def fitted(curated, reader, drawn_dataset):
    return refit(curated, drawn_dataset, original=reader)


def weights(reader, part):
    return getattr(reader.loaded.run.model, part).state_dict()


def passes(monkeypatch):
    """Counts how often a batch goes through the backbone."""
    from medgrape.model.backbones import Backbone

    counted = []
    forward = Backbone.forward_trainable
    monkeypatch.setattr(
        Backbone, "forward_trainable", lambda self, seen: counted.append(len(seen)) or forward(self, seen)
    )
    return counted


def test_only_the_head_is_trained(curated, fitted):
    for part in ("backbone", "projector", "atlas"):
        after = weights(fitted.reader, part)
        assert all(torch.equal(tensor, after[name]) for name, tensor in weights(curated, part).items())
    after = weights(fitted.reader, "head")
    assert any(not torch.equal(tensor, after[name]) for name, tensor in weights(curated, "head").items())


def test_the_reader_that_was_refitted_stays_as_it_is(curated, drawn_dataset):
    before = {name: tensor.clone() for name, tensor in curated.loaded.run.model.state_dict().items()}
    refit(curated, drawn_dataset)
    after = curated.loaded.run.model.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    assert not any(tensor.requires_grad for tensor in curated.loaded.run.model.parameters())


def test_maps_are_the_same_after_a_refit_and_the_prediction_follows_the_new_head(curated, fitted, drawn_dataset):
    dataset = Dataset.load(drawn_dataset)
    film = dataset.film_path(dataset.in_split("test")[0])
    before, after = curated.open(film), fitted.reader.open(film)
    assert torch.equal(before.evidence.mean, after.evidence.mean)
    assert before.prediction != after.prediction


def test_the_figures_are_counted_on_validation_films_with_the_trivial_answer_beside_them(reader, fitted, drawn_dataset):
    figures, dataset = fitted.figures, Dataset.load(drawn_dataset)
    tried = dataset.in_split("val")
    learnt = [film.class_name for film in dataset.in_split("train")]
    assert figures.films == len(tried)
    assert figures.trivial_answer == max(dataset.classes, key=learnt.count)
    share = np.mean([film.class_name == figures.trivial_answer for film in tried])
    assert figures.trivial.accuracy == pytest.approx(share, abs=1e-6)
    answers = {}
    for name, version in (("before", reader), ("after", fitted.reader)):
        shares = read_split(version.loaded, dataset, drawn_dataset, "val", quietly).readings.probabilities
        answers[name] = [dataset.classes[place] for place in shares.argmax(axis=1)]
    for name, metrics in (("before", figures.before), ("after", figures.after)):
        right = np.mean([answer == film.class_name for answer, film in zip(answers[name], tried, strict=True)])
        assert metrics.accuracy == pytest.approx(right, abs=1e-6)
    assert figures.changed == sum(a != b for a, b in zip(answers["before"], answers["after"], strict=True))


def test_two_refits_give_the_same_weights(curated, fitted, drawn_dataset):
    again = weights(refit(curated, drawn_dataset).reader, "head")
    assert all(torch.equal(tensor, again[name]) for name, tensor in weights(fitted.reader, "head").items())


def test_the_second_refit_looks_at_no_film(curated, fitted, drawn_dataset, monkeypatch):
    assert fitted.figures.films > 0  # the first one has looked at all
    counted = passes(monkeypatch)
    refit(curated.restore("active_tb", [0, 2]), drawn_dataset)
    assert sum(counted) <= 1  # one empty film tells how many patches there are


def test_a_discarded_prototype_cannot_move_the_new_head(fitted, reader):
    model, row = fitted.reader.loaded.run.model, reader.concepts.index("active_tb")
    scores = torch.rand(5, 3, 4)
    louder = scores.clone()
    louder[:, row, [0, 2]] += 1.0
    assert torch.equal(model.classify(scores).logits, model.classify(louder).logits)
    louder[:, row, 1] += 1.0
    assert not torch.equal(model.classify(scores).logits, model.classify(louder).logits)


def test_a_saved_refit_names_its_data_set_and_keeps_its_figures(fitted, tmp_path):
    saved = fitted.reader.save(tmp_path / "fitted").loaded.run
    assert saved.metrics["refit"] == fitted.figures.to_json()
    assert [change.what for change in saved.changes] == [
        "Discarded prototypes 0, 2 of active_tb.",
        "Fitted the head again on 'phantom tb', its own data set.",
    ]


def test_usual_peaks_are_measured_again_for_the_curated_concept_and_for_no_other(
    reader, curated, fitted, drawn_dataset
):
    run, films, row = (
        curated.loaded.run,
        films_for(reader.loaded.run, drawn_dataset),
        reader.concepts.index("active_tb"),
    )
    learnt = films.positions("train")
    maps = mean_maps(run.model.patches(films.pixels(learnt)), run.model.atlas.in_use)
    peaks, shows = maps.amax(dim=(-2, -1))[:, row].numpy(), films.labels[learnt, row].numpy() == 1
    after, before = fitted.reader.loaded.run.reference_scores, reader.loaded.run.reference_scores
    assert float(after.present_peak[row]) == pytest.approx(np.median(peaks[shows]), abs=1e-5)
    assert float(after.absent_peak[row]) == pytest.approx(np.median(peaks[~shows]), abs=1e-5)
    assert float(after.present_peak[row]) != pytest.approx(float(before.present_peak[row]), abs=1e-5)
    others = [place for place in range(3) if place != row]
    assert torch.equal(after.present_peak[others], before.present_peak[others])
    assert torch.equal(after.absent, before.absent)


def test_a_run_refitted_on_another_data_set_says_so_and_may_not_be_tested_on_its_films(reader, tmp_path):
    from medgrape.datasets.dataset import SplitRule
    from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset

    other = tmp_path / "other"
    draw_dataset(PhantomOptions(films=24, seed=9, size=64), other, SplitRule(validation=0.3))
    again = refit(reader, other)
    assert not again.figures.its_own
    assert "another data set" in again.reader.loaded.run.changes[-1].what
    learnt = set(again.reader.loaded.run.learnt_from)
    assert learnt > set(reader.loaded.run.learnt_from)
    assert set(films_for(reader.loaded.run, other).fingerprints) <= learnt


def test_a_data_set_with_other_classes_is_refused(reader, drawn_dataset, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(drawn_dataset, other, ignore=shutil.ignore_patterns("cache"))
    about = other / "dataset.toml"
    about.write_text(about.read_text().replace('"sick_non_tb"', '"ill"'))
    with pytest.raises(TrainingError, match=r"model's classes \(healthy, sick_non_tb, active_tb\) differ"):
        refit(reader, other)


@pytest.mark.parametrize("joins", [False, True])
def test_a_concept_that_the_data_set_does_not_know_moves_the_classes_only_if_the_head_was_grown(
    reader, drawn_dataset, joins
):
    learnt = reader.learn("cavity", "A thick-walled lucency in the lung.")
    silent = learnt.grow_head() if joins else learnt
    again = refit(silent, drawn_dataset)
    assert again.figures.before == again.figures.unfitted
    model = again.reader.loaded.run.model
    scores = torch.rand(5, 4, 4)
    louder = scores.clone()
    louder[:, 3] += 0.5
    assert torch.equal(model.classify(scores).logits, model.classify(louder).logits) is not joins
    still = silent.loaded.run.model
    assert torch.equal(still.classify(scores).logits, still.classify(louder).logits)
