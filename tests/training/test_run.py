import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import medgrape as mg
from medgrape.cli.demo import CONFIG
from medgrape.config import BackboneSettings, Preprocessing, TextSettings, TrainingSettings, load_config
from medgrape.datasets.cache import FilmCache
from medgrape.datasets.dataset import Dataset, checksum
from medgrape.errors import UserError
from medgrape.runs.checkpoint import load_run
from medgrape.runs.manifest import RunError
from medgrape.safety.calibration import calibrate
from medgrape.safety.thresholds import CalibrationOptions
from medgrape.training.films import TrainingError
from medgrape.training.pipeline import build_model
from medgrape.training.plan import PARTS, write_or_verify
from medgrape.training.run import TrainingJob, train
from small_settings import small

HERE = Path(__file__).resolve().parent
EXPECTED = {
    "absent_scores.json",
    "architecture.json",
    "changes.json",
    "concepts.json",
    "config.toml",
    "curves.png",
    "exemplars.json",
    "exemplars.safetensors",
    "learnt_from.json",
    "log.jsonl",
    "manifest.json",
    "metrics.json",
    "model.safetensors",
    "preprocessing.json",
    "safety.json",
    "tensorboard",
    "thresholds.json",
}


def bytes_of(run):
    return (run / "model.safetensors").read_bytes()


def log(run):
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def test_a_run_has_all_files_and_its_work_folder_is_removed(trained_run, drawn_dataset):
    assert {path.name for path in trained_run.iterdir()} == EXPECTED
    assert not (trained_run.parent / f".{trained_run.name}.training").exists()
    manifest = json.loads((trained_run / "manifest.json").read_text())
    assert manifest["dataset"]["checksum"] == checksum(drawn_dataset)
    assert [entry["stage"] for entry in log(trained_run)] == ["concepts"] * 2 + ["prototypes"] * 3 + ["head"] * 3


def test_tensorboard_has_the_same_figures_as_the_log(trained_run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(trained_run / "tensorboard")).Reload()
    told = [value.value for value in events.Scalars("head/val_score")]
    assert told == pytest.approx([entry["val_score"] for entry in log(trained_run) if entry["stage"] == "head"])


def test_training_again_gives_the_same_bytes(trained_run, drawn_dataset, tmp_path):
    assert bytes_of(train(TrainingJob(small(), drawn_dataset, tmp_path / "again"))) == bytes_of(trained_run)


def test_another_seed_gives_another_model(trained_run, drawn_dataset, tmp_path):
    config = small().model_copy(update={"seed": 1})
    assert bytes_of(train(TrainingJob(config, drawn_dataset, tmp_path / "other"))) != bytes_of(trained_run)


def test_a_finished_run_is_kept_and_another_one_never_overwrites_it(trained_run, drawn_dataset):
    before = bytes_of(trained_run)
    assert train(TrainingJob(small(), drawn_dataset, trained_run)) == trained_run
    with pytest.raises(TrainingError, match="choose another --out"):
        train(TrainingJob(small(model={"tau": 0.3}), drawn_dataset, trained_run))
    assert bytes_of(trained_run) == before


@pytest.mark.parametrize("key", ["config", "dataset", "films", "sources", "versions"])
def test_a_training_that_began_with_other_inputs_is_not_continued(key, drawn_dataset, tmp_path):
    job = TrainingJob(small(), drawn_dataset, tmp_path / "run")
    job.work.mkdir()
    write_or_verify(job.work, job.config, drawn_dataset, cached_films(drawn_dataset))
    plan = job.work / "plan.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {key: "another"}))
    with pytest.raises(TrainingError, match=f"begun with other {PARTS[key]}"):
        train(job)


def test_processes_and_threads_may_change_when_a_training_is_continued(trained_run, drawn_dataset, tmp_path):
    elsewhere = small(training={"processes": 2, "threads": 3})
    write_or_verify(tmp_path, small(), drawn_dataset, cached_films(drawn_dataset))
    write_or_verify(tmp_path, elsewhere, drawn_dataset, cached_films(drawn_dataset))
    with pytest.raises(TrainingError, match="other settings"):
        write_or_verify(tmp_path, small(training={"precision": "bf16"}), drawn_dataset, cached_films(drawn_dataset))
    assert train(TrainingJob(elsewhere, drawn_dataset, trained_run)) == trained_run


