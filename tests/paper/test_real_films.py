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
from medgrape.paper.jobs import software
from medgrape.paper.pictures import random_pairs
from medgrape.paper.real_films import RealFilms, one_shot_figures
from medgrape.paper.recipes import load_variants
from medgrape.paper.reproduce import reproduce
from medgrape.paper.training_cost import train_in_child
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
    return RealFilms(load_variants(folder / "variants.toml"), sources, folder / "out", seeds=(0,), configs=folder)


@pytest.fixture(scope="module")
def report(suite):
    return reproduce(suite)


def figures(report, name):
    (row,) = [row for row in report["variants"] if row["name"] == name]
    return {figure: None if spread is None else spread["mean"] for figure, spread in row["figures"].items()}


def test_every_figure_is_reported_with_its_trivial_baseline(report):
    found = figures(report, "recipe")
    for concept in ("all", "active_tb", "obsolete_tb"):
        for kind in ("mean", "max", "cam", "chance", "fixed"):
            assert 0 <= found[f"pointing.{concept}.{kind}"] <= 1
    assert found["majority.balanced"] == pytest.approx(0.5)
    assert 0 <= found["safety.balanced"] <= 1
    assert 0 <= found["telling_apart"] <= 1
    assert 0 <= found["one_shot.pointing"] <= 1
    found = figures(report, "nih")
    assert found["majority.macro_f1"] < 0.5
    assert 0 < found["auc.all"] < 1
    assert 0 < found["macro_f1"] <= 1


def test_figures_equal_those_of_the_evaluation_report(suite, report):
    evaluation = json.loads((suite.out / "reports/recipe-seed0/report.json").read_text())
    pooled, found = evaluation["localisation"]["per_pair"], figures(report, "recipe")
    assert found["pointing.all.mean"] == pooled["mean"]["share"]
    assert found["pointing.all.fixed"] == pooled["fixed"]
    assert found["films.test"] == evaluation["films"]["read"]
    checks = {check["name"]: check for check in evaluation["interaction"]["checks"]}
    assert "balance" in checks["calibrated"]["title"]
    assert found["safety.balanced"] == checks["calibrated"]["balanced"]["share"]


def test_no_official_test_film_and_no_borrowed_film_is_tested_on(suite, report):  # noqa: ARG001 (it must have run)
    dataset = Dataset.load(suite.out / "data/tbx11k-extra-seed0")
    assert not {film.id for film in dataset.films} & {f"t{number:04}" for number in range(4)}
    assert any(is_borrowed(film.path) for film in dataset.films)
    tested = dataset.in_split("test")
    assert len(tested) == pytest.approx(0.2 * 68, abs=1)
    assert not any(is_borrowed(film.path) for film in tested)


def test_variants_of_later_stages_share_films_and_first_stage_and_count_its_time(suite, report):
    assert {path.name for path in (suite.out / "data").iterdir()} == {"tbx11k-extra-seed0", "nih-seed0"}
    assert len(list((suite.out / "stages").iterdir())) == 2, "one for TBX11K, one for NIH"
    for name in ("recipe", "no-background"):
        log = (suite.out / f"runs/{name}-seed0/log.jsonl").read_text().splitlines()
        epochs = sum(json.loads(line)["seconds"] for line in log)
        assert 60 * figures(report, name)["minutes"] > epochs
        assert 0.1 < figures(report, name)["peak_gib"] < 8


def test_finished_rows_are_not_computed_again(suite, report):
    before = {path: path.stat().st_mtime_ns for path in suite.out.rglob("*.safetensors")}
    results = [path.read_bytes() for path in sorted((suite.out / "results").iterdir())]
    sentences = []
    assert reproduce(suite, tell=sentences.append) == report
    assert sentences == ["3 of 3 jobs are done already."]
    assert [path.read_bytes() for path in sorted((suite.out / "results").iterdir())] == results
    assert {path: path.stat().st_mtime_ns for path in suite.out.rglob("*.safetensors")} == before


def test_the_table_names_the_missing_seeds(suite, report):
    page = (suite.out / "real-films.md").read_text()
    assert page.count("| 1 of 2 (missing: seed 1) |") == 6, "three variants, each in two tables"
    assert f"| the recipe | active_tb | {figures(report, 'recipe')['pointing.active_tb.pairs']:.0f} |" in page
    assert json.loads((suite.out / "real-films.json").read_text()) == report
    assert all(row["missing"] == [1] for row in report["variants"])


