"""Pictures of a data set: a contact sheet with boxes drawn, label counts, and which finding comes with which."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from medgrape.data.cache import CachedFilms
from medgrape.data.check import CheckReport, positions_to_show
from medgrape.data.dataset import Dataset, FilmRecord
from medgrape.data.files import whole_file
from medgrape.geometry import FilmSize
from medgrape.palette import colour

COLUMNS, ROWS, TILE = 6, 4, 224
_CAPTION, _GAP = 48, 6


@dataclass(frozen=True)
class Figures:
    """Where the pictures are."""

    contact_sheet: Path
    label_counts: Path
    co_occurrence: Path


def draw_figures(report: CheckReport, films: CachedFilms, folder: Path) -> Figures:
    """Draw all three into ``folder``."""
    figures = Figures(folder / "contact-sheet.png", folder / "label-counts.png", folder / "co-occurrence.png")
    with whole_file(figures.contact_sheet) as draft:
        contact_sheet(report.dataset, films).save(draft, "PNG")
    with whole_file(figures.label_counts) as draft:
        _plot_label_counts(report, draft)
    with whole_file(figures.co_occurrence) as draft:
        _plot_co_occurrence(report, draft)
    return figures


def contact_sheet(dataset: Dataset, films: CachedFilms, columns: int = COLUMNS, rows: int = ROWS) -> Image.Image:
    """Films side by side with their boxes, named under each."""
    shown = positions_to_show(dataset, films, columns * rows)
    height = -(-max(len(shown), 1) // columns)
    sheet = Image.new("RGB", (columns * (TILE + _GAP) + _GAP, height * (TILE + _CAPTION + _GAP) + _GAP), "#101014")
    for place, position in enumerate(shown):
        row, column = divmod(place, columns)
        corner = _GAP + column * (TILE + _GAP), _GAP + row * (TILE + _CAPTION + _GAP)
        sheet.paste(_tile(dataset, dataset.pictured[position], films[position]), corner)
    return sheet


def _tile(dataset: Dataset, film: FilmRecord, pixels: np.ndarray) -> Image.Image:
    tile = Image.new("RGB", (TILE, TILE + _CAPTION), "#101014")
    tile.paste(Image.fromarray(pixels).resize((TILE, TILE), Image.Resampling.BILINEAR).convert("RGB"))
    pen = ImageDraw.Draw(tile)
    known = (drawn for drawn in dataset.boxes_by_film.get(film.id, ()) if drawn.concept in dataset.concepts)
    for drawn in known:
        box = drawn.box.moved(film.size, FilmSize(TILE, TILE))
        pen.rectangle(box.corners, outline=colour(dataset.concepts.index(drawn.concept)), width=2)
    font = ImageFont.load_default(12)
    pen.text((2, TILE + 1), f"{film.id}  {film.class_name}"[:36], fill="#c8c8d0", font=font)
    across, down = 2.0, TILE + 16
    for name in (name for name, present in film.labels.items() if present):
        if across + pen.textlength(name, font=font) > TILE:
            across, down = 2.0, down + 15
        pen.text((across, down), name, fill=colour(dataset.concepts.index(name)), font=font)
        across += pen.textlength(name, font=font) + 8
    return tile


def _plot_label_counts(report: CheckReport, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 1.6 + 0.3 * max(len(report.dataset.concepts), 4)), layout="constrained")
    classes, concepts = figure.subplots(1, 2)
    below = -0.4 / figure.get_figheight()  # under the tick labels, whatever the height
    left = np.zeros(len(report.dataset.classes))
    for place, (split, counts) in enumerate(report.class_counts().items()):
        width = np.array([counts[name] for name in report.dataset.classes])
        classes.barh(report.dataset.classes, width, left=left, color=colour(place), label=split)
        left += width
    classes.set_title("Films by class and split")
    classes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, below), ncols=3)
    counted = report.concept_counts()
    names = list(counted)
    places = np.arange(len(names))
    concepts.barh(places - 0.2, [counted[n]["films"] for n in names], 0.38, color=colour(1), label="films")
    concepts.barh(places + 0.2, [counted[n]["boxes"] for n in names], 0.38, color=colour(5), label="boxes")
    concepts.set_yticks(places, names)
    concepts.set_title("Films and boxes by concept")
    concepts.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, below), ncols=2)
    for axes in (classes, concepts):
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.suptitle(report.dataset.name)
    figure.savefig(path, format="png", dpi=110)


def _plot_co_occurrence(report: CheckReport, path: Path) -> None:
    from matplotlib.figure import Figure

    names = report.dataset.concepts.names
    side = 2.8 + 0.42 * max(len(names), 4)
    figure = Figure(figsize=(side + 1, side), layout="constrained")
    axes = figure.subplots()
    shown = axes.imshow(report.graph.probability, cmap="cividis", vmin=0, vmax=1)
    edges = report.graph.edges(report.tau)
    for listener, speaker in np.ndindex(len(names), len(names)):
        value = report.graph.probability[listener, speaker]
        weight = "bold" if edges[listener, speaker] else "normal"
        ink = "black" if value > 0.5 else "white"
        axes.text(speaker, listener, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=7, weight=weight)
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("given this finding j")
    axes.set_ylabel("how often is this one k there too")
    axes.set_title(f"P(k given j); bold: k listens to j (tau = {report.tau:g}, {int(edges.sum())} edges)", fontsize=9)
    figure.colorbar(shown, ax=axes, shrink=0.7)
    figure.savefig(path, format="png", dpi=120)
