"""Plots of the report as inline SVG, drawn from the content of ``report.json``."""

import io
import re
import xml.etree.ElementTree as Tree
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from medgrape.concepts import colour
from medgrape.evaluation.readings import Readings, true_classes
from medgrape.evaluation.summary import format_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1b1d22"  # text and axes; replaced by the colour of the page's text, light or dark
_SETTINGS: Any = {
    "svg.fonttype": "path",  # looks the same on every machine
    "svg.hashsalt": "medgrape",  # the same plot is always the same file
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
_LINK = re.compile(r"#(?=[A-Za-z_])")


@contextmanager
def plotting() -> Iterator[None]:
    """Apply the common style to all plots made in the block."""
    import matplotlib as mpl  # slow to import

    with mpl.rc_context(_SETTINGS):
        yield


def inline(figure: "Figure", name: str, alt: str) -> Markup:
    """Return the figure as an ``<svg>`` element; ``name`` is the prefix that makes its ids unique on the page.

    Styles become attributes, because the page's policy forbids inline styles.
    """
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = Tree.fromstring(file.getvalue())  # noqa: S314 (our own output)
    _clean(root, name)
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    root.attrib |= {"role": "img", "aria-label": alt, "class": "plot"}
    return Markup(Tree.tostring(root, encoding="unicode"))  # noqa: S704 (ElementTree escapes)


def _clean(element: Tree.Element, name: str) -> None:
    """Remove namespaces, metadata and styles, and prefix all ids and links."""
    element.tag = _local_name(element.tag)
    element.tail = element.text = None  # blanks only: letters are drawn as paths
    attributes = {_local_name(key): value for key, value in element.attrib.items() if key != "style"}
    for declaration in filter(str.strip, element.attrib.get("style", "").split(";")):
        key, value = (part.strip() for part in declaration.split(":", 1))
        attributes[key] = "currentColor" if value == INK else value
    element.attrib = {key: _prefix_ids(key, value, name) for key, value in attributes.items()}
    for child in list(element):
        if _local_name(child.tag) in {"metadata", "style"}:
            element.remove(child)
        else:
            _clean(child, name)


def _prefix_ids(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    return _LINK.sub(f"#{name}-", value) if key == "href" or "url(#" in value else value


def _local_name(tag: str) -> str:
    return tag.rsplit("}", 1)[-1]


_SHORT = 26  # letters of a name that fit beside a plot
_DASHES = ("-", "--", "-.", ":")
MEAN, MAXIMUM, CAM, CHANCE, FIXED = colour(4), colour(1), colour(2), INK, colour(5)
_MAPS = (  # offset of the map's bar within its row, key in the report, colour, label
    (-0.26, "mean", MEAN, "mean map"),
    (0.0, "maximum", MAXIMUM, "max map"),
    (0.26, "cam", CAM, "CAM"),
)


@dataclass(frozen=True)
class Plot:
    """A plot for a page."""

    svg: Markup
    caption: str


def reliability_plot(report: dict[str, Any]) -> Plot:
    """Plot accuracy against confidence; the area of a dot is its number of films."""
    with plotting():
        figure, axes = _square_axes("probability of the answer", "share of right answers")
        bins = [b for b in report["calibration"]["bins"] if b["films"]]
        confidence, accuracy = [b["confidence"] for b in bins], [b["accuracy"] for b in bins]
        most = max(b["films"] for b in bins)
        areas = [20 + 180 * b["films"] / most for b in bins]
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle="--", label="perfect")
        axes.plot(confidence, accuracy, color=MEAN, linewidth=1)
        axes.scatter(confidence, accuracy, areas, color=MEAN, clip_on=False, label="model")
        axes.legend(loc="upper left", markerscale=0.5)
        points = "; ".join(
            f"{format_figure(b['confidence'])}: {format_figure(b['accuracy'])} of {b['films']}" for b in bins
        )
        alt = f"Reliability plot. Mean probability of the answer, and share of right answers: {points}."
        return Plot(inline(figure, "reliability", alt), "A larger dot stands for more films.")


def roc_plot(report: dict[str, Any], readings: Readings) -> Plot:
    """Plot the ROC curve of each class against all others."""
    from sklearn.metrics import roc_curve  # slow to import

    truth = true_classes(readings)
    with plotting():
        figure, axes = _square_axes("false alarms among the others", "share of the class found")
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle="--")
        labels = {
            place: (figures["name"], format_figure(figures["auc"]))
            for place, figures in enumerate(report["classification"]["classes"])
            if figures["auc"] is not None
        }
        for place, (name, auc) in labels.items():
            false_alarms, recall, _ = roc_curve(truth == place, readings.probabilities[:, place])
            axes.plot(
                false_alarms, recall, color=colour(place), linestyle=_DASHES[place // 7 % 4], linewidth=1.6,
                label=f"{shorten(name, _SHORT)}, AUC {auc}",
            )  # fmt: skip
        if labels:
            axes.legend(loc="lower right", fontsize=8 if len(labels) < 10 else 6)
        areas = "; ".join(f"{name} {auc}" for name, auc in labels.values()) or "none can be drawn"
        return Plot(inline(figure, "roc", f"ROC curves, one class against the others. Area under each: {areas}."), "")


def pointing_plot(report: dict[str, Any]) -> Plot | None:
    """Plot the hit rates of each map by concept, with blind pointing; None without boxes."""
    localisation = report["localisation"]
    if localisation["per_pair"] is None:
        return None
    rows = [(row["title"], row["pointing"]) for row in localisation["concepts"] if row["pointing"] is not None]
    rows += [("All pairs", localisation["per_pair"]), ("All films", localisation["per_film"])]
    pointings = [pointing for _, pointing in rows]
    with plotting():
        figure, axes = _row_axes([title for title, _ in rows], 0.62)
        _draw_hit_rates(axes, pointings)
        axes.scatter(
            [pointing["chance"] for pointing in pointings], np.arange(len(rows)), 60, marker="|", color=CHANCE,
            zorder=4, label="random point",
        )  # fmt: skip
        fixed = [(pointing["fixed"], y) for y, pointing in enumerate(pointings) if pointing["fixed"] is not None]
        axes.scatter(
            [x for x, _ in fixed], [y for _, y in fixed], 34, marker="D", color=FIXED, zorder=5, label="fixed point",
            edgecolors="white", linewidths=0.6,
        )  # fmt: skip
        axes.set_xlim(0, 1)
        axes.set_xlabel("share of hits; the thin lines are 95 % intervals")
        figure.legend(loc="outside upper center", ncols=5, handletextpad=0.4, columnspacing=0.8, fontsize=8)
        words = " ".join(
            f"{title}: mean map {format_figure(row['mean']['share'])}, "
            f"max map {format_figure(row['maximum']['share'])}, "
            f"CAM {format_figure(row['cam'] and row['cam']['share'])}, "
            f"random point {format_figure(row['chance'])}, fixed point {format_figure(row['fixed'])}."
            for title, row in rows
        )
        return Plot(inline(figure, "pointing", f"Pointing game. {words}"), "")


def _draw_hit_rates(axes: "Axes", pointings: Sequence[dict[str, Any]]) -> None:
    for offset, name, tone, label in _MAPS:
        rates = {y: pointing[name] for y, pointing in enumerate(pointings) if pointing[name] is not None}
        if not rates:
            continue
        shares = [rate["share"] for rate in rates.values()]
        bounds = [rate["interval"] or {"low": rate["share"], "high": rate["share"]} for rate in rates.values()]
        whiskers = [(s - b["low"], b["high"] - s) for s, b in zip(shares, bounds, strict=True)]
        axes.barh(
            [y + offset for y in rates], shares, 0.24, color=tone, label=label, ecolor=INK,
            xerr=np.maximum(np.array(whiskers).T, 0.0),  # a resampled interval may just exclude its figure
        )  # fmt: skip


def dispersion_plot(report: dict[str, Any]) -> Plot | None:
    """Plot the cosine of the prototypes within each concept; None if concepts have a single prototype."""
    spread = report["dispersion"]
    if spread["within"] is None:
        return None
    titles = [concept["title"] for concept in report["detection"]["concepts"]]
    with plotting():
        figure, axes = _row_axes(titles, 0.36)
        axes.barh(np.arange(len(titles)), spread["per_concept"], 0.6, color=MEAN, label="within the concept")
        for value, tone, dash, label in (
            (spread["paper_collapse"], FIXED, "--", "the paper's collapse"),
            (spread["between"], INK, ":", "between"),
        ):
            if value is not None:
                axes.axvline(value, color=tone, linestyle=dash, label=f"{label} {format_figure(value)}")
        axes.set_xlim(min(0.0, *spread["per_concept"], spread["between"] or 0.0), 1.02)
        axes.set_xlabel("mean cosine of pairs of prototypes")
        figure.legend(loc="outside upper center", ncols=3, handletextpad=0.4, columnspacing=1.2, fontsize=8)
        words = "; ".join(f"{t} {format_figure(c)}" for t, c in zip(titles, spread["per_concept"], strict=True))
        return Plot(inline(figure, "dispersion", f"Mean cosine of the prototypes within each concept: {words}."), "")


def _square_axes(across: str, up: str) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=across, ylabel=up, aspect="equal")
    return figure, axes


def _row_axes(titles: list[str], height: float) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(5.2, 1.1 + height * len(titles)), layout="constrained")
    axes = figure.subplots()
    label_rows(axes, [shorten(title, _SHORT) for title in titles])
    return figure, axes


def label_rows(axes: "Axes", names: list[str]) -> None:
    """Label the rows of a plot from top to bottom."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)


def shorten(name: str, letters: int) -> str:
    """Cut a name to at most so many letters, with an ellipsis."""
    return name if len(name) <= letters else name[: letters - 1] + "…"
