"""A model learns a pacemaker as a shortcut; a physician removes the prototypes that point at it.

On the training films most patients with active tuberculosis wear a pacemaker, and few others do. The training uses no
boxes. On films with a misleading pacemaker (other patients wear it) such a model is wrong. The prototypes that point at
the device are discarded, and the misleading films, which are not used for training, are read again. Then the head is
fitted again: once on the same training films, where the pacemaker still helps, so that its effect partly returns; and
once on a few films of another ward, where it is unrelated to the disease. For comparison, the head with all prototypes
is fitted on those few films, too.

    python examples/shortcut.py --out shortcut

The drawing program, which knows the pixels of the device, takes the part of the physician: a prototype is discarded if
its best patch is on the pacemaker, or next to its can, on too many of the training films with one.
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import Bool, Float, UInt8
from shortcut_picture import Accuracy, draw_picture

import medgrape
from medgrape.cli.console import note, table, track, watch
from medgrape.config import Config, load_config
from medgrape.datasets.dataset import Dataset, SplitRule
from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset
from medgrape.evaluation.evaluate import read_split
from medgrape.phantoms.cohort import Shortcut, plan
from medgrape.phantoms.film import draw
from medgrape.reader import Reader, load
from medgrape.training.film_scores import films_for, kept_scores
from medgrape.training.refit import refit
from medgrape.training.run import TrainingJob, train
from medgrape.vocabulary.curation import discard, spelled

DEVICE = "pacemaker"
TOUCHED = 0.02
"""Smallest share of a patch that the device must cover to count."""
LYING, CLEAN = 1000, 2000
"""Added to the seed for films of other patients: with a misleading device, and with an unrelated one."""


def main() -> None:
    """Draw films, train, find the prototypes at the device, discard them, refit, compare."""
    asked = _arguments()
    rule = SplitRule(test=0.2, seed=asked.seed)
    worn = Shortcut(asked.worn, device=DEVICE)
    data = _drawn(asked.out / "films", PhantomOptions(films=asked.films, seed=asked.seed, shortcut=worn), rule)
    options = PhantomOptions(films=asked.lying, seed=asked.seed + LYING, shortcut=replace(worn, lies=True))
    lying = _drawn(asked.out / "lying-films", options, replace(rule, test=0.9))
    clean = _drawn(asked.out / "clean-films", PhantomOptions(films=asked.clean, seed=asked.seed + CLEAN), rule)
    train(TrainingJob(_recipe(asked), data, asked.out / "model"), track=track, watch=watch)
    taken_in = load(asked.out / "model")
    on_device = _on_device(taken_in, data, asked)
    curated, gone = _without(taken_in, on_device, asked.threshold)
    readers = {"taken in": taken_in, "shortcut discarded": curated}
    for name, films in (("head fitted again, same films", data), ("head fitted again, clean films", clean)):
        readers[name] = refit(curated, films, original=taken_in, track=track, watch=watch).reader
    readers["clean films, nothing discarded"] = refit(taken_in, clean, track=track, watch=watch).reader
    told = [_accuracy(name, reader, data, lying) for name, reader in readers.items()]
    told.append(_trivial(data, lying))
    for concept, numbers in gone.items():
        note(f"{concept}: discarded {len(numbers)} of {on_device.shape[1]} prototypes ({spelled(numbers) or 'none'})")
    table(
        "Accuracy on test films",
        ("model", "the pacemaker lies", "it tells the truth"),
        [(one.name, f"{one.lying:.3f}", f"{one.honest:.3f}") for one in told],
    )
    for one in told[1:-1]:
        note(f"{one.name}: {100 * (one.lying - told[0].lying):+.1f} points on lying films")
    draw_picture(taken_in, on_device, gone, told, asked.out / "shortcut.png")
    note(f"picture: {asked.out / 'shortcut.png'}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("shortcut"), help="folder for all output")
    parser.add_argument("--films", type=int, default=1200, help="films to train, choose and test on")
    parser.add_argument("--lying", type=int, default=400, help="films with a misleading pacemaker")
    parser.add_argument("--clean", type=int, default=300, help="films with an unrelated pacemaker, to refit the head")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worn", type=float, default=0.9, help="share of patients with active TB who wear a pacemaker")
    parser.add_argument("--epochs", type=int, default=8, help="epochs of stage 1")
    parser.add_argument("--pooling", choices=("mean", "log-sum-exp"), default="log-sum-exp")
    parser.add_argument("--prototypes", type=int, default=100)
    parser.add_argument(
        "--threshold",
        type=float,
        default=0.4,
        help="largest share of films on which a prototype may point at the device",
    )
    parser.add_argument("--looked-at", type=int, default=200, help="training films with a pacemaker to measure on")
    return parser.parse_args()


def _drawn(folder: Path, options: PhantomOptions, rule: SplitRule) -> Path:
    if not (folder / "dataset.toml").is_file():
        draw_dataset(options, folder, rule, workers=os.cpu_count() or 1, track=track)
    return folder


def _recipe(asked: argparse.Namespace) -> Config:
    """Return the demo's settings, without the use of boxes."""
    config = load_config(Path(medgrape.__file__).parent / "configs" / "demo.toml")
    concepts = {"box_weight": 0.0, "pooling": asked.pooling, "epochs": asked.epochs}
    stages = config.stages.model_copy(
        update={
            "concepts": config.stages.concepts.overridden(**concepts),
            "vectors": config.stages.vectors.model_copy(update={"boxes": False}),
        }
    )
    model = config.model.overridden(prototypes=asked.prototypes)
    return config.model_copy(update={"seed": asked.seed, "stages": stages, "model": model})


