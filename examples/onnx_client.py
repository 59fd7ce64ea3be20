"""Read a film with an exported model, without medgrape: only numpy and ONNX Runtime are needed.

    medgrape export demo/tb-model-seed0
    python examples/onnx_client.py demo/tb-model-seed0.onnx film.npy --check active_tb:53,82,76,107

The film is a .npy file with rows of greys from 0 (black) to 255 (white), upright, of any size; where Pillow is
installed, any picture will do. Boxes are in its pixels. Research software, not a medical device.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime


def main() -> None:
    """Print classes and findings of one film, and the safety check of boxes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="an .onnx file, written by medgrape export")
    parser.add_argument("film", type=Path, help="a .npy file of greys from 0 to 255, or a picture")
    parser.add_argument("--check", action="append", default=[], help="CONCEPT:x1,y1,x2,y2: is it inside?")
    asked = parser.parse_args()
    session = onnxruntime.InferenceSession(asked.model, providers=["CPUExecutionProvider"])
    knows = {name: json.loads(text) for name, text in properties(session).items()}
    film = greys(asked.film)
    if knows["preprocessing"]["equalise"]:
        sys.exit("This model sees films equalised by CLAHE, which is not part of the file: read with medgrape instead.")
    found = read(session, film)
    said = {
        "notice": knows["notice"],
        "classes": dict(zip(knows["classes"], found["probabilities"].tolist(), strict=True)),
        "findings": findings(found["mean_maps"], [one["name"] for one in knows["concepts"]], film.shape),
        "checks": [check(found, knows, film.shape, text) for text in asked.check],
    }
    json.dump(said, sys.stdout, indent=2)


def properties(session: onnxruntime.InferenceSession) -> dict[str, str]:
    """Return the metadata of the file, parsed from JSON, without the seal, which only medgrape uses."""
    told = session.get_modelmeta().custom_metadata_map
    return {name.removeprefix("medgrape."): text for name, text in told.items() if name != "medgrape.seal"}


def greys(path: Path) -> np.ndarray:
    """Return the grey levels, from 0 to 1."""
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False).astype(np.float32) / 255.0
    from PIL import Image

    return np.asarray(Image.open(path).convert("L"), dtype=np.float32) / 255.0


def read(session: onnxruntime.InferenceSession, film: np.ndarray) -> dict[str, np.ndarray]:
    """Return all outputs for one film."""
    names = [output.name for output in session.get_outputs()]
    return {name: batch[0] for name, batch in zip(names, session.run(names, {"films": film[None]}), strict=True)}


def findings(maps: np.ndarray, names: list[str], shape: tuple[int, ...]) -> list[dict[str, Any]]:
    """Print the score of each finding, and the centre of its highest patch."""
    told = []
    for name, own in zip(names, maps, strict=True):
        row, column = np.unravel_index(own.argmax(), own.shape)
        x, y = (column + 0.5) * shape[1] / own.shape[1], (row + 0.5) * shape[0] / own.shape[0]
        told.append({"name": name, "score": float(own.max()), "x": float(x), "y": float(y)})
    return sorted(told, key=lambda one: -one["score"])


def check(found: dict[str, np.ndarray], knows: dict[str, Any], shape: tuple[int, ...], text: str) -> dict[str, Any]:
    """Print whether another finding leads inside the box by more than the model allows."""
    claimed, _, corners = text.partition(":")
    names, rule = [one["name"] for one in knows["concepts"]], knows["safety_rule"]
    if claimed not in names or corners.count(",") != 3:
        sys.exit(f"--check takes CONCEPT:x1,y1,x2,y2, with one of {', '.join(names)}; not {text!r}.")
    weights = overlap([float(corner) for corner in corners.split(",")], shape, found["mean_maps"].shape[1:])
    means, variances = ((found[name] * weights).sum(axis=(1, 2)) for name in ("mean_maps", "disagreement_maps"))
    rivals = [k for k, name in enumerate(names) if name != claimed and name not in rule["never_leads"]]
    if not rivals:
        return {"claimed": claimed, "rival": claimed, "gap": 0.0, "mismatch": False}
    rival = max(rivals, key=lambda k: means[k])
    gap = float(means[rival] - means[names.index(claimed)])
    believed = rule["gate"] is None or variances[rival] <= rule["gate"]
    mismatch = bool(gap > rule["lead"][claimed] and believed)
    return {"claimed": claimed, "rival": names[rival], "gap": gap, "mismatch": mismatch}


def overlap(box: list[float], shape: tuple[int, ...], grid: tuple[int, ...]) -> np.ndarray:
    """Return the share of the box on each patch; the sum is one."""
    x1, y1, x2, y2 = box
    shares = []
    for low, high, pixels, patches in ((y1, y2, shape[0], grid[0]), (x1, x2, shape[1], grid[1])):
        edges = np.linspace(0, pixels, patches + 1)
        shares.append(np.clip(np.minimum(high, edges[1:]) - np.maximum(low, edges[:-1]), 0, None))
    covered = np.outer(*shares)
    return covered / covered.sum()


if __name__ == "__main__":
    main()
