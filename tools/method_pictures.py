"""Draw the pictures of docs/explanation/method.md: python tools/method_pictures.py RUN FILM.

Use the run and a film of docs/tutorial/first-reading.md: runs/tb and data/tb/films/tb-000291-01.png.
"""

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from medgrape import load
from medgrape.concepts import colour
from medgrape.explain.explanation import Explanation
from medgrape.explain.film_evidence import ConceptEvidence
from medgrape.explain.maps import HEAT, painted, strengths, upsampled
from medgrape.explain.words import describe_score
from medgrape.geometry import Box, FilmSize, peak
from medgrape.study import Study

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SHOWN = FilmSize(448, 448)
STYLE = {"font.size": 13, "axes.titlesize": 13, "figure.dpi": 110, "savefig.bbox": "tight", "axes.spines.top": False}


def boxes_of(film: Path) -> dict[str, list[Box]]:
    """Return the drawn boxes of the film by concept, from its prepared data set."""
    found: dict[str, list[Box]] = {}
    with (film.parent.parent / "boxes.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["film"] == film.stem:
                found.setdefault(row["concept"], []).append(
                    Box(*(float(row[side]) for side in ("x1", "y1", "x2", "y2")))
                )
    return found


def row(panels: int, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """Create panels side by side."""
    figure, axes = pyplot.subplots(1, panels, figsize=(9.0, height), layout="constrained")
    return figure, list(np.atleast_1d(axes))


def show(axes: Axes, pixels: np.ndarray, title: str, film: FilmSize) -> None:
    """Draw a picture in the coordinates of the film."""
    axes.imshow(pixels, cmap="gray", extent=(0, film.width, film.height, 0), vmin=0, vmax=255)
    axes.set_title(title)
    axes.set_axis_off()


def frame(axes: Axes, box: Box, ink: str, dashes: str = "-") -> None:
    """Draw a box on a film."""
    outline = {"fill": False, "linestyle": dashes}
    for edge, width in (("black", 3.0), (ink, 1.5)):
        axes.add_patch(Rectangle((box.x1, box.y1), box.width, box.height, edgecolor=edge, linewidth=width, **outline))


def heated(told: Explanation, one: ConceptEvidence) -> np.ndarray:
    """Draw the film with the map of a concept on it."""
    grey = np.asarray(upsampled(told.pixels.astype(np.float64), SHOWN).round().clip(0, 255), np.uint8)
    return painted(grey, upsampled(strengths(one), SHOWN), HEAT)


def ordered(study: Study, told: Explanation) -> list[ConceptEvidence]:
    """Return the concepts in the order of the model, so that all pictures have the same colours and places."""
    return sorted(told.concepts, key=lambda one: study.run.concepts.index(one.concept.name))


def patches(study: Study, told: Explanation, drawn: dict[str, list[Box]]) -> Figure:
    """Draw the film with its boxes, and with the patches of the model."""
    figure, (left, right) = row(2, 4.4)
    show(left, told.pixels, "The film, and what was drawn on it", told.film)
    show(right, told.pixels, f"{told.grid.rows} x {told.grid.columns} patches", told.film)
    for concept, boxes in drawn.items():
        for box in boxes:
            frame(left, box, colour(study.run.concepts.index(concept)))
    for line in np.linspace(0, told.film.width, told.grid.columns + 1):
        right.axvline(line, color="white", linewidth=0.5, alpha=0.6)
        right.axhline(line, color="white", linewidth=0.5, alpha=0.6)
    return figure


def maps(study: Study, told: Explanation, drawn: dict[str, list[Box]]) -> Figure:
    """Draw the mean map of each concept."""
    figure, panels = row(len(told.concepts))
    for axes, one in zip(panels, ordered(study, told), strict=True):
        words = describe_score(one.score, one.absent_score, one.present_score)
        show(axes, heated(told, one), f"{one.concept.title}\n{words} ({one.strength:.2f})", told.film)
        for box in drawn.get(one.concept.name, []):
            frame(axes, box, colour(study.run.concepts.index(one.concept.name)))
        axes.plot(*peak(one.mean, told.grid), "o", markersize=6, markerfacecolor="white", markeredgecolor="black")
    return figure


def prototypes(study: Study, told: Explanation, _: dict[str, list[Box]]) -> Figure:
    """Draw the strongest prototypes: their place on this film, and the training patch of each."""
    strongest = told.concepts[0]
    number = study.run.concepts.index(strongest.concept.name)
    figure, (first, *others) = row(1 + len(strongest.exemplars), 3.0)
    show(first, told.pixels, "This film", told.film)
    for position, (axes, example) in enumerate(zip(others, strongest.exemplars, strict=True)):
        answers = study.evidence.similarity[number, example.prototype]
        down, across = divmod(int(answers.argmax()), answers.shape[-1])
        frame(first, _wider(told.grid.patch(down, across), 4.0 * position), colour(position))
        side = FilmSize(example.thumbnail.shape[1], example.thumbnail.shape[0])
        show(axes, example.thumbnail, f"{example.film}\ncosine {float(answers.max()):.2f}", side)
        frame(axes, example.patch, colour(position))
    return figure


def graph(study: Study, told: Explanation, _: dict[str, list[Box]]) -> Figure:
    """Draw the concept graph, and the prediction of the head."""
    figure, (left, right) = row(2, 3.4)
    concepts, edges = study.run.concepts, study.run.grape.graph.edges
    turns = np.linspace(0.5, 2.5, len(concepts), endpoint=False) * np.pi
    places = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    for listener, speaker in np.argwhere(edges.numpy()):
        if listener != speaker:
            bent = {
                "connectionstyle": "arc3,rad=0.18",
                "arrowstyle": "-|>",
                "mutation_scale": 18,
                "shrinkA": 42,
                "shrinkB": 42,
            }
            left.add_patch(FancyArrowPatch(tuple(places[speaker]), tuple(places[listener]), color="0.35", **bent))
    for number, (concept, place) in enumerate(zip(concepts, places, strict=True)):
        left.scatter(*place, s=4200, color=colour(number), edgecolor="black", zorder=2)
        left.annotate(concept.name.replace("_", "\n"), place, ha="center", va="center", fontsize=11, zorder=3)
    left.set(
        xlim=(-1.8, 1.8),
        ylim=(-1.2, 1.6),
        title=f"Who listens to whom (tau {study.run.config.model.tau:g})",
        aspect="equal",
    )
    left.set_axis_off()
    _bars(right, dict(reversed(told.probabilities.items())), "What the head makes of it")
    return figure


def check(study: Study, told: Explanation, drawn: dict[str, list[Box]]) -> Figure:
    """Draw a box with a wrong claim, and the safety check."""
    truth, claimed = _mistake(study, drawn)
    box = drawn[truth][0]
    found = study.check(box, claimed)
    figure, (left, right) = row(2, 3.8)
    show(left, told.pixels, f"Somebody says: {claimed}", told.film)
    frame(left, box, colour(study.run.concepts.index(claimed)))
    _bars(right, {one.name: one.mean for one in reversed(found.concepts)}, "Mean similarity inside the box")
    said = "warning" if found.mismatch else "no warning"
    right.set_xlabel(f"{found.rival} leads by {found.gap:.3f}, allowed {found.allowed:.3f}: {said}", fontsize=11)
    return figure


def correction(study: Study, told: Explanation, drawn: dict[str, list[Box]]) -> Figure:
    """Draw the map before and after a box, and the classes."""
    truth, _ = _mistake(study, drawn)
    box = _wider(drawn[truth][0], 8.0)  # wider than the finding, as a patch that the box cuts counts in part
    corrected = study.apply(box, truth, confirmed=True)
    figure, (left, middle, right) = row(3)
    for axes, one, title in ((left, study, f"{truth}, before"), (middle, corrected, "after a box")):
        now = one.explain()
        show(axes, heated(now, next(c for c in now.concepts if c.concept.name == truth)), title, now.film)
    frame(middle, box, colour(study.run.concepts.index(truth)))
    names = list(reversed(told.probabilities))
    after = {
        "before": (study, "0.6"),
        "after the box": (corrected, colour(4)),
        "all rejected": (study.reject(), colour(5)),
    }
    for place, (label, (one, ink)) in enumerate(after.items()):
        heights = [number + 0.27 * (1 - place) for number in range(len(names))]
        right.barh(heights, [one.prediction[name] for name in names], 0.25, color=ink, label=label)
    right.set_yticks(range(len(names)), [name.replace("_", "\n", 1) for name in names], fontsize=11)
    right.set(xlim=(0, 1), title="Classes")
    right.legend(frameon=False, fontsize=11, loc="upper right", bbox_to_anchor=(1.0, 0.82))
    return figure


def _wider(box: Box, by: float) -> Box:
    """Enlarge a box, so that several frames around one patch are visible."""
    return Box(box.x1 - by, box.y1 - by, box.x2 + by, box.y2 + by)


def _mistake(study: Study, drawn: dict[str, list[Box]]) -> tuple[str, str]:
    """Return the first drawn finding in the order of the model, and another one to confuse it with."""
    truth = next(name for name in study.run.concepts.names if name in drawn)
    return truth, next(name for name in study.run.concepts.names if name != truth)


def _bars(axes: Axes, values: dict[str, float], title: str) -> None:
    names = list(values)
    bars = axes.barh([name.replace("_", " ") for name in names], list(values.values()), color=colour(4))
    axes.bar_label(bars, fmt="%.3f", padding=4)
    low = min(0.0, *values.values())
    axes.set(title=title, xlim=(low * 1.6, max(0.01, *values.values()) * 1.3))
    if low == 0:
        axes.set_xticks([])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.spines["right"].set_visible(False)


DRAWN: dict[str, Callable[[Study, Explanation, dict[str, list[Box]]], Figure]] = {
    "method-patches": patches,
    "method-maps": maps,
    "method-prototypes": prototypes,
    "method-graph": graph,
    "method-check": check,
    "method-correction": correction,
}


def main(run: Path, film: Path) -> None:
    """Draw all pictures."""
    matplotlib.use("agg")
    matplotlib.rcParams.update(STYLE)
    study = load(run).open(film)
    told, drawn = study.explain(), boxes_of(film)
    for name, draw in DRAWN.items():
        figure = draw(study, told, drawn)
        figure.savefig(PICTURES / f"{name}.png")
        pyplot.close(figure)
        sys.stderr.write(f"{PICTURES / name}.png\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