def test_pictures_show_test_films_with_boxes_and_name_them(suite, report):
    dataset = Dataset.load(suite.out / "data/tbx11k-extra-seed0")
    tested = {film.id for film in dataset.in_split("test")}
    drawn = report["variants"][0]["by_seed"]["0"]["pictures"]
    assert drawn["bad"] or drawn["good"]
    for kind, films in drawn.items():
        assert {pair["film"] for pair in films} <= tested & dataset.boxes_by_film.keys()
        path = suite.out / f"pictures/recipe-{kind}.png"
        assert path.is_file() == bool(films)
        if films:
            with Image.open(path) as picture:
                colours = np.unique(np.asarray(picture).reshape(-1, 3), axis=0).tolist()
            assert [0xE6, 0x9F, 0x00] in colours, "the colour of active TB"
    assert "pictures" in (suite.out / "real-films.md").read_text()
    assert report["variants"][2]["by_seed"]["0"]["pictures"] == {}, "the NIH films have no boxes"


def job_of(suite, name):
    (job,) = replace(suite, names=(name,)).jobs()
    return job


def with_variant(suite, place, **update):
    """The same suite with one variant changed."""
    changed = suite.variants[place].model_copy(update=update)
    return replace(suite, variants=(*suite.variants[:place], changed, *suite.variants[place + 1 :]))


def test_results_of_other_settings_are_refused_and_count_in_no_mean(suite, report):
    other = with_variant(suite, 0, change={"stages.head.epochs": 9})
    with pytest.raises(UserError, match=r"recipe-seed0\.json was made with other settings; remove it"):
        reproduce(replace(other, names=("recipe",)))
    recipe, *others = other.report()["variants"]
    assert recipe["n"] == 0
    assert others == report["variants"][1:]
    suite.report()


def test_results_of_other_films_or_another_backbone_are_refused(suite, report, tmp_path):  # noqa: ARG001
    moved = replace(suite, sources=suite.sources | {"tbx11k": tmp_path})
    with pytest.raises(UserError, match=r"recipe-seed0\.json was made with films of another folder"):
        reproduce(replace(moved, names=("recipe",)))
    unnamed = replace(suite, sources={"tbx11k": None, "nih": None})
    assert all(job.load_result(strict=False) is not None for job in unnamed.jobs()), "tables need no folder"
    job = job_of(suite, "no-background")
    parents = [replace(job, variant=job.variant.model_copy(update={"after": name}), config=weights(job, suite, name))
               for name in ("recipe", "no-background", "nih")]  # fmt: skip
    recipe, same_first_stage, nih = (parent.begun_with["parent"] for parent in parents)
    assert recipe == same_first_stage != nih, "backbone and CAM are what another run takes"


def test_a_row_is_not_done_after_its_parent_was_trained_again(suite, report, tmp_path):  # noqa: ARG001
    job = job_of(suite, "no-background")
    job = replace(job, variant=job.variant.model_copy(update={"after": "recipe"}), config=weights(job, suite, "recipe"))
    job = replace(job, out=tmp_path)
    job.result.parent.mkdir()
    for parent, done in ((job.begun_with["parent"], True), ("another", False)):
        job.result.write_text(json.dumps({"begun_with": job.begun_with | {"parent": parent}}))
        assert (job.load_result(strict=False) is not None) == done
    with pytest.raises(UserError, match="another backbone to start from"):
        job.load_result()
    elsewhere = replace(job, config=weights(job, replace(suite, out=suite.out / "../out"), "recipe"))
    assert elsewhere.begun_with == job.begun_with, "what is in the run counts, not where it lies"


def test_a_run_trained_on_other_films_is_not_evaluated_for_a_row(suite, report, tmp_path):  # noqa: ARG001
    job = replace(job_of(suite, "recipe"), out=tmp_path)
    shutil.copytree(suite.out / "data/tbx11k-extra-seed0", job.data)
    shutil.copytree(suite.out / "runs/recipe-seed0", job.run)
    cost = json.loads((suite.out / "costs/recipe-seed0.json").read_text())
    (tmp_path / "costs").mkdir()
    begun = cost["begun_with"] | {"folder": "/elsewhere"}
    (tmp_path / "costs/recipe-seed0.json").write_text(json.dumps(cost | {"begun_with": begun}))
    with pytest.raises(UserError, match="films of another folder"):
        job.make(quietly, unwatched)


