"""An export is read with like the run that it was made from, and cannot be mistaken for anything else."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from onnxruntime import InferenceSession
from PIL import Image
from pydicom import dcmread

import medgrape as mg
from dicom_scenes import stored_film
from medgrape.baselines.methods import load_any
from medgrape.config import Preprocessing
from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError
from medgrape.evaluation.evaluate import evaluate_run, read_split
from medgrape.evaluation.export_quality import compare_export
from medgrape.films.reading import read_prepared
from medgrape.hospital.objects import write_dicom_reading
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import draw
from medgrape.progress import quietly
from medgrape.runs import export
from medgrape.runs.checkpoint import load_run
from medgrape.runs.export import Calibration, export_onnx
from medgrape.runs.manifest import version_of
from medgrape.runs.onnx_graph import AreaResize
from medgrape.study import ConceptMismatchError

pytestmark = pytest.mark.xdist_group("exports")  # what they share is made once

CLIENT = Path(__file__).resolve().parents[2] / "examples" / "onnx_client.py"
BOXES = [(5, 6, 30, 25), (20.5, 10, 21, 11), (0, 0, 64, 64), (40, 30, 90, 70), (33, 2, 47, 60)]


@pytest.fixture(scope="session")
def exported(strict_run, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("exports") / "model.onnx"
    export_onnx(load_run(strict_run), out)
    return out


@pytest.fixture(scope="session")
def coarse(strict_run, drawn_dataset, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("exports") / "coarse.onnx"
    export_onnx(load_run(strict_run), out, Calibration(drawn_dataset, 24))
    return out


@pytest.fixture
def film(drawn_dataset) -> Path:
    dataset = Dataset.load(drawn_dataset)
    return dataset.film_path(next(film for film in dataset.films if film.split == "test"))


@pytest.fixture
def both(strict_run, exported, film):
    return mg.load(strict_run).open(film), mg.load(exported).open(film)


def close(values, other):
    """Plain data that differs by 1e-4 at the most, and in nothing but numbers."""
    if isinstance(values, dict):
        return values.keys() == other.keys() and all(close(values[key], other[key]) for key in values)
    if isinstance(values, list | tuple):
        return len(values) == len(other) and all(map(close, values, other))
    if isinstance(values, float) and isinstance(other, float):
        return abs(values - other) <= 1e-4
    return values == other


def test_an_export_gives_the_same_explanation_as_its_run(both):
    run, export = both
    assert close(run.explain().to_json(), export.explain().to_json())
    assert close(dict(run.prediction), dict(export.prediction))
    assert close(run.moves, export.moves)


def test_an_export_takes_corrections_like_its_run(both):
    def corrected(study):
        study = study.apply(mg.Box(5, 6, 30, 25), "active_tb", confirmed=True)
        study = study.rule_out(mg.Box(40, 40, 60, 60)).reject("obsolete_tb")
        return study.log

    run, export = map(corrected, both)
    assert len(run) == 3
    assert close(run, export)
    assert both[1].reject("obsolete_tb").undo() is both[1]


def test_an_export_doubts_the_same_boxes_and_applies_none_that_it_doubts(both):
    run, export = both
    doubted = 0
    for corners in BOXES:
        for concept in export.run.concepts.names:
            box = mg.Box(*corners)
            theirs, ours = run.check(box, concept), export.check(box, concept)
            assert ours.mismatch == theirs.mismatch
            assert close(ours.to_json()["concepts"], theirs.to_json()["concepts"])
            if ours.mismatch:
                doubted += 1
                with pytest.raises(ConceptMismatchError):
                    export.apply(box, concept)
    assert doubted


def test_an_export_does_not_learn_grow_change_or_become_a_run(exported, film, tmp_path):
    reader = mg.load(exported)
    box = mg.Box(5, 6, 30, 25)
    for attempt in (
        lambda: reader.learn("cavity", "Thick-walled lucency.", [(film, box)]),
        lambda: reader.learn("cavity", "Thick-walled lucency."),
        reader.grow_head,
        lambda: reader.discard("active_tb", [0]),
        lambda: reader.save(tmp_path / "run"),
        lambda: export_onnx(reader.loaded, tmp_path / "again.onnx"),
    ):
        with pytest.raises(UserError, match="exported model, which cannot be trained or changed"):
            attempt()
    with pytest.raises(UserError, match="is a file, not the folder of a run"):
        load_run(exported)
    assert list(tmp_path.iterdir()) == []


def test_an_export_has_the_same_metrics_as_its_run(strict_run, exported, drawn_dataset, tmp_path):
    before, _ = evaluate_run(load_any(strict_run), drawn_dataset, tmp_path / "run")
    after, _ = evaluate_run(load_any(exported), drawn_dataset, tmp_path / "export")
    report, expected = after.to_json(), before.to_json()
    for part in ("classification", "detection", "localisation", "calibration"):
        assert close(report[part], expected[part]), part
    checks = [check for check in expected["interaction"]["checks"] if not check["name"].startswith("dropout")]
    assert close(report["interaction"]["checks"], checks)
    assert any("MC-dropout is left out" in check for check in report["interaction"]["warnings"])
    assert report["facts"]["computed by"] == "ONNX Runtime, fp32"
    assert report["facts"]["version"] == version_of(exported) != expected["facts"]["version"]


def test_int8_makes_the_backbone_smaller_and_leaves_all_else_as_it_was(exported, coarse, drawn_dataset, strict_run):
    assert coarse.stat().st_size < exported.stat().st_size
    graph = onnx.load(coarse)
    quantised = {node.name for node in graph.graph.node if node.op_type == "Conv"}
    assert len(quantised) > 10
    weights = {tensor.name: tensor.data_type for tensor in graph.graph.initializer}
    integers = {name for name, kind in weights.items() if kind == onnx.TensorProto.INT8}
    packed = {node.output[0] for node in graph.graph.node if set(node.input) & integers}
    users = {node.op_type for node in graph.graph.node if set(node.input) & packed}
    assert users == {"Conv"}
    comparison = compare_export(load_run(strict_run), mg.load(coarse).loaded, drawn_dataset, split="train")
    assert comparison.same_answer >= 0.9
    assert _map_likeness(load_run(strict_run), mg.load(coarse).loaded, drawn_dataset).min() >= 0.95
    properties = {prop.key: prop.value for prop in graph.metadata_props}
    assert json.loads(properties["medgrape.calibrated_on"]) == {
        "name": Dataset.load(drawn_dataset).name,
        "checksum": export.checksum(drawn_dataset),
        "split": "train",
        "films": 24,
    }


def _map_likeness(run, export, data):
    """Correlation of each concept's maps over all films; figures such as an AUC hang on luck with so few of them."""
    dataset = Dataset.load(data)
    before, after = (read_split(reader, dataset, data, "train", quietly).readings.mean_maps for reader in (run, export))
    return np.array([np.corrcoef(before[:, k].ravel(), after[:, k].ravel())[0, 1] for k in range(before.shape[1])])


