"""A run as one ONNX file: graph, weights, and all that a reading needs beside them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from medgrape.datasets.cache import cached_films
from medgrape.datasets.dataset import Dataset, check_concepts, checksum
from medgrape.errors import UserError
from medgrape.files import whole_file
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import LoadedRun, Run
from medgrape.runs.exported import LARGEST, PREFIX, SEAL, SUFFIX, check_parts, load_export, record, seal_of
from medgrape.runs.manifest import refuse_inside_run
from medgrape.runs.safety_rule import SafetyRule

if TYPE_CHECKING:
    from onnx import ModelProto

CLOSE = 1e-4
"""How far fp32 may be from torch, in any score, map or probability."""
LEAST_FILMS = 16
_TRIED = (1, 3)
"""Films in the batches that an export is compared with torch on."""


class ExportError(UserError):
    """A run that cannot be exported as asked."""


@dataclass(frozen=True)
class Calibration:
    """Films from which the ranges of int8 are learnt."""

    data: Path
    """A prepared data set."""
    films: int = 256
    """How many of its training films, by lot."""


def export_onnx(
    loaded: LoadedRun, out: Path, calibration: Calibration | None = None, *, track: Track = quietly
) -> LoadedRun:
    """Write the run as an .onnx file, with an int8 backbone if there is anything to calibrate it on, and open it again.

    What is written was compared with torch before it got its name.
    """
    check_parts()
    from medgrape.runs.onnx_graph import build_graph
    from medgrape.runs.onnx_int8 import quantise

    _check_place(out)
    run = loaded.run
    films = None if calibration is None else _films(run, calibration, track)
    graph = build_graph(run.grape, run.config.preprocessing.size)
    if films is not None:
        graph = quantise(graph, films)
    told = record(loaded, "fp32" if films is None else "int8", _told(calibration))
    _seal(graph, told | {f"{PREFIX}safety_rule": json.dumps(_rule(run))})
    with whole_file(out) as draft:
        draft.write_bytes(_bytes(graph))
        _compare(run, load_export(draft).run, exact=films is None)
    return load_export(out)


def _check_place(out: Path) -> None:
    if out.suffix != SUFFIX:
        raise ExportError(f"An export is one {SUFFIX} file; {out} is called otherwise.")
    if out.is_dir():
        raise ExportError(f"{out} is a folder; name the file to write.")
    refuse_inside_run(out)


def _films(run: Run, calibration: Calibration, track: Track) -> list[Float[np.ndarray, "side side"]]:
    """Some training films, as the model sees them; never those on which it is chosen or tested."""
    dataset = Dataset.load(calibration.data)
    check_concepts(run.concepts, dataset)
    cached = cached_films(run.config, dataset, calibration.data, track)
    there = [place for place in cached.readable() if dataset.pictured[place].split == "train"]
    if len(there) < LEAST_FILMS:
        raise ExportError(
            f"int8 is calibrated on at least {LEAST_FILMS} training films; {calibration.data} has {len(there)}."
        )
    lots = np.random.default_rng(run.config.seed).permutation(len(there))[: calibration.films]
    return [np.asarray(cached[there[lot]], dtype=np.float32) / 255.0 for lot in sorted(lots)]


def _told(calibration: Calibration | None) -> dict[str, Any] | None:
    if calibration is None:
        return None
    name = Dataset.load(calibration.data).name
    return {"name": name, "checksum": checksum(calibration.data), "split": "train", "films": calibration.films}


def _rule(run: Run) -> dict[str, Any]:
    """From when on a box is doubted, as numbers: for programs that know nothing else of medgrape."""
    rule = SafetyRule.of(run)
    return {
        "lead": {name: rule.lead(name) for name in run.concepts.names},
        "gate": None if rule.gate == float("inf") else rule.gate,
        "never_leads": sorted(rule.unbelieved),
        "origin": rule.origin,
    }


def _seal(graph: "ModelProto", properties: Mapping[str, str]) -> None:
    from medgrape.runs.onnx_graph import FEATURES

    kept = [output for output in graph.graph.output if output.name != FEATURES]
    del graph.graph.output[:]
    graph.graph.output.extend(kept)
    graph.producer_name, graph.doc_string = "medgrape", properties[f"{PREFIX}notice"]
    del graph.metadata_props[:]
    for name, text in {**properties, SEAL: seal_of(graph, properties)}.items():
        one = graph.metadata_props.add()
        one.key, one.value = name, text


def _bytes(graph: "ModelProto") -> bytes:
    if graph.ByteSize() > LARGEST:
        raise ExportError("This model is larger than an ONNX file may be, which is 2 GiB.")
    return bytes(graph.SerializeToString())


@torch.no_grad()
def _compare(run: Run, export: Run, *, exact: bool) -> None:
    """Refuse an export that answers otherwise than torch; int8 may, but must answer with numbers."""
    side = run.config.preprocessing.size
    for batch in _TRIED:
        films = torch.rand(batch, 1, side, side, generator=torch.Generator().manual_seed(batch))
        (theirs, their_maps), (ours, our_maps) = run.model.read(films), export.model.read(films)
        pairs = {
            "probabilities": (ours.probabilities, theirs.probabilities),
            "scores": (ours.scores, theirs.scores),
            "mean maps": (our_maps.mean, their_maps.mean),
            "strongest maps": (our_maps.strongest, their_maps.strongest),
        }
        for what, (own, other) in pairs.items():
            apart = float((own - other).abs().max())
            if not apart <= (CLOSE if exact else float("inf")):
                raise ExportError(f"The export's {what} differ from torch's by {apart:.2g}; nothing was written.")
