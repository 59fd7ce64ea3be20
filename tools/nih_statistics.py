"""Compute the statistics that phantoms of the ``nih`` profile imitate, from the two published tables of the NIH.

Run ``python tools/nih_statistics.py FOLDER`` where FOLDER holds ``Data_Entry_2017_v2020.csv`` and
``BBox_List_2017.csv``, each as published or gzipped. Only counts, quantiles and mixtures are stored: no film, no
patient, no single box.
"""

import argparse
import csv
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FINDINGS = (
    "atelectasis",
    "cardiomegaly",
    "effusion",
    "infiltration",
    "mass",
    "nodule",
    "pneumonia",
    "pneumothorax",
    "consolidation",
    "edema",
    "emphysema",
    "fibrosis",
    "pleural_thickening",
    "hernia",
)
TARGET = Path(__file__).parents[1] / "src/medgrape/phantoms/nih_statistics.json"
FRAME = 1024  # side of the films on which boxes were drawn
GRID = 64  # points per side that are tried as the fixed point
QUANTILES = np.linspace(0, 100, 21)
EM_ROUNDS = 60

Array = NDArray[np.float64]


def read_rows(folder: Path, name: str) -> Iterator[list[str]]:
    """Return the rows of a table without its header; it may be gzipped."""
    packed = folder / f"{name}.gz"
    with gzip.open(packed, "rt") if packed.exists() else (folder / name).open() as handle:
        rows = csv.reader(handle)
        next(rows)
        yield from rows


def finding_name(label: str) -> str:
    """Return our name for a label of either table."""
    return {"Infiltrate": "infiltration"}.get(label, label.lower())


def label_bits(labels: str) -> int:
    """Encode a label set as a bit mask in the order of ``FINDINGS``; no finding is 0."""
    return sum(1 << FINDINGS.index(finding_name(label)) for label in labels.split("|") if label != "No Finding")


def patient_statistics(rows: list[list[str]]) -> dict[str, object]:
    """Return sex, age, number of films, views and sets of findings of the patients."""
    sets = Counter(label_bits(row[1]) for row in rows)
    by_patient = defaultdict(list)
    for row in rows:
        by_patient[row[3]].append(row)
    firsts = [films[0] for films in by_patient.values()]
    ages = {sex: [int(row[4]) for row in firsts if row[5] == sex] for sex in "MF"}
    return {
        "films": len(rows),
        "label_sets": {str(bits): count for bits, count in sorted(sets.items())},
        "films_per_patient": dict(sorted(Counter(map(len, by_patient.values())).items())),
        "kept": kept_share(by_patient, sets),
        "female_share": round(len(ages["F"]) / len(firsts), 4),
        "age_quantiles": {sex: np.percentile(ages[sex], QUANTILES).round(1).tolist() for sex in "MF"},
        "ap_share_by_number_of_findings": ap_shares(rows),
    }


def kept_share(by_patient: dict[str, list[list[str]]], sets: Counter[int]) -> float:
    """Return how often a follow-up keeps its label set, beyond the agreement of two unrelated films."""
    pairs = [(a[1], b[1]) for films in by_patient.values() for a, b in pairwise(films)]
    same = sum(a == b for a, b in pairs) / len(pairs)
    total = sum(sets.values())
    chance = sum((count / total) ** 2 for count in sets.values())
    return round((same - chance) / (1 - chance), 4)


def ap_shares(rows: list[list[str]]) -> list[float]:
    """Return the share of AP films among those with 0, 1, 2 and at least 3 findings."""
    counts = np.array([min(label_bits(row[1]).bit_count(), 3) for row in rows])
    is_ap = np.array([row[6] == "AP" for row in rows])
    return [round(float(is_ap[counts == number].mean()), 4) for number in range(4)]


def read_boxes(folder: Path) -> dict[str, dict[str, Array]]:
    """Return the boxes per finding and film as x, y, width and height in unit coordinates."""
    grouped: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for film, label, *numbers in read_rows(folder, "BBox_List_2017.csv"):
        grouped[finding_name(label)][film].append([float(number) / FRAME for number in numbers[:4]])
    return {finding: {film: np.array(boxes) for film, boxes in films.items()} for finding, films in grouped.items()}


def trivial_baselines(films: dict[str, Array]) -> dict[str, float]:
    """Return how often the best fixed point, and a random point, lies in a box of the film."""
    points = (np.arange(GRID) + 0.5) / GRID
    hits = np.zeros((len(films), GRID, GRID), dtype=bool)
    for hit, boxes in zip(hits, films.values(), strict=True):
        for x, y, width, height in boxes:
            hit |= np.outer((points >= y) & (points < y + height), (points >= x) & (points < x + width))
    return {"fixed_point": round(float(hits.mean(axis=0).max()), 3), "random_point": round(float(hits.mean()), 4)}


def fit_mixture(boxes: Array) -> dict[str, object]:
    """Fit four Gaussians to centre and log size, initialised at left and right, small and large."""
    x, y, width, height = boxes.T
    samples = np.stack([x + width / 2, y + height / 2, np.log(width), np.log(height)], axis=1)
    large = width * height > np.median(width * height)
    start = np.where(samples[:, 0] > 0.5, 2, 0) + large
    share = np.eye(4)[start] * 0.9 + 0.025
    for _ in range(EM_ROUNDS):
        weights, means, covariances = _maximise(samples, share)
        share = _expect(samples, weights, means, covariances)
    return {
        "weights": (weights / weights.sum()).round(4).tolist(),
        "means": means.round(4).tolist(),
        "covariances": covariances.round(6).tolist(),
    }


def _maximise(samples: Array, share: Array) -> tuple[Array, Array, Array]:
    mass = share.sum(axis=0) + 1e-9
    means = share.T @ samples / mass[:, None]
    away = samples[:, None] - means
    covariances = np.einsum("nk,nki,nkj->kij", share, away, away) / mass[:, None, None]
    floor = np.diag([4e-4, 4e-4, 4e-3, 4e-3])  # no component may shrink onto a single box
    return mass / len(samples), means, covariances + floor


def _expect(samples: Array, weights: Array, means: Array, covariances: Array) -> Array:
    away = samples[:, None] - means
    distance = np.einsum("nki,kij,nkj->nk", away, np.linalg.inv(covariances), away)
    log_share = np.log(weights) - 0.5 * (distance + np.linalg.slogdet(covariances)[1])
    share = np.exp(log_share - log_share.max(axis=1, keepdims=True))
    normalised: Array = share / share.sum(axis=1, keepdims=True)
    return normalised


def main() -> None:
    """Write the statistics next to the code that draws from them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="folder with the two published tables")
    parser.add_argument("--out", type=Path, default=TARGET)
    arguments = parser.parse_args()
    boxes = read_boxes(arguments.source)
    statistics = {
        "source": "ChestX-ray14 (Wang et al. 2017), Data_Entry_2017_v2020.csv and BBox_List_2017.csv",
        "findings": FINDINGS,
        **patient_statistics(list(read_rows(arguments.source, "Data_Entry_2017_v2020.csv"))),
        "reference": {finding: trivial_baselines(films) for finding, films in sorted(boxes.items())},
        "boxes": {
            finding: fit_mixture(np.concatenate(list(films.values()))) for finding, films in sorted(boxes.items())
        },
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in statistics.items()]
    arguments.out.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
