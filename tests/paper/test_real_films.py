"""The suite on drawn films in the published layouts: three variants, one seed of two."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import tomli_w
from PIL import Image
from published_films import publish_nih, publish_tbx11k

from medgrape.datasets.dataset import Dataset
from medgrape.datasets.sources.tbx11k import is_borrowed
from medgrape.errors import UserError
from medgrape.evaluation.few_shot import ConceptTrial, Shots, VocabularyTrial
from medgrape.evaluation.localisation import Pair, Pointed
from medgrape.paper.real_films.figures import one_shot_figures
from medgrape.paper.real_films.pictures import by_lot
from medgrape.paper.real_films.reproduce import Suite, reproduce, write_tables
from medgrape.paper.real_films.row import make, software
from medgrape.paper.real_films.training import train_apart
from medgrape.paper.real_films.variants import load_variants
from medgrape.progress import quietly, unwatched
from medgrape.training.run import TrainingJob
from small_settings import SMALL

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real films")]  # what they share is made once

VARIANTS = """
[[variants]]
name = "recipe"
title = "the recipe"
data = "tbx11k"
settings = "tiny"
seeds = [0, 1]
extra = true

[[variants]]
name = "no-background"
title = "no background"
data = "tbx11k"
settings = "tiny"
seeds = [0, 1]
extra = true
change = { "stages.prototypes.background" = false }

[[variants]]
name = "nih"
title = "NIH"
data = "nih"
settings = "tiny"
seeds = [0, 1]

[variants.change]
"stages.vectors.boxes" = false
"stages.vectors.normal" = ["no_finding"]
"stages.concepts.box_weight" = 0.0
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    (folder / "tiny.toml").write_text(tomli_w.dumps(SMALL | {"safety": {"calibrate": "balanced"}}))
    (folder / "variants.toml").write_text(VARIANTS)
    sources = {"tbx11k": publish_tbx11k(folder / "TBX11K"), "nih": publish_nih(folder / "NIH")}
    return Suite(load_variants(folder / "variants.toml"), sources, folder / "out", folder)


@pytest.fixture(scope="module")
def told(suite):
    return reproduce(suite, seeds=(0,))


def figures(told, name):
    (row,) = [one for one in told["variants"] if one["name"] == name]
    return {figure: None if spread is None else spread["mean"] for figure, spread in row["figures"].items()}


def test_every_figure_has_its_trivial_answer_beside_it(told):
    found = figures(told, "recipe")
    for concept in ("all", "active_tb", "obsolete_tb"):
        for kind in ("mean", "max", "cam", "chance", "fixed"):
            assert 0 <= found[f"pointing.{concept}.{kind}"] <= 1
    assert found["majority.balanced"] == pytest.approx(0.5)
    assert 0 <= found["safety.balanced"] <= 1
    assert 0 <= found["telling_apart"] <= 1
    assert 0 <= found["one_shot.pointing"] <= 1
    found = figures(told, "nih")
    assert found["majority.macro_f1"] < 0.5
    assert 0 < found["auc.all"] < 1
    assert 0 < found["macro_f1"] <= 1


def test_figures_are_those_of_the_report(suite, told):
    report = json.loads((suite.out / "reports/recipe-seed0/report.json").read_text())
    pooled, found = report["localisation"]["per_pair"], figures(told, "recipe")
    assert found["pointing.all.mean"] == pooled["mean"]["share"]
    assert found["pointing.all.fixed"] == pooled["fixed"]
    assert found["films.test"] == report["films"]["read"]
    checks = {check["name"]: check for check in report["interaction"]["checks"]}
    assert "balance" in checks["calibrated"]["title"]
    assert found["safety.balanced"] == checks["calibrated"]["balanced"]["share"]


def test_no_official_test_film_and_no_borrowed_film_is_tested_on(suite, told):  # noqa: ARG001 (it must have run)
    dataset = Dataset.load(suite.out / "data/tbx11k-extra-seed0")
    assert not {film.id for film in dataset.films} & {f"t{number:04}" for number in range(4)}
    assert any(is_borrowed(film.path) for film in dataset.films)
    tested = dataset.in_split("test")
    assert len(tested) == pytest.approx(0.2 * 68, abs=1)
    assert not any(is_borrowed(film.path) for film in tested)


def test_variants_of_later_stages_share_films_and_first_stage_and_count_its_time(suite, told):
    assert {path.name for path in (suite.out / "data").iterdir()} == {"tbx11k-extra-seed0", "nih-seed0"}
    assert len(list((suite.out / "stages").iterdir())) == 2, "one for TBX11K, one for NIH"
    for name in ("recipe", "no-background"):
        log = (suite.out / f"runs/{name}-seed0/log.jsonl").read_text().splitlines()
        epochs = sum(json.loads(line)["seconds"] for line in log)
        assert 60 * figures(told, name)["minutes"] > epochs
        assert 0.1 < figures(told, name)["peak_gib"] < 8


