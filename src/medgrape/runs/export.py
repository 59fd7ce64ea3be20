"""Export of a run to one ONNX file: graph, weights, and everything else that inference needs."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset, check_concepts, checksum
from medgrape.errors import UserError
from medgrape.files import whole_file
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import LoadedRun, Run, SafetyRule
from medgrape.runs.exported import LARGEST, PREFIX, SEAL, SUFFIX, check_parts, load_export, record, seal_of
from medgrape.runs.manifest import refuse_inside_run

CLOSE = 1e-4  # Largest difference between fp32 and torch in any score, map or probability
LEAST_FILMS = 16
_BATCHES = (1, 3)  # Batch sizes at which an export is compared with torch


class ExportError(UserError):
    """A run that cannot be exported as requested."""


@dataclass(frozen=True)
class Calibration:
    """The films that int8 is calibrated on."""

    data: Path  # A prepared data set
    films: int = 256  # Number of its training films, chosen at random


def export_onnx(
    loaded: LoadedRun, out: Path, calibration: Calibration | None = None, *, track: Track = quietly
) -> LoadedRun:
    """Write the run as an .onnx file, with an int8 backbone if it is to be calibrated, and load it again.

    The file is compared with torch before it gets its name.
    """
    check_parts()
    from medgrape.runs.onnx_graph import FEATURES, build_graph, quantise  # slow to import

    if out.suffix != SUFFIX:
        raise ExportError(f"An export is a file *{SUFFIX}; {out} has another suffix.")
    if out.is_dir():
        raise ExportError(f"{out} is a folder; name the file to write.")
    refuse_inside_run(out)
    run = loaded.run
    films, calibrated_on = (None, None) if calibration is None else _calibration_films(run, calibration, track)
    graph = build_graph(run.grape, run.config.preprocessing.size)
    if films is not None:
        graph = quantise(graph, films)
    outputs = [output for output in graph.graph.output if output.name != FEATURES]
    del graph.graph.output[:]
    graph.graph.output.extend(outputs)
    properties = record(loaded, "fp32" if films is None else "int8", calibrated_on)
    properties[f"{PREFIX}safety_rule"] = json.dumps(_safety_rule(run))
    graph.producer_name, graph.doc_string = "medgrape", properties[f"{PREFIX}notice"]
    del graph.metadata_props[:]
    for name, text in {**properties, SEAL: seal_of(graph, properties)}.items():
        graph.metadata_props.add(key=name, value=text)
    if graph.ByteSize() > LARGEST:
        raise ExportError("This model is larger than an ONNX file may be, which is 2 GiB.")
    with whole_file(out) as draft:
        draft.write_bytes(graph.SerializeToString())
        _compare(run, load_export(draft).run, exact=films is None)
    return load_export(out)


def _calibration_films(
    run: Run, calibration: Calibration, track: Track
) -> tuple[list[Float[np.ndarray, "side side"]], dict[str, Any]]:
    """Return some training films as the model's input, never validation or test films, and their description."""
    dataset = Dataset.load(calibration.data)
    check_concepts(run.concepts, dataset)
    cached = cached_films(run.config, dataset, calibration.data, track)
    positions = [position for position in cached.readable() if dataset.pictured[position].split == "train"]
    if len(positions) < LEAST_FILMS:
        raise ExportError(
            f"int8 is calibrated on at least {LEAST_FILMS} training films; {calibration.data} has {len(positions)}."
        )
    chosen = sorted(np.random.default_rng(run.config.seed).permutation(len(positions))[: calibration.films])
    films = [np.asarray(cached[positions[number]], dtype=np.float32) / 255.0 for number in chosen]
    description = {"name": dataset.name, "checksum": checksum(calibration.data), "split": "train"}
    return films, description | {"films": calibration.films}


def _safety_rule(run: Run) -> dict[str, Any]:
    """Return the thresholds of the safety check for programs other than medgrape."""
    rule = SafetyRule.of(run)
    return {
        "lead": {name: rule.lead(name) for name in run.concepts.names},
        "gate": None if rule.gate == float("inf") else rule.gate,
        "never_leads": sorted(rule.untrained),
        "origin": rule.origin,
    }


@torch.no_grad()
def _compare(run: Run, export: Run, *, exact: bool) -> None:
    """Refuse an export whose results differ from torch's; those of int8 may differ, but must be numbers."""
    side = run.config.preprocessing.size
    for batch in _BATCHES:
        films = torch.rand(batch, 1, side, side, generator=torch.Generator().manual_seed(batch))
        (expected, expected_maps), (actual, actual_maps) = (
            run.model.predict_with_all_maps(films),
            export.model.predict_with_all_maps(films),
        )
        for what, ours, theirs in (
            ("probabilities", actual.probabilities, expected.probabilities),
            ("scores", actual.scores, expected.scores),
            ("mean maps", actual_maps.mean, expected_maps.mean),
            ("strongest maps", actual_maps.strongest, expected_maps.strongest),
        ):
            difference = float((ours - theirs).abs().max())
            if not difference <= (CLOSE if exact else float("inf")):
                raise ExportError(f"The export's {what} differ from torch's by {difference:.2g}; nothing was written.")
