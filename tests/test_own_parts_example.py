"""The example package, installed by pip: films are prepared, a model learns and reads with nothing but its parts."""

import contextlib
import json
import shlex
import shutil
from pathlib import Path

import pytest
import torch

import medgrape as mg
from documents.document_blocks import Block, blocks
from medgrape.cli.app import app
from medgrape.datasets.dataset import Dataset
from medgrape.plugins import PluginError
from medgrape.runs.checkpoint import load_run
from medgrape.training.films import TrainingError
from medgrape.training.run import TrainingJob, train
from own_packages import EXAMPLE, on_path, pip_installed
from small_settings import small

ROOT = Path(__file__).resolve().parent.parent
RECORD = {"distribution": "wardparts", "version": "0.1.0"}
OWN = small(
    backbone={"name": "pocketnet", "pretrained": False, "leave_off": 1, "frozen_parts": 0},
    text={"encoder": "synonyms"},
    model={"head": "votes"},
    stages={
        "concepts": {"epochs": 1, "batch_statistics": True},
        "vectors": {"normal": ["normal"], "boxes": False},
        "prototypes": {"epochs": 1},
        "head": {"epochs": 2},
    },
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Where pip put the package."""
    return pip_installed(EXAMPLE, tmp_path_factory.mktemp("wardparts"))


@pytest.fixture(scope="module")
def sorted_films(drawn_dataset, tmp_path_factory) -> Path:
    """The drawn_dataset's films as somebody sorts them: a folder for each finding, and one for films without any."""
    folder = tmp_path_factory.mktemp("sorted")
    dataset = Dataset.load(drawn_dataset)
    for film in dataset.films:
        shown = [name for name, there in film.labels.items() if there]
        if len(shown) < 2:
            place = folder / (shown[0] if shown else "normal") / f"p{film.patient}_{film.id}.png"
            place.parent.mkdir(exist_ok=True)
            shutil.copy(dataset.film_path(film), place)
    return folder


@pytest.fixture(scope="module")
def prepared(site, sorted_films, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("prepared") / "films"
    with on_path(site):
        app(["data", "prepare", "own", "folders", str(sorted_films), "--out", str(out), "--validation", "0.3"],
            standalone_mode=False)  # fmt: skip
    return out


@pytest.fixture(scope="module")
def run(site, prepared, tmp_path_factory) -> Path:
    """A run whose backbone, text encoder and head are the package's."""
    with on_path(site):
        return train(TrainingJob(OWN, prepared, tmp_path_factory.mktemp("runs") / "own"))


def a_film(prepared):
    dataset = Dataset.load(prepared)
    return dataset.film_path(dataset.films[0])


def test_a_set_prepared_by_an_own_source_says_so_and_holds_every_film(prepared, sorted_films):
    dataset = Dataset.load(prepared)
    assert len(dataset.films) == len(list(sorted_films.rglob("*.png"))) > 30
    assert dataset.source.kind == "folders"
    assert "read by the source 'folders' of wardparts 0.1.0" in dataset.source.notes
    assert {film.split for film in dataset.films} == {"train", "val", "test"}
    for film in dataset.films:
        assert [film.class_name] == ([name for name, there in film.labels.items() if there] or ["normal"])


def test_a_source_s_own_refusal_and_options_reach_whoever_typed_them(site, sorted_films, tmp_path):
    with on_path(site):
        with pytest.raises(mg.UserError, match="no folder 'healthy'; say --option normal=NAME"):
            app(["data", "prepare", "own", "folders", str(sorted_films), "--option", "normal=healthy",
                 "--out", str(tmp_path / "x")], standalone_mode=False)  # fmt: skip
        with pytest.raises(mg.UserError, match=r"no option 'nromal' \(did you mean 'normal'\?\)"):
            app(["data", "prepare", "own", "folders", str(sorted_films), "--option", "nromal=x",
                 "--out", str(tmp_path / "x")], standalone_mode=False)  # fmt: skip
    assert not (tmp_path / "x").exists()


def test_a_run_names_every_part_with_its_package_and_version(run):
    architecture = json.loads((run / "architecture.json").read_text("utf-8"))
    assert architecture["own_parts"] == {
        "backbone": {"name": "pocketnet", **RECORD},
        "text encoder": {"name": "synonyms", **RECORD},
        "head": {"name": "votes", **RECORD},
    }
    assert architecture["backbone"]["config"] == {"name": "pocketnet", **RECORD}
    metrics = json.loads((run / "metrics.json").read_text("utf-8"))
    assert metrics["text_encoder"] == "synonyms: words and synonyms of the ward (wardparts 0.1.0)"


def test_a_run_with_own_parts_reads_is_corrected_learns_and_grows_and_is_the_same_after_saving(
    site, run, prepared, tmp_path
):
    with on_path(site):
        reader = mg.load(run)
        study = reader.open(a_film(prepared))
        assert sum(study.prediction.values()) == pytest.approx(1.0)
        assert study.reject(reader.concepts.names[0]).prediction != study.prediction
        taught = reader.learn("hole_in_the_lung", "A lucency in the upper lobe.")
        grown = taught.grow_head()
        assert grown.open(a_film(prepared)).prediction == study.prediction
        again = grown.save(tmp_path / "grown")
        assert again.open(a_film(prepared)).prediction == study.prediction
        assert again.loaded.run.plugins == reader.loaded.run.plugins


def test_a_run_does_not_load_without_the_package_and_says_which_to_install(run):
    with pytest.raises(PluginError) as refusal:
        mg.load(run)
    assert str(refusal.value) == (
        "This was made with the backbone 'pocketnet' of the package wardparts 0.1.0, which is not installed here: "
        "pip install wardparts==0.1.0"
    )


def test_a_run_that_only_read_its_texts_with_an_own_encoder_reads_without_it_and_asks_for_it_to_learn(
    site, drawn_dataset, tmp_path
):
    config = small(text={"encoder": "synonyms"}, stages={"concepts": {"epochs": 1}, "prototypes": {"epochs": 1}})
    with on_path(site):
        run = train(TrainingJob(config, drawn_dataset, tmp_path / "run"))
    reader = mg.load(run)
    assert reader.open(a_film(drawn_dataset)).prediction
    with pytest.raises(PluginError, match=r"text encoder 'synonyms'.*pip install wardparts==0\.1\.0"):
        reader.learn("cavity_learnt_later", "A hole.")


def changed_site(site, folder, version, before, after):
    """The package in another version, in which one line of a part is another."""
    other = Path(shutil.copytree(site, folder / "site", ignore=shutil.ignore_patterns("__pycache__")))
    (about,) = other.glob("*.dist-info")
    (about / "METADATA").write_text((about / "METADATA").read_text("utf-8").replace("0.1.0", version), "utf-8")
    for module in other.glob("wardparts/*.py"):
        module.write_text(module.read_text("utf-8").replace(before, after), "utf-8")
    return other


def test_another_version_that_computes_the_same_is_taken_and_one_that_does_not_is_refused(
    site, run, prepared, tmp_path
):
    with on_path(changed_site(site, tmp_path / "same", "0.1.1", "nothing", "nothing")):
        assert mg.load(run).open(a_film(prepared)).prediction
    other = changed_site(site, tmp_path / "other", "0.2.0", "scores.mean(dim=2)", "scores.amax(dim=2)")
    with (
        on_path(other),
        pytest.raises(mg.UserError, match=r"other results .*: pip install wardparts==0\.1\.0$"),
    ):
        mg.load(run)


def test_a_training_does_not_go_on_with_another_version_of_a_part(site, prepared, tmp_path):
    job = TrainingJob(OWN, prepared, tmp_path / "run")
    with on_path(site):
        from medgrape.training import run as running
        from medgrape.training.plan import write_or_verify

        job.work.mkdir(parents=True)
        write_or_verify(job.work, OWN, prepared, running.cached_films(OWN, running.Dataset.load(prepared), prepared))
    with (
        on_path(changed_site(site, tmp_path / "other", "0.2.0", "nothing", "nothing")),
        pytest.raises(TrainingError, match="other versions of the software"),
    ):
        train(job)


def test_a_head_that_nobody_has_is_refused_before_a_film_is_read(site, prepared, tmp_path):
    config = OWN.model_copy(update={"model": OWN.model.overridden(head="votse")})
    with on_path(site), pytest.raises(PluginError, match=r"no head 'votse' \(did you mean 'votes'\?\)"):
        train(TrainingJob(config, prepared, tmp_path / "run"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_export_of_a_run_with_own_parts_answers_as_torch_does_and_needs_no_package(site, run, prepared, tmp_path):
    from medgrape.runs.export import export_onnx

    with on_path(site):
        export_onnx(load_run(run), tmp_path / "own.onnx")
        expected = mg.load(run).open(a_film(prepared)).prediction
    reader = mg.load(tmp_path / "own.onnx")
    likely = pytest.approx(expected, abs=1e-3)  # rounding differs by processor
    assert reader.open(a_film(prepared)).prediction == likely
    assert reader.loaded.run.plugins["head"] == {"name": "votes", **RECORD}


def test_a_baseline_with_an_own_backbone_names_it_and_asks_for_it(site, prepared, tmp_path):
    from medgrape.baselines.methods import load_any

    config = OWN.model_copy(
        update={
            "model": OWN.model.overridden(method="black-box"),
            "stages": OWN.stages.model_copy(update={"black_box": OWN.stages.black_box.overridden(epochs=1, batch=16)}),
        }
    )
    with on_path(site):
        run = train(TrainingJob(config, prepared, tmp_path / "run"))
        assert load_any(run).run.plugins == {"backbone": {"name": "pocketnet", **RECORD}}
    with pytest.raises(PluginError, match=r"pip install wardparts==0\.1\.0"):
        load_any(run)


def test_synonyms_are_near_each_other_and_were_not_before(site):
    from medgrape.config import TextSettings
    from medgrape.vocabulary.encoders import open_text_encoder

    with on_path(site):
        own, plain = (open_text_encoder(TextSettings(encoder=name)) for name in ("synonyms", "lexical"))
        sentences = ["A cavity.", "A lucency."]
        near, far = (float(torch.dot(*encoder.encode(sentences))) for encoder in (own, plain))
    assert near == pytest.approx(1.0, abs=1e-5)
    assert far < 0.5


PAGES = {
    "own-data-source.md": "folders.py",
    "own-backbone.md": "pocketnet.py",
    "own-text-encoder.md": "synonyms.py",
    "own-head.md": "votes.py",
}


@pytest.mark.parametrize(("page", "module"), PAGES.items())
def test_a_page_shows_the_example_as_it_is(page, module):
    code = (EXAMPLE / "wardparts" / module).read_text("utf-8")
    assert code in (ROOT / "docs/how-to" / page).read_text("utf-8")


def noted(page: str) -> list[Block]:
    """The blocks of a page whose notes say that they are tested here."""
    name = Path(__file__).name
    return [block for block in blocks(ROOT / "docs/how-to" / page) if name in block.notes.get("not run", "")]


@pytest.fixture
def desk(sorted_films, tmp_path, site):
    """What a reader of the pages has: the package, and films of one finding and of none as somebody sorted them."""
    finding = next(path for path in sorted(sorted_films.iterdir()) if path.name != "normal")
    shutil.copytree(sorted_films / "normal", tmp_path / "films-by-finding/healthy")
    shutil.copytree(finding, tmp_path / "films-by-finding/cavity")
    with on_path(site), contextlib.chdir(tmp_path):
        yield tmp_path


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_says_under_testing_it_holds(page):
    (block,) = (shown for shown in noted(page) if shown.language == "python")
    assert "assert " in block.text
    exec(compile(block.text, block.place, "exec"), {"__name__": "__main__"})  # noqa: S102 (our own pages)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(page, desk, capsys):
    shown = [block for block in (*noted("own-parts.md"), *noted(page)) if block.language == "bash"]
    commands = [shlex.split(line) for block in shown for line in block.text.splitlines()]
    assert ["pip", "install", "./examples/own-parts"] in commands  # the fixture has done so
    typed = [words for program, *words in commands if program == "medgrape"]
    for words in typed:
        assert not app(words, standalone_mode=False), words
    assert ["parts", "--check"] in typed
    assert PAGES[page].removesuffix(".py") in capsys.readouterr().out
    if page == "own-data-source.md":
        made = Dataset.load(desk / "data/mine")
        assert {film.class_name for film in made.films} == {"healthy", "cavity"}
        assert len(made.films) == len(list((desk / "films-by-finding").rglob("*.png")))