def cached_films(drawn_dataset):
    dataset = Dataset.load(drawn_dataset)
    return FilmCache(drawn_dataset / "cache", small()).films([dataset.film_path(film) for film in dataset.pictured])


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"stages": {"vectors": {"normal": ["helthy"]}}}, "no class 'helthy'.*did you mean 'healthy'"),
        ({"exemplars": {"withheld": ["tb-000000-99"]}}, "no film or patient 'tb-000000-99'"),
        ({"stages": {"head": {"views": 5}}}, "stages.head.views is more than"),
        ({"training": {"order": "end-to-end"}}, "needs stages"),
        ({"backbone": {"frozen_parts": 99}}, "frozen_parts may not be 99"),
        ({"text": {"encoder": "no-such-encoder"}}, "no-such-encoder"),
    ],
)
def test_contradictions_are_reported_before_the_first_epoch(tables, complaint, drawn_dataset, tmp_path):
    with pytest.raises(UserError, match=complaint):
        train(TrainingJob(small(**tables), drawn_dataset, tmp_path / "run"))
    assert not list((tmp_path / ".run.training").glob("*.safetensors"))


def test_a_folder_with_other_files_is_not_overwritten(drawn_dataset, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(TrainingError, match="is no run"):
        train(TrainingJob(small(), drawn_dataset, tmp_path))


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_any_moment_a_training_ends_with_the_same_bytes(kills, trained_run, drawn_dataset, tmp_path):
    command = [sys.executable, str(HERE / "killing.py"), str(drawn_dataset), str(tmp_path), str(kills), "7"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, env=_environment())
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["kills"] == kills
    assert told["midway"] >= kills // 2  # killed with something done and something left to do
    for run in told["finished"]:
        assert bytes_of(Path(run)) == bytes_of(trained_run)
        assert [{**entry, "seconds": 0} for entry in log(Path(run))] == [
            {**entry, "seconds": 0} for entry in log(trained_run)
        ]


def test_a_full_disk_is_one_sentence_and_loses_nothing(trained_run, drawn_dataset, tmp_path):
    """Files of more than two megabytes cannot be written; stage 1 keeps more than that."""
    out = tmp_path / "run"
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000));"
        "from medgrape.cli import main; main()"
    )
    config = tmp_path / "small.toml"
    shutil.copy(trained_run / "config.toml", config)
    command = [sys.executable, "-c", script, "train", str(config), "--data", str(drawn_dataset), "--out", str(out)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "concepts.safetensors" in ended.stderr
    assert not out.exists()
    assert bytes_of(train(TrainingJob(small(), drawn_dataset, out))) == bytes_of(trained_run)


def _environment():
    given = os.environ.get("PYTHONPATH")  # which may say which medgrape is tested
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(HERE.parent), given]))}


@pytest.mark.slow  # test_many_processes compares two processes with one as well
def test_two_processes_get_the_same_loss_as_one(trained_run, drawn_dataset, tmp_path):
    command = [sys.executable, str(HERE / "two_processes.py"), str(drawn_dataset), str(tmp_path / "two")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=250, env=_environment())
    assert ended.returncode == 0, ended.stderr
    for one, two in zip(log(trained_run), log(tmp_path / "two"), strict=True):
        if one["stage"] == "concepts":
            assert two["train_loss"] == pytest.approx(one["train_loss"], rel=1e-3)
            assert two["val_loss"] == pytest.approx(one["val_loss"], rel=1e-3)


