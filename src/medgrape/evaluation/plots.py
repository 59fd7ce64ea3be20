"""The report's plots. They are made of the report's own plain data, so that plot and table cannot disagree."""

import io
import re
import xml.etree.ElementTree as Tree
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from medgrape.concepts import colour
from medgrape.evaluation.readings import Readings, true_classes
from medgrape.evaluation.verdicts import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1b1d22"
"""Text and axes; on the page they take the colour of its text, light or dark."""
_SETTINGS: Any = {
    "svg.fonttype": "path",  # looks the same on every machine
    "svg.hashsalt": "medgrape",  # and the same file every time
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
    """Plots made in here share one look."""
    import matplotlib as mpl  # slow to import

    with mpl.rc_context(_SETTINGS):
        yield


def inline(figure: "Figure", name: str, alt: str) -> Markup:
    """The figure as an ``<svg>`` element; ``name`` keeps its inner names apart from those of other plots.

    Styles become attributes, so that the page's policy may forbid every style but its own.
    """
    written = io.StringIO()
    figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = Tree.fromstring(written.getvalue())  # noqa: S314 (written by ourselves just now)
    _cleaned(root, name)
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    root.attrib |= {"role": "img", "aria-label": alt, "class": "plot"}
    return Markup(Tree.tostring(root, encoding="unicode"))  # noqa: S704 (written by a writer that escapes)


def _cleaned(element: Tree.Element, name: str) -> None:
    element.tag = _local(element.tag)
    element.tail = element.text = None  # blanks alone: letters are drawn as paths
    styles = dict(_styles(element.attrib.pop("style", "")))
    element.attrib = {
        _local(key): _renamed(_local(key), value, name) for key, value in (element.attrib | styles).items()
    }
    for child in list(element):
        if _local(child.tag) in {"metadata", "style"}:
            element.remove(child)
        else:
            _cleaned(child, name)


def _styles(written: str) -> Iterator[tuple[str, str]]:
    for part in filter(str.strip, written.split(";")):
        key, value = part.split(":", 1)
        yield key.strip(), "currentColor" if value.strip() == INK else value.strip()


def _renamed(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    return _LINK.sub(f"#{name}-", value) if key == "href" or "url(#" in value else value


def _local(tag: str) -> str:
    return tag.rsplit("}", 1)[-1]


_WIDE = 5.2
_SHORT = 26
"""Letters of a name that fit beside a plot."""
_DASHES = ("-", "--", "-.", ":")
MEAN, MAXIMUM, CAM, CHANCE, FIXED = colour(4), colour(1), colour(2), INK, colour(5)
_MAPS = (
    (-0.26, "mean", MEAN, "mean map"),
    (0.0, "maximum", MAXIMUM, "max map"),
    (0.26, "cam", CAM, "CAM"),
)
"""Where a map's bar stands in its row, its name in the report, its colour, its name on the page."""


@dataclass(frozen=True)
class Plot:
    """A drawing that stands in a page."""

    svg: Markup
    caption: str


def reliability_plot(told: dict[str, Any]) -> Plot:
    """Confidence against accuracy; the area of a dot is its number of films."""
    with plotting():
        figure, axes = _square("probability of the answer", "share of right answers")
        bins = [one for one in told["calibration"]["bins"] if one["films"]]
        most = max(one["films"] for one in bins)
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle="--", label="perfect")
        axes.plot([b["confidence"] for b in bins], [b["accuracy"] for b in bins], color=MEAN, linewidth=1)
        areas = [20 + 180 * one["films"] / most for one in bins]
        axes.scatter(
            [b["confidence"] for b in bins],
            [b["accuracy"] for b in bins],
            areas,
            color=MEAN,
            clip_on=False,
            label="model",
        )
        axes.legend(loc="upper left", markerscale=0.5)
        points = "; ".join(f"{shown(b['confidence'])}: {shown(b['accuracy'])} of {b['films']}" for b in bins)
        alt = f"Reliability plot. Mean probability of the answer, and share of right answers: {points}."
        return Plot(inline(figure, "reliability", alt), "A larger dot stands for more films.")


def roc_plot(told: dict[str, Any], readings: Readings) -> Plot:
    """One curve for each class against all others."""
    from sklearn.metrics import roc_curve  # slow to import

    truth = true_classes(readings)
    with plotting():
        figure, axes = _square("false alarms among the others", "share of the class found")
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle="--")
        drawn = [(place, one) for place, one in enumerate(told["classification"]["classes"]) if one["auc"] is not None]
        for place, one in drawn:
            alarms, found, _ = roc_curve(truth == place, readings.probabilities[:, place])
            label = f"{_short(one['name'])}, AUC {shown(one['auc'])}"
            axes.plot(alarms, found, color=colour(place), linestyle=_DASHES[place // 7 % 4], linewidth=1.6, label=label)
        if drawn:
            axes.legend(loc="lower right", fontsize=8 if len(drawn) < 10 else 6)
        areas = "; ".join(f"{one['name']} {shown(one['auc'])}" for _, one in drawn) or "none can be drawn"
        return Plot(inline(figure, "roc", f"ROC curves, one class against the others. Area under each: {areas}."), "")


def pointing_plot(told: dict[str, Any]) -> Plot | None:
    """Hits by each map for each concept, with blind pointing beside them; None where nothing was pointed at."""
    place = told["localisation"]
    if place["per_pair"] is None:
        return None
    rows = [(one["title"], one["pointing"]) for one in place["concepts"] if one["pointing"] is not None]
    rows += [("All pairs", place["per_pair"]), ("All films", place["per_film"])]
    with plotting():
        figure, axes = _rows([title for title, _ in rows], 0.62)
        at = np.arange(len(rows))
        _draw_hits(axes, [row for _, row in rows])
        axes.scatter(
            [row["chance"] for _, row in rows], at, 60, marker="|", color=CHANCE, zorder=4, label="random point"
        )
        known = [(row["fixed"], y) for y, (_, row) in zip(at, rows, strict=True) if row["fixed"] is not None]
        axes.scatter(
            [x for x, _ in known], [y for _, y in known], 34, marker="D", color=FIXED, zorder=5, label="fixed point",
            edgecolors="white", linewidths=0.6,
        )  # fmt: skip
        axes.set_xlim(0, 1)
        axes.set_xlabel("share of hits; the thin lines are 95 % intervals")
        figure.legend(loc="outside upper center", ncols=5, handletextpad=0.4, columnspacing=0.8, fontsize=8)
        return Plot(inline(figure, "pointing", f"Pointing game. {_pointing_words(rows)}"), "")


def _draw_hits(axes: "Axes", rows: list[dict[str, Any]]) -> None:
    for shift, kind, tone, label in _MAPS:
        places = [place for place, row in enumerate(rows) if row[kind] is not None]
        rates = [rows[place][kind] for place in places]
        if rates:
            axes.barh(
                [place + shift for place in places], [rate["share"] for rate in rates], 0.24, color=tone, label=label,
                xerr=_whiskers(rates), ecolor=INK,
            )  # fmt: skip


def dispersion_plot(told: dict[str, Any]) -> Plot | None:
    """Cosine of prototypes within each concept; None where concepts have one prototype each."""
    spread = told["dispersion"]
    if spread["within"] is None:
        return None
    titles = [one["title"] for one in told["detection"]["concepts"]]
    with plotting():
        figure, axes = _rows(titles, 0.36)
        axes.barh(np.arange(len(titles)), spread["per_concept"], 0.6, color=MEAN, label="within the concept")
        lines = [
            (spread["paper_collapse"], FIXED, "--", "the paper's collapse"),
            (spread["between"], INK, ":", "between"),
        ]
        for value, tone, dash, label in lines:
            if value is not None:
                axes.axvline(value, color=tone, linestyle=dash, label=f"{label} {shown(value)}")
        axes.set_xlim(min(0.0, *spread["per_concept"], spread["between"] or 0.0), 1.02)
        axes.set_xlabel("mean cosine of pairs of prototypes")
        figure.legend(loc="outside upper center", ncols=3, handletextpad=0.4, columnspacing=1.2, fontsize=8)
        words = "; ".join(f"{t} {shown(c)}" for t, c in zip(titles, spread["per_concept"], strict=True))
        return Plot(inline(figure, "dispersion", f"Mean cosine of the prototypes within each concept: {words}."), "")


def _square(across: str, up: str) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=across, ylabel=up, aspect="equal")
    return figure, axes


def _rows(titles: list[str], height: float) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(_WIDE, 1.1 + height * len(titles)), layout="constrained")
    axes = figure.subplots()
    axes.set_yticks(range(len(titles)), [_short(title) for title in titles])
    axes.set_ylim(len(titles) - 0.5, -0.5)
    return figure, axes


def _whiskers(rates: list[dict[str, Any]]) -> np.ndarray:
    """How far each interval reaches to the left and right of its bar's end."""
    bounds = [one["interval"] or {"low": one["share"], "high": one["share"]} for one in rates]
    reach = [(r["share"] - b["low"], b["high"] - r["share"]) for r, b in zip(rates, bounds, strict=True)]
    return np.maximum(np.array(reach).T, 0.0)  # a resampled interval may, by a hair, lie beside its figure


def _pointing_words(rows: list[tuple[str, dict[str, Any]]]) -> str:
    return " ".join(
        f"{title}: mean map {shown(row['mean']['share'])}, max map {shown(row['maximum']['share'])}, "
        f"CAM {shown(row['cam'] and row['cam']['share'])}, "
        f"random point {shown(row['chance'])}, fixed point {shown(row['fixed'])}."
        for title, row in rows
    )


def _short(name: str) -> str:
    return name if len(name) <= _SHORT else name[: _SHORT - 1] + "…"