def test_rows_that_are_there_are_not_made_again(suite, told):
    before = {path: path.stat().st_mtime_ns for path in suite.out.rglob("*.safetensors")}
    results = [path.read_bytes() for path in sorted((suite.out / "results").iterdir())]
    said = []
    assert reproduce(suite, seeds=(0,), tell=said.append) == told
    assert said == ["3 of 3 rows are there already."]
    assert [path.read_bytes() for path in sorted((suite.out / "results").iterdir())] == results
    assert {path: path.stat().st_mtime_ns for path in suite.out.rglob("*.safetensors")} == before


def test_the_table_says_which_seeds_are_missing(suite, told):
    page = (suite.out / "real-films.md").read_text()
    assert page.count("| 1 of 2 (missing: seed 1) |") == 6, "three variants, each in two tables"
    assert f"| the recipe | active_tb | {figures(told, 'recipe')['pointing.active_tb.pairs']:.0f} |" in page
    assert json.loads((suite.out / "real-films.json").read_text()) == told
    assert all(one["missing"] == [1] for one in told["variants"])


def test_pictures_show_test_films_with_boxes_and_say_which(suite, told):
    dataset = Dataset.load(suite.out / "data/tbx11k-extra-seed0")
    tested = {film.id for film in dataset.in_split("test")}
    drawn = told["variants"][0]["by_seed"]["0"]["pictures"]
    assert drawn["bad"] or drawn["good"]
    for kind, films in drawn.items():
        assert {one["film"] for one in films} <= tested & dataset.boxes_by_film.keys()
        path = suite.out / f"pictures/recipe-{kind}.png"
        assert path.is_file() == bool(films)
        if films:
            with Image.open(path) as picture:
                colours = np.unique(np.asarray(picture).reshape(-1, 3), axis=0).tolist()
            assert [0xE6, 0x9F, 0x00] in colours, "the colour of active TB"
    assert "pictures" in (suite.out / "real-films.md").read_text()
    assert told["variants"][2]["by_seed"]["0"]["pictures"] == {}, "the NIH films have no boxes"


def with_variant(suite, place, **update):
    """The same suite with one variant changed."""
    changed = suite.variants[place].model_copy(update=update)
    return replace(suite, variants=(*suite.variants[:place], changed, *suite.variants[place + 1 :]))


def test_figures_of_other_settings_are_not_taken_for_these_and_count_in_no_mean(suite, told):
    other = with_variant(suite, 0, change={"stages.head.epochs": 9})
    with pytest.raises(UserError, match=r"recipe-seed0\.json was made with other settings; remove it"):
        reproduce(other, ["recipe"], (0,))
    recipe, *others = write_tables(other)["variants"]
    assert recipe["n"] == 0
    assert others == told["variants"][1:]
    write_tables(suite)


def test_figures_of_other_films_or_of_another_backbone_are_not_taken_for_these(suite, told, tmp_path):  # noqa: ARG001
    moved = replace(suite, sources=suite.sources | {"tbx11k": tmp_path})
    with pytest.raises(UserError, match=r"recipe-seed0\.json was made with films of another folder"):
        reproduce(moved, ["recipe"], (0,))
    unnamed = replace(suite, sources={"tbx11k": None, "nih": None})
    assert all(row.found() is not None for row in unnamed.rows(seeds=(0,))), "tables need no folder"
    row = suite.rows(["no-background"], (0,))[0]
    parents = [replace(row, variant=row.variant.model_copy(update={"after": name}), config=weights(row, suite, name))
               for name in ("recipe", "no-background", "nih")]  # fmt: skip
    recipe, same_first_stage, nih = (parent.begun_with["parent"] for parent in parents)
    assert recipe == same_first_stage != nih, "backbone and CAM are what another run takes"


def test_a_row_whose_parent_was_made_anew_is_not_taken_for_done(suite, told, tmp_path):  # noqa: ARG001
    row = suite.rows(["no-background"], (0,))[0]
    row = replace(row, variant=row.variant.model_copy(update={"after": "recipe"}), config=weights(row, suite, "recipe"))
    row = replace(row, out=tmp_path)
    row.result.parent.mkdir()
    for parent, done in ((row.begun_with["parent"], True), ("another", False)):
        row.result.write_text(json.dumps({"begun_with": row.begun_with | {"parent": parent}}))
        assert (row.found() is not None) == done
    with pytest.raises(UserError, match="another backbone to go on from"):
        row.done()
    elsewhere = replace(row, config=weights(row, replace(suite, out=suite.out / "../out"), "recipe"))
    assert elsewhere.begun_with == row.begun_with, "what is in the run counts, not where it lies"