def test_frozen_parts_are_bit_identical_before_and_after_later_stages(drawn_dataset, tmp_path, monkeypatch):
    """Every tensor, buffers included."""
    from medgrape.training import head_stage, pipeline

    seen = {}

    def keep(training, context, run_stage=pipeline.run_stage):
        model = watched["model"]
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        state = run_stage(training, context)
        after = model.state_dict()
        moved = {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}
        early = [name for name in before if name.startswith("backbone.parts.")]
        frozen = [name for name in early if int(name.split(".")[2]) < model.backbone.frozen_parts]
        seen[training.name] = (moved, all(torch.equal(before[name], after[name]) for name in frozen))
        return state

    watched = {}
    build = pipeline.build_model
    monkeypatch.setattr(pipeline, "build_model", lambda *given: watched.setdefault("model", build(*given)))
    monkeypatch.setattr(pipeline, "run_stage", keep)
    monkeypatch.setattr(head_stage, "run_stage", keep)
    train(TrainingJob(small(), drawn_dataset, tmp_path / "run"))
    assert seen == {
        "concepts": ({"backbone", "cam"}, True),
        "prototypes": ({"projector", "atlas", "anchors"}, True),
        "head": ({"head"}, True),
    }


def test_batch_norm_statistics_change_only_if_the_settings_say_so(drawn_dataset, tmp_path):
    config = small(stages={"concepts": {"batch_statistics": True}})
    learnt = load_file(train(TrainingJob(config, drawn_dataset, tmp_path / "run")) / "model.safetensors")
    fixed = load_file(train(TrainingJob(small(), drawn_dataset, tmp_path / "fixed")) / "model.safetensors")
    statistics = [name for name in learnt if name.endswith("running_mean")]
    early = [name for name in statistics if int(name.split(".")[2]) < 6]
    late = [name for name in statistics if int(name.split(".")[2]) >= 6]
    assert all(torch.equal(learnt[name], fixed[name]) for name in early)
    assert not any(torch.equal(learnt[name], fixed[name]) for name in late)


def test_the_end_to_end_variant_trains_everything_at_once(drawn_dataset, tmp_path):
    config = small(
        training={"order": "end-to-end"},
        model={"standardise": False},
        stages={
            "concepts": {"box_weight": 0.0, "class_weight": 0.0},
            "vectors": {"boxes": False},
            "prototypes": {"background": False},
            "end_to_end": {"epochs": 2, "batch": 8, "learning_rate": 1e-3},
        },
    )
    run = train(TrainingJob(config, drawn_dataset, tmp_path / "run"))
    assert {entry["stage"] for entry in log(run)} == {"end_to_end"}
    load_run(run)


def test_half_precision_trains_and_reads_in_full_precision(drawn_dataset, tmp_path):
    run = load_run(train(TrainingJob(small(training={"precision": "bf16"}), drawn_dataset, tmp_path / "run"))).run
    assert {weights.dtype for weights in run.model.parameters()} == {torch.float32}


def test_paper_settings_train_on_a_backbone_of_seven_by_seven_patches(drawn_dataset, tmp_path):
    """No key beyond the paper, nothing frozen, a tiny ResNet's worth of epochs."""
    config = load_config(CONFIG.with_name("tbx11k.toml"))
    stages = config.stages
    config = config.model_copy(
        update={
            "backbone": BackboneSettings(name="resnet-18", pretrained=False),
            "text": TextSettings(encoder="lexical"),
            "preprocessing": Preprocessing(size=64),
            "training": TrainingSettings(device="cpu", threads=1),
            "stages": stages.model_copy(
                update={
                    "concepts": stages.concepts.overridden(epochs=1, batch=16),
                    "prototypes": stages.prototypes.overridden(epochs=1, batch=8),
                    "head": stages.head.overridden(epochs=1, batch=16),
                }
            ),
        }
    )
    run = load_run(train(TrainingJob(config, drawn_dataset, tmp_path / "run"))).run
    assert run.exemplars.grid == (2, 2)
    assert sum(weights.numel() for weights in run.model.head.parameters()) == 43_587


def test_training_calibrates_the_safety_check_if_the_settings_say_so(trained_run, drawn_dataset, tmp_path):
    """The thresholds are those of ``medgrape calibrate`` on the same run, and nothing was changed after training."""
    assert mg.load(trained_run).loaded.run.safety is None
    kept = tmp_path / "stages"
    out = train(
        TrainingJob(small(safety={"calibrate": "balanced"}), drawn_dataset, tmp_path / "balanced", stage_cache=kept)
    )
    run = mg.load(out).loaded.run
    assert run.safety == calibrate(mg.load(out).loaded, drawn_dataset, CalibrationOptions(balanced=True)).thresholds
    assert run.changes == ()
    few = train(
        TrainingJob(small(safety={"calibrate": "bounded"}), drawn_dataset, tmp_path / "bounded", stage_cache=kept)
    )
    refused = mg.load(few).loaded.run
    assert refused.safety is None
    assert "patients are needed" in refused.metrics["safety_not_calibrated"]