def _on_device(reader: Reader, data: Path, asked: argparse.Namespace) -> Float[np.ndarray, "k m"]:
    """Return for each prototype the share of training films with the device where its best patch is on the device."""
    run = reader.loaded.run
    films = films_for(run, data, track)
    found = kept_scores(run, films, data, track=track)
    places = {films.records[film].id: film for film in films.positions("train")}
    sittings = plan("tb", asked.films, asked.seed, Shortcut(asked.worn, device=DEVICE))
    shown = [one for one in sittings if one.has_shortcut and one.film_id in places][: asked.looked_at]
    hits = []
    for sitting in track(shown, "looking at the pacemakers", len(shown)):
        (mask,) = (device.mask for device in draw(sitting).devices if device.name == DEVICE)
        hits.append(_patches_on(mask, found.grid).flatten()[found.where[places[sitting.film_id]]])
    return np.asarray(np.mean(hits, axis=0))


def _patches_on(mask: Bool[np.ndarray, "size size"], grid: tuple[int, int]) -> Bool[np.ndarray, "h w"]:
    """Return the patches that the device covers, and those next to its can, which see its edge."""
    whole = mask.astype(np.uint8)
    can = cv2.morphologyEx(whole, cv2.MORPH_OPEN, np.ones((7, 7), np.uint8))  # leads are thinner than that
    beside = cv2.dilate(_touched(can, grid), np.ones((3, 3), np.uint8))
    return np.asarray((beside | _touched(whole, grid)) > 0)


def _touched(mask: UInt8[np.ndarray, "size size"], grid: tuple[int, int]) -> UInt8[np.ndarray, "h w"]:
    share = cv2.resize(mask.astype(np.float32), (grid[1], grid[0]), interpolation=cv2.INTER_AREA)
    return (share > TOUCHED).astype(np.uint8)


def _without(
    reader: Reader, on_device: Float[np.ndarray, "k m"], threshold: float
) -> tuple[Reader, dict[str, list[int]]]:
    """Return the reader without the prototypes that point at the device; each concept keeps at least one."""
    gone = {}
    for concept, shares in zip(reader.concepts.names, on_device, strict=True):
        order = np.argsort(-shares, kind="stable")[:-1]
        gone[concept] = sorted(int(number) for number in order if shares[number] > threshold)
        if gone[concept]:
            reader = discard(reader, concept, gone[concept])
    return reader, gone


def _accuracy(name: str, reader: Reader, data: Path, lying: Path) -> Accuracy:
    return Accuracy(name, *(_share_right(reader, folder) for folder in (lying, data)))


def _share_right(reader: Reader, data: Path) -> float:
    readings = read_split(reader.loaded, Dataset.load(data), data, "test", track).readings
    answers = [reader.classes[place] for place in readings.probabilities.argmax(axis=1)]
    return float(np.mean([answer == film.class_name for answer, film in zip(answers, readings.films, strict=True)]))


def _trivial(data: Path, lying: Path) -> Accuracy:
    """Return the accuracy of always predicting the most frequent class of training."""
    learnt = [film.class_name for film in Dataset.load(data).in_split("train")]
    common = max(sorted(set(learnt)), key=learnt.count)
    shares = [
        np.mean([film.class_name == common for film in Dataset.load(one).in_split("test")]) for one in (lying, data)
    ]
    return Accuracy(f"always {common!r}", float(shares[0]), float(shares[1]))


if __name__ == "__main__":
    main()