def test_a_run_that_was_trained_with_something_else_is_not_evaluated_for_a_row(suite, told, tmp_path):  # noqa: ARG001
    row = replace(suite.rows(["recipe"], (0,))[0], out=tmp_path)
    shutil.copytree(suite.out / "data/tbx11k-extra-seed0", row.data)
    shutil.copytree(suite.out / "runs/recipe-seed0", row.run)
    cost = json.loads((suite.out / "costs/recipe-seed0.json").read_text())
    (tmp_path / "costs").mkdir()
    begun = cost["begun_with"] | {"folder": "/elsewhere"}
    (tmp_path / "costs/recipe-seed0.json").write_text(json.dumps(cost | {"begun_with": begun}))
    with pytest.raises(UserError, match="films of another folder"):
        make(row, track=quietly, watch=unwatched)


def weights(row, suite, name):
    """The row's settings, going on from another row's run."""
    given = row.config.backbone.model_copy(update={"weights": str(suite.out / f"runs/{name}-seed0")})
    return row.config.model_copy(update={"backbone": given})


def test_every_result_tells_which_software_made_it(suite, told):
    assert {one["by_seed"]["0"]["software"] for one in told["variants"]} == {software()}
    assert software() in (suite.out / "real-films.md").read_text()


def test_borrowed_films_that_are_not_there_are_missed_before_anything_is_trained(suite, tmp_path):
    shutil.copytree(suite.sources["tbx11k"], tmp_path / "TBX11K", ignore=shutil.ignore_patterns("extra"))
    bare = replace(suite, sources={"tbx11k": tmp_path / "TBX11K", "nih": None}, out=tmp_path / "out")
    with pytest.raises(UserError, match=r"needs the films that TBX11K borrowed, in imgs/extra"):
        reproduce(bare, ["recipe"], (0,))
    assert not (tmp_path / "out/runs").exists()


def test_a_place_that_cannot_be_written_to_is_told_in_one_sentence(suite, tmp_path):
    (tmp_path / "full").write_text("a file, where a folder is wanted")
    row = suite.rows(["recipe"], (0,))[0]
    with pytest.raises(UserError, match=r"^Cannot use .*full.*\.$"):
        train_apart(TrainingJob(row.config, row.data, tmp_path / "full/run"))


def test_a_result_that_cannot_be_read_is_told(suite, told, tmp_path):  # noqa: ARG001 (it must have run)
    row = replace(suite.rows(["recipe"], (0,))[0], out=tmp_path)
    row.result.parent.mkdir()
    row.result.write_text("{")
    with pytest.raises(UserError, match=r"recipe-seed0\.json cannot be read .*; remove it"):
        row.done()
    row.result.write_text("{}")  # of an earlier version
    with pytest.raises(UserError, match="other settings"):
        row.done()


def test_films_that_were_prepared_from_another_folder_are_not_mixed_in(suite, told, tmp_path):  # noqa: ARG001
    moved = replace(suite, sources={"tbx11k": tmp_path, "nih": None})
    with pytest.raises(UserError, match="prepared from another folder"):
        make(moved.rows(["recipe"], (0,))[0], track=quietly, watch=unwatched)


def test_a_training_that_cannot_be_is_told_in_the_words_of_the_training(suite, tmp_path):
    spoilt = suite.variants[2].model_copy(update={"change": {"stages.vectors.normal": ["healthy"]}})
    with pytest.raises(UserError, match=r"stages\.vectors\.normal: the data set has no class 'healthy'"):
        reproduce(Suite((spoilt,), suite.sources, tmp_path / "out", suite.configs), seeds=(0,))
    assert not (tmp_path / "out/results").exists()


def test_one_film_is_measured_by_what_full_supervision_gets():
    def tried(name, full):
        return ConceptTrial(name, name, 10, 20, full, 0.4, 0.1, (Shots(1, (0.3, 0.5), 0.1),))

    def figures_of(full):
        concepts = (tried("active_tb", 1.0), tried("obsolete_tb", full))
        return one_shot_figures(VocabularyTrial("run", "data", "test", True, concepts))

    assert figures_of(0.5) == {"one_shot.pointing": 0.4, "one_shot.full": 0.5, "one_shot": 0.8}
    assert figures_of(0.0)["one_shot"] is None, "full supervision points nowhere"


def test_pictures_are_drawn_by_lot_whatever_order_films_come_in():
    nowhere = Pointed((1.0, 1.0), True)
    pairs = [Pair(f"f{n:02}", "active_tb", nowhere, nowhere, nowhere, 0.1, 1.0) for n in range(30)]
    assert by_lot(pairs, 0) == by_lot(pairs[::-1], 0)
    assert by_lot(pairs, 0) != by_lot(pairs, 1)
    assert len(set(by_lot(pairs, 0))) == 4
    assert by_lot(pairs, 0) != pairs[:4]