def after(trained_run, **concepts):
    """Settings that go on from a run, with something said of stage 1."""
    return small(backbone={"weights": str(trained_run)}, stages={"concepts": concepts})


LIKE = {"active_tb": ["active_tb", "obsolete_tb"], "obsolete_tb": ["obsolete_tb"], "pulmonary_tb": ["pulmonary_tb"]}


def test_maps_are_initialised_with_the_mean_of_similar_findings(trained_run, drawn_dataset, tmp_path):
    earlier = load_run(trained_run).run.model
    run = load_run(train(TrainingJob(after(trained_run, epochs=0, like=LIKE), drawn_dataset, tmp_path / "run"))).run
    own, theirs = run.model.cam.maps.weight, earlier.cam.maps.weight
    torch.testing.assert_close(own[0], (theirs[0] + theirs[1]) / 2)
    torch.testing.assert_close(own[1:], theirs[1:])
    torch.testing.assert_close(run.model.cam.maps.bias[1:], earlier.cam.maps.bias[1:])
    for name, weights in run.model.backbone.state_dict().items():
        assert torch.equal(weights, earlier.backbone.state_dict()[name])
    assert set(run.metrics["validation"]) == {"prototypes", "head"}
    assert {entry["stage"] for entry in log(tmp_path / "run")} == {"prototypes", "head"}


@pytest.mark.parametrize(
    ("like", "epochs", "complaint"),
    [
        ({"active_tb": ["active_bt"]}, 1, r"the run .* has no concept 'active_bt' \(did you mean 'active_tb'"),
        ({"activ_tb": ["active_tb"]}, 1, r"the data set has no concept 'activ_tb' \(did you mean 'active_tb'"),
        ({"active_tb": ["active_tb"]}, 0, "the map of '(obsolete|pulmonary)_tb' is not trained"),
    ],
)
def test_impossible_initial_maps_are_reported_before_the_first_epoch(
    like, epochs, complaint, trained_run, drawn_dataset, tmp_path
):
    with pytest.raises(TrainingError, match=complaint):
        train(TrainingJob(after(trained_run, epochs=epochs, like=like), drawn_dataset, tmp_path / "run"))
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_concept_added_after_training_has_no_map_to_copy(trained_run, drawn_dataset, tmp_path):
    taught = mg.load(trained_run).learn("cavity", "Thick-walled lucency.").save(tmp_path / "taught").loaded.folder
    with pytest.raises(TrainingError, match="has no concept 'cavity'"):
        train(TrainingJob(after(taught, epochs=1, like={"active_tb": ["cavity"]}), drawn_dataset, tmp_path / "run"))


def test_a_map_that_is_neither_initialised_nor_trained_is_empty(trained_run, drawn_dataset):
    dataset = Dataset.load(drawn_dataset)
    said = {name: LIKE[name] for name in ("active_tb", "obsolete_tb")}
    for epochs, sees in ((0, False), (1, True)):
        cam = build_model(after(trained_run, epochs=epochs, like=said), dataset, None).cam
        assert bool((cam(torch.randn(1, cam.maps.in_channels, 2, 2))[0, 2] > -10).any()) == sees


def test_maps_are_copied_only_from_a_run_that_fits(trained_run, drawn_dataset, tmp_path):
    with pytest.raises(TrainingError, match=r"give that run's folder as backbone\.weights"):
        train(TrainingJob(small(stages={"concepts": {"like": LIKE}}), drawn_dataset, tmp_path / "run"))
    with pytest.raises(UserError, match="at least 1 item"):
        after(trained_run, like={"active_tb": []})