def test_int8_is_calibrated_on_training_films_alone(strict_run, drawn_dataset):
    dataset, run = Dataset.load(drawn_dataset), load_run(strict_run).run
    films, _ = export._calibration_films(run, Calibration(drawn_dataset, 10_000), quietly)
    assert len(films) == len(dataset.in_split("train"))
    shown = {film.tobytes() for film in films}
    for record in dataset.in_split("test"):
        pixels = np.asarray(Image.open(dataset.film_path(record)), dtype=np.float32) / 255.0
        assert pixels.tobytes() not in shown


def test_too_few_films_to_calibrate_on_are_refused(strict_run, tmp_path):
    from medgrape.datasets.dataset import SplitRule
    from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset

    draw_dataset(PhantomOptions(films=12, seed=1, size=64), tmp_path / "few", SplitRule(test=0.2))
    with pytest.raises(UserError, match="at least 16 training films"):
        export_onnx(load_run(strict_run), tmp_path / "model.onnx", Calibration(tmp_path / "few"))
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize(("size", "apart"), [((64, 64), 1e-5), ((210, 170), 0.05)], ids=["its own", "another"])
def test_a_film_of_any_size_is_brought_to_the_models_own_inside_the_file(exported, film, tmp_path, size, apart):
    path = tmp_path / "film.png"
    Image.open(film).resize(size, Image.Resampling.BICUBIC).save(path)
    session = InferenceSession(exported, providers=["CPUExecutionProvider"])
    greys = np.asarray(Image.open(path), dtype=np.float32) / 255.0
    (probabilities,) = session.run(["probabilities"], {"films": greys[None]})
    np.testing.assert_allclose(probabilities, mg.load(exported).open(path).output.probabilities.numpy(), atol=apart)


@pytest.mark.parametrize("size", [(65, 64), (150, 130), (210, 170), (301, 500), (1024, 900)], ids=str)
def test_greys_are_averaged_inside_the_file_as_medgrape_averages_them(tmp_path, size):
    path = tmp_path / "film.png"
    drawn = Image.fromarray(draw(plan("tb", 1, seed=0)[0], 512).pixels)
    drawn.resize(size, Image.Resampling.BICUBIC).save(path)
    greys = torch.from_numpy(np.array(Image.open(path))).unsqueeze(0) / 255.0
    apart = np.abs(
        255 * AreaResize(64)(greys)[0].numpy() - read_prepared(path, preprocessing=Preprocessing(size=64)).pixels
    )
    assert apart.max() <= 8  # at the edges of drawn letters
    assert apart.mean() < 0.5