def weights(job, suite, name):
    """The job's settings, going on from another job's run."""
    given = job.config.backbone.model_copy(update={"weights": str(suite.out / f"runs/{name}-seed0")})
    return job.config.model_copy(update={"backbone": given})


def test_every_result_names_the_software_that_made_it(suite, report):
    assert {row["by_seed"]["0"]["software"] for row in report["variants"]} == {software()}
    assert software() in (suite.out / "real-films.md").read_text()


def test_missing_borrowed_films_are_reported_before_training(suite, tmp_path):
    shutil.copytree(suite.sources["tbx11k"], tmp_path / "TBX11K", ignore=shutil.ignore_patterns("extra"))
    bare = replace(suite, sources={"tbx11k": tmp_path / "TBX11K", "nih": None}, out=tmp_path / "out")
    with pytest.raises(UserError, match=r"needs the films that TBX11K borrowed, in imgs/extra"):
        reproduce(replace(bare, names=("recipe",)))
    assert not (tmp_path / "out/runs").exists()


def test_a_folder_that_cannot_be_written_is_reported_in_one_sentence(suite, tmp_path):
    (tmp_path / "full").write_text("a file, where a folder is wanted")
    job = job_of(suite, "recipe")
    with pytest.raises(UserError, match=r"^Cannot use .*full.*\.$"):
        train_in_child(TrainingJob(job.config, job.data, tmp_path / "full/run"))


def test_a_result_that_cannot_be_read_is_reported(suite, report, tmp_path):  # noqa: ARG001 (it must have run)
    job = replace(job_of(suite, "recipe"), out=tmp_path)
    job.result.parent.mkdir()
    job.result.write_text("{")
    with pytest.raises(UserError, match=r"recipe-seed0\.json cannot be read .*; remove it"):
        job.load_result()
    job.result.write_text("{}")  # of an earlier version
    with pytest.raises(UserError, match="other settings"):
        job.load_result()


def test_films_prepared_from_another_folder_are_refused(suite, report, tmp_path):  # noqa: ARG001
    moved = replace(suite, sources={"tbx11k": tmp_path, "nih": None})
    with pytest.raises(UserError, match="prepared from another folder"):
        job_of(moved, "recipe").make(quietly, unwatched)


def test_an_impossible_training_is_reported_with_its_own_error(suite, tmp_path):
    spoilt = suite.variants[2].model_copy(update={"change": {"stages.vectors.normal": ["healthy"]}})
    with pytest.raises(UserError, match=r"stages\.vectors\.normal: the data set has no class 'healthy'"):
        reproduce(replace(suite, variants=(spoilt,), out=tmp_path / "out"))
    assert not (tmp_path / "out/results").exists()


def test_learning_from_one_film_is_reported_as_share_of_full_supervision():
    def tried(name, full):
        return ConceptTrial(name, name, 10, 20, full, 0.4, 0.1, (Shots(1, (0.3, 0.5), 0.1),))

    def figures_of(full):
        concepts = (tried("active_tb", 1.0), tried("obsolete_tb", full))
        return one_shot_figures(VocabularyTrial("run", "data", "test", True, concepts))

    assert figures_of(0.5) == {"one_shot.pointing": 0.4, "one_shot.full": 0.5, "one_shot": 0.8}
    assert figures_of(0.0)["one_shot"] is None, "full supervision points nowhere"


def test_pictured_films_are_chosen_at_random_and_do_not_depend_on_their_order():
    nowhere = Pointed((1.0, 1.0), True)
    pairs = [Pair(f"f{n:02}", "active_tb", nowhere, nowhere, nowhere, 0.1, 1.0) for n in range(30)]
    assert random_pairs(pairs, 0) == random_pairs(pairs[::-1], 0)
    assert random_pairs(pairs, 0) != random_pairs(pairs, 1)
    assert len(set(random_pairs(pairs, 0))) == 4
    assert random_pairs(pairs, 0) != pairs[:4]