def test_mirror_images_are_used_in_training_and_reading_if_set(drawn_dataset, tmp_path):
    reader = mg.load(train(TrainingJob(small(model={"mirror": True}), drawn_dataset, tmp_path / "run")))
    assert reader.loaded.run.model.mirror
    film = Dataset.load(drawn_dataset).in_split("test")[0]
    here = reader.open(Dataset.load(drawn_dataset).film_path(film))
    with Image.open(Dataset.load(drawn_dataset).film_path(film)) as picture:
        picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(tmp_path / "mirrored.png")
    there = reader.open(tmp_path / "mirrored.png")
    torch.testing.assert_close(here.evidence.mean, there.evidence.mean.flip(-1), atol=1e-4, rtol=1e-4)
    assert here.prediction == pytest.approx(there.prediction, abs=1e-4)


def test_a_concept_that_no_film_shows_is_reported_as_untrained(drawn_dataset, tmp_path):
    dataset = Dataset.load(drawn_dataset)
    unseen = tuple(
        type(film)(**{**vars(film), "labels": {**film.labels, "pulmonary_tb": False}}) for film in dataset.films
    )
    boxes = tuple(box for box in dataset.boxes if box.concept != "pulmonary_tb")
    folder = tmp_path / "set"
    type(dataset)(dataset.name, dataset.classes, dataset.concepts, dataset.root, unseen, boxes, dataset.source).save(
        folder
    )
    run = load_run(train(TrainingJob(small(), folder, tmp_path / "run"))).run
    assert run.metrics["untrained_concepts"] == ["pulmonary_tb"]


@pytest.mark.parametrize("head", ["linear", "mlp", "ml-gcn", "add-gcn"])
def test_every_head_can_be_trained_and_loaded(head, drawn_dataset, tmp_path):
    run = load_run(train(TrainingJob(small(model={"head": head}), drawn_dataset, tmp_path / "run"))).run
    assert run.config.model.head == head


@pytest.mark.parametrize(
    ("name", "spoil", "complaint"),
    [
        ("model.safetensors", "alter", "was altered"),
        ("metrics.json", "alter", "was altered"),
        ("thresholds.json", "remove", "lacks thresholds.json"),
        ("notes.txt", "add", "holds notes.txt"),
        ("manifest.json", "remove", "is no run"),
        ("manifest.json", "alter", "cannot be read"),
    ],
)
def test_a_run_with_a_file_altered_missing_or_added_is_refused_by_name(name, spoil, complaint, trained_run, tmp_path):
    run = tmp_path / "copy"
    shutil.copytree(trained_run, run)
    path = run / name
    if spoil == "remove":
        path.unlink()
    elif spoil == "add":
        path.write_text("my notes")
    else:
        middle = bytearray(path.read_bytes())
        middle[len(middle) // 2] ^= 0xFF
        path.write_bytes(bytes(middle))
    with pytest.raises(RunError, match=complaint):
        load_run(run)


def test_weights_that_do_not_fit_are_refused_even_with_a_right_checksum(trained_run, tmp_path):
    from medgrape.runs.manifest import seal

    run = tmp_path / "copy"
    shutil.copytree(trained_run, run)
    tensors = load_file(run / "model.safetensors")
    tensors.pop("cam.maps.bias")
    save_file(tensors, run / "model.safetensors")
    seal(run, {"name": "x", "checksum": "y"})
    with pytest.raises(RunError, match="does not fit"):
        load_run(run)


def test_withheld_films_and_patients_are_in_no_picture(trained_run, drawn_dataset, tmp_path):
    shown = load_run(trained_run).run.exemplars.films
    patient = next(film.patient for film in Dataset.load(drawn_dataset).films if film.id == shown[1])
    config = small(exemplars={"withheld": [shown[0], patient]})
    others = load_run(train(TrainingJob(config, drawn_dataset, tmp_path / "run"))).run.exemplars
    assert not {shown[0], shown[1]} & set(others.films)
    nobody = load_run(
        train(TrainingJob(small(exemplars={"show": False}), drawn_dataset, tmp_path / "none"))
    ).run.exemplars
    assert nobody.films == ()
    assert (nobody.film == -1).all()