@pytest.mark.parametrize("saved_as", ["film.npy", "film.png"])
def test_a_client_that_has_neither_medgrape_nor_torch_reads_and_checks_alike(exported, film, tmp_path, saved_as):
    pixels = np.asarray(Image.open(film))
    path = tmp_path / saved_as
    np.save(path, pixels) if path.suffix == ".npy" else Image.fromarray(pixels).save(path)
    claims = [f"{concept}:{','.join(map(str, box))}" for box in BOXES for concept in ("active_tb", "obsolete_tb")]
    checks = [word for claim in claims for word in ("--check", claim)]
    blocked = "import sys; sys.modules.update(dict.fromkeys(('torch', 'medgrape', 'onnx', 'scipy', 'cv2')))"
    script = (
        f"{blocked}; import runpy; sys.argv[0] = {str(CLIENT)!r}; runpy.run_path({str(CLIENT)!r}, run_name='__main__')"
    )
    words = [sys.executable, "-c", script, str(exported), str(path), *checks]
    output = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

    study = mg.load(exported).open(film)
    assert close(output["classes"], {name: study.prediction[name] for name in output["classes"]})
    assert output["notice"] == "Research software, not a medical device."
    for result, claim in zip(output["checks"], claims, strict=True):
        concept, corners = claim.split(":")
        check = study.check(mg.Box(*map(float, corners.split(","))), concept)
        assert (result["mismatch"], result["rival"]) == (check.mismatch, check.rival)
        assert result["gap"] == pytest.approx(check.gap, abs=1e-5)


def test_a_file_that_is_no_whole_export_is_refused_in_one_sentence(exported, tmp_path):
    whole, path = exported.read_bytes(), tmp_path / "other.onnx"
    weights = onnx.load(exported)
    raw = bytearray(weights.graph.initializer[0].raw_data)
    raw[0] ^= 1
    weights.graph.initializer[0].raw_data = bytes(raw)
    thresholds = onnx.load(exported)
    next(prop for prop in thresholds.metadata_props if prop.key == "medgrape.safety").value = "null"
    newer = onnx.load(exported)
    next(prop for prop in newer.metadata_props if prop.key == "medgrape.format").value = "99"
    outside = onnx.load(exported)
    outside.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    foreign = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value], [value]))
    cases = {
        "altered after it was exported": (weights, thresholds),
        "another version": (newer,),
        "keeps its weights in another file": (outside,),
        "medgrape export did not make it": (foreign,),
    }
    for sentence, graphs in cases.items():
        for graph in graphs:
            path.write_bytes(graph.SerializeToString())
            with pytest.raises(UserError, match=sentence):
                mg.load(path)
    for content in (whole[: len(whole) // 2], b"\x89PNG\r\n\x1a\n" * 40):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"no ONNX file, or incomplete|medgrape export did not make it"):
            mg.load(path)
    with pytest.raises(UserError, match="There is no file"):
        mg.load(tmp_path / "nowhere.onnx")


@pytest.mark.slow
def test_an_export_that_answers_otherwise_than_torch_is_not_written(strict_run, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "CLOSE", -1.0)
    with pytest.raises(UserError, match="differ from torch"):
        export_onnx(load_run(strict_run), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_an_export_has_a_name_of_its_own_outside_every_run(strict_run, tmp_path):
    for out, sentence in (
        (tmp_path / "model.bin", "has another suffix"),
        (strict_run / "model.onnx", "lies in the run"),
        (tmp_path, "has another suffix"),
    ):
        with pytest.raises(UserError, match=sentence):
            export_onnx(load_run(strict_run), out)


def test_an_export_uses_as_many_threads_as_torch_may(exported):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert mg.load(exported).loaded.run.model._whole.get_session_options().intra_op_num_threads == 1
    finally:
        torch.set_num_threads(before)


def test_a_reading_with_an_export_is_written_as_dicom(exported, strict_run, tmp_path):
    film = stored_film(tmp_path / "film.dcm")
    study = mg.load(exported).open(film).apply(mg.Box(5, 6, 30, 25), None)
    report, *_ = write_dicom_reading(study, film, tmp_path / "out")
    assert dcmread(report).DeviceSerialNumber == load_run(strict_run).manifest.fingerprint
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name == "boxes.dcm"]
