"""Figures of a data set: a contact sheet with boxes, label counts, and co-occurrence of concepts."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from medgrape.concepts import OKABE_ITO, colour
from medgrape.datasets.cache import CachedFilms
from medgrape.datasets.check import CheckReport
from medgrape.datasets.dataset import Dataset, FilmRecord
from medgrape.files import whole_file
from medgrape.geometry import FilmSize

COLUMNS, ROWS, TILE = 6, 4, 224
_LINE, _GAP = 15, 6
_BACKGROUND, _INK = "#101014", "#c8c8d0"
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
Words = list[tuple[str, str]]  # words with their colours


@dataclass(frozen=True)
class Figures:
    """Paths of the figures."""

    contact_sheet: Path
    label_counts: Path
    co_occurrence: Path


def draw_figures(report: CheckReport, films: CachedFilms, folder: Path) -> Figures:
    """Draw all three figures into ``folder``."""
    figures = Figures(folder / "contact-sheet.png", folder / "label-counts.png", folder / "co-occurrence.png")
    with whole_file(figures.contact_sheet) as draft:
        contact_sheet(report.dataset, films).save(draft, "PNG")
    with whole_file(figures.label_counts) as draft:
        _plot_label_counts(report, draft)
    with whole_file(figures.co_occurrence) as draft:
        _plot_co_occurrence(report, draft)
    return figures


def contact_sheet(dataset: Dataset, films: CachedFilms, columns: int = COLUMNS, rows: int = ROWS) -> Image.Image:
    """Return films side by side with their boxes and captions."""
    positions = positions_to_show(dataset, films, columns * rows)
    tiles = [_tile(dataset, dataset.pictured[position], films[position]) for position in positions]
    height, down = max((tile.height for tile in tiles), default=TILE), -(-max(len(tiles), 1) // columns)
    sheet = Image.new("RGB", (columns * (TILE + _GAP) + _GAP, down * (height + _GAP) + _GAP), _BACKGROUND)
    for place, tile in enumerate(tiles):
        row, column = divmod(place, columns)
        sheet.paste(tile, (_GAP + column * (TILE + _GAP), _GAP + row * (height + _GAP)))
    return sheet


def positions_to_show(dataset: Dataset, films: CachedFilms, count: int) -> Sequence[int]:
    """Return films for a contact sheet, from each class and concept in turn; new patients and boxes come first."""
    groups = defaultdict[tuple[str, str], list[tuple[int, bool, int]]](list)
    films_of_patient: Counter[str] = Counter()
    for position in films.readable():
        film = dataset.pictured[position]
        rank = (films_of_patient[film.patient], film.id not in dataset.boxes_by_film, position)
        for concept in sorted(name for name, present in film.labels.items() if present) or [""]:
            groups[film.class_name, concept].append(rank)
        films_of_patient[film.patient] += 1
    queues = (sorted(groups[key]) for key in sorted(groups))
    in_turn = (rank[-1] for ranks in zip_longest(*queues) for rank in ranks if rank is not None)
    chosen = list(dict.fromkeys(in_turn))[:count]
    return sorted(chosen, key=lambda position: (dataset.pictured[position].class_name, position))


def _tile(dataset: Dataset, film: FilmRecord, pixels: np.ndarray) -> Image.Image:
    font = ImageFont.load_default(12)
    lines = _caption(dataset, film, font)
    tile = Image.new("RGB", (TILE, TILE + 2 + _LINE * len(lines)), _BACKGROUND)
    tile.paste(Image.fromarray(pixels).resize((TILE, TILE), Image.Resampling.BILINEAR).convert("RGB"))
    pen = ImageDraw.Draw(tile)
    known = (drawn for drawn in dataset.boxes_by_film.get(film.id, ()) if drawn.concept in dataset.concepts)
    for drawn in known:
        box, ink = drawn.box.moved(film.size, FilmSize(TILE, TILE)), colour(dataset.concepts.index(drawn.concept))
        pen.rectangle(box.corners, outline=ink, width=2)
        if len(dataset.concepts) > len(OKABE_ITO):  # colours repeat, so boxes need names
            small, place = ImageFont.load_default(10), (box.x1 + 3, box.y1 + 1)
            pen.text(place, drawn.concept[:9], fill=ink, font=small, stroke_width=1, stroke_fill="black")
    for row, words in enumerate(lines):
        across = 2.0
        for word, ink in words:
            pen.text((across, TILE + 1 + _LINE * row), word, fill=ink, font=font)
            across += pen.textlength(word, font=font) + 8
    return tile


def _caption(dataset: Dataset, film: FilmRecord, font: Font) -> list[Words]:
    """Name and class, then the findings in their colours, on as many lines as needed."""
    words = [(film.id, _INK), (f"class {film.class_name}", _INK)]
    present = [name for name, label in film.labels.items() if label]
    words += [(name, colour(dataset.concepts.index(name))) for name in present]
    if not present and None in film.labels.values():
        words.append(("findings not known", _INK))
    lines: list[Words] = [[]]
    room = float(TILE)
    for number, (word, ink) in enumerate(words):
        width = font.getlength(word) + 8
        if (width > room or number == 2) and lines[-1]:
            lines, room = [*lines, []], float(TILE)
        lines[-1].append((word, ink))
        room -= width
    return lines


def _plot_label_counts(report: CheckReport, path: Path) -> None:
    from matplotlib.figure import Figure  # slow to import

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
    concept_counts = report.concept_counts()
    places = np.arange(len(concept_counts))
    for key, offset, ink in (("films", -0.2, colour(1)), ("boxes", 0.2, colour(5))):
        width = np.array([counts[key] for counts in concept_counts.values()])
        concepts.barh(places + offset, width, 0.38, color=ink, label=key)
    concepts.set_yticks(places, list(concept_counts))
    concepts.set_title("Films and boxes by concept")
    concepts.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, below), ncols=2)
    for axes in (classes, concepts):
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.suptitle(report.dataset.name)
    figure.savefig(path, format="png", dpi=110)


def _plot_co_occurrence(report: CheckReport, path: Path) -> None:
    from matplotlib.figure import Figure  # slow to import

    names = report.dataset.concepts.names
    side = 2.8 + 0.42 * max(len(names), 4)
    figure = Figure(figsize=(side + 1, side), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(report.graph.probability, cmap="cividis", vmin=0, vmax=1)
    edges = report.graph.edges(report.tau)
    for k, j in np.ndindex(len(names), len(names)):
        value = report.graph.probability[k, j]
        weight = "bold" if edges[k, j] else "normal"
        ink = "black" if value > 0.5 else "white"
        axes.text(j, k, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=7, weight=weight)
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("given this finding j")
    axes.set_ylabel("how often is this one k there too")
    axes.set_title(f"P(k given j); bold: k listens to j (tau = {report.tau:g}, {int(edges.sum())} edges)", fontsize=9)
    figure.colorbar(image, ax=axes, shrink=0.7)
    figure.savefig(path, format="png", dpi=120)
