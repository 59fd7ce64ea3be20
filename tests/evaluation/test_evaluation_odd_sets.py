import json

import numpy as np
import pytest
import torch
from evaluation_scenes import bump, dataset, film, patch_box, readings

from medgrape.evaluation.examples import draw
from medgrape.evaluation.readings import EvaluationError
from medgrape.evaluation.report import evaluate_readings, write_report


def test_the_box_is_drawn_where_it_is_on_a_film_that_is_not_square():
    wide = film("a", size=(900, 450))
    drawn = draw(
        np.zeros((50, 50), np.uint8), wide, bump(4, 4), (patch_box(4, 4, (900, 450)),), (506, 253), (255, 0, 0)
    )
    assert drawn.shape == (180, 360, 3)
    white = np.argwhere((drawn == 255).all(axis=2))
    assert white.min(axis=0).tolist() == pytest.approx([4 / 8 * 180, 4 / 8 * 360], abs=2)
    assert white.max(axis=0).tolist() == pytest.approx([5 / 8 * 180, 5 / 8 * 360], abs=2)
    assert drawn[100:103, 201:204].max(axis=(0, 1)).tolist() == [255, 0, 0], "the cross"


def test_a_data_set_of_a_single_film_without_baselines_still_has_a_page(tmp_path):
    read = readings(dataset([film("only", patient="p")]))
    evaluation = evaluate_readings(read, torch.ones(2, 1, 3), {}, run="bare")
    files = write_report(evaluation, read, tmp_path, pictures={"only": np.zeros((8, 8), np.uint8)})
    json.loads(files.json.read_text("utf-8"), parse_constant=lambda name: pytest.fail(name))
    html = files.html.read_text("utf-8")
    assert "no training films" in html
    assert "nothing can be said on where the maps point" in html
    assert evaluation.headline[0].endswith("there are no training films that would tell a trivial answer.")


def test_a_collapsed_model_that_is_worse_than_blind_pointing_gets_warnings():
    boxes = {
        ("t", "cavity"): [patch_box(4, 4)],
        ("f0", "cavity"): [patch_box(4, 4)],
        ("f1", "cavity"): [patch_box(4, 4)],
    }
    data = dataset([film("t", "ill", split="train"), film("f0", "ill"), film("f1", "healthy")], boxes)
    read = readings(data, probabilities=[(0.9, 0.1), (0.1, 0.9)], mean_maps=[[bump(0, 0)] * 2] * 2)
    warnings = " ".join(evaluate_readings(read, torch.ones(2, 3, 4), {}, run="poor").warnings)
    assert "no better than by always answering 'ill'" in warnings
    assert "no better than one fixed point" in warnings
    assert "as good as one vector" in warnings


def test_evaluating_training_films_gets_a_warning():
    data = dataset([film("a", split="train"), film("b", "healthy", split="train")])
    evaluation = evaluate_readings(readings(data, split="train"), torch.eye(6).reshape(2, 3, 6), {}, run="r")
    assert evaluation.warnings[0].startswith("These are train films")


def test_prototypes_of_another_vocabulary_are_refused():
    with pytest.raises(EvaluationError, match="prototypes of 3 concepts, the data set 2"):
        evaluate_readings(readings(dataset([film("a")])), torch.ones(3, 2, 2), {}, run="r")


def test_a_page_with_more_classes_than_colours_and_long_names_is_written(tmp_path):
    classes = tuple(f"class number {n} with a name that goes on and on" for n in range(9))
    films = [film(f"f{n}", classes[n % 9]) for n in range(18)]
    read = readings(dataset(films, classes=classes), probabilities=np.random.default_rng(0).dirichlet(np.ones(9), 18))
    evaluation = evaluate_readings(read, torch.eye(6).reshape(2, 3, 6), {}, run="many")
    html = write_report(evaluation, read, tmp_path).html.read_text("utf-8")
    assert html.count("goes on and on") >= 18
