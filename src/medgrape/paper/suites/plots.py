"""Plots of the report, in colours that colour-blind readers can tell apart."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from medgrape.concepts import colour
from medgrape.evaluation.plots import INK, Plot, inline, plotting
from medgrape.paper.tables import Column, Line, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS, _DASHES = "osD^vPX", ("-", "--", "-.", ":")


def dots_plot(name: str, lines: Sequence[Line], column: Column) -> tuple[Plot, ...]:
    """Return a plot with a dot for each row and its spread over the seeds; trivial baselines are lines."""
    values = [(line, cell) for line in lines if isinstance(cell := line.ours.get(column.key), Value)]
    rows = [(line.title, value) for line, value in values if not line.trivial]
    trivial = [(line.title, value) for line, value in values if line.trivial]
    if not rows:
        return ()
    with plotting():
        figure, axes = _axes(1.3 + 0.34 * len(rows))
        for place, (_, value) in enumerate(rows):
            axes.errorbar(value.mean, place, xerr=value.sd or 0.0, fmt="o", color=colour(4), ecolor=INK, capsize=3)
        for place, (title, value) in enumerate(trivial):
            axes.axvline(value.mean, color=colour(5), linestyle=_DASHES[1 + place % 3], label=title)
        axes.set_yticks(range(len(rows)), [title for title, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, 1.02)
        axes.set_xlabel(f"{column.title}; whiskers: standard deviation over seeds")
        if trivial:
            figure.legend(loc="outside upper center", ncols=2, fontsize=8)
        words = "; ".join(f"{title} {value.text}" for title, value in (*rows, *trivial))
        return (Plot(inline(figure, f"dots-{name}", f"{column.title}: {words}."), ""),)


def shots_plot(name: str, lines: Sequence[Line], columns: Sequence[Column]) -> tuple[Plot, ...]:
    """Return a plot of pointing by number of films, a curve for each finding, with the fixed point as a bar."""
    shots = [line for line in lines if line.key.isdigit() or line.key == "full"]
    fixed = next((line for line in lines if line.key == "fixed"), None)
    if not columns or not shots:
        return ()
    with plotting():
        figure, axes = _axes(3.4)
        for place, column in enumerate(columns):
            points = [
                (at, cell.mean) for at, line in enumerate(shots) if isinstance(cell := line.ours.get(column.key), Value)
            ]
            style: dict[str, Any] = {"color": colour(place), "linestyle": _DASHES[place // 7 % 4]}
            axes.plot(*zip(*points, strict=True), marker=_MARKS[place % 7], label=column.title, **style)
            cell = None if fixed is None else fixed.ours.get(column.key)
            if isinstance(cell, Value):
                axes.plot([len(shots) - 0.6, len(shots) - 0.4], [cell.mean] * 2, linewidth=4, **style)
        axes.set_xticks(
            range(len(shots)), [line.title.replace("the sentence alone", "text") for line in shots], fontsize=8
        )
        axes.set_ylim(0, 1.02)
        axes.set_ylabel("pointing; short bars: one fixed point", fontsize=8)
        figure.legend(loc="outside upper center", ncols=2, fontsize=8)
        words = "; ".join(f"{c.title}: " + ", ".join(_text(line, c) for line in shots) for c in columns)
        return (Plot(inline(figure, f"shots-{name}", f"Pointing by number of films. {words}."), ""),)


FiguresByTitle = Sequence[tuple[str, dict[str, Any]]]


def histogram_plot(rows: FiguresByTitle) -> tuple[Plot, ...]:
    """Return the distributions of the cosines of prototypes with their text and with each other."""
    plots = []
    for name, title, axis, paper in (
        ("anchor", "prototype and its text", "cosine of a prototype and its text", 0.995),
        ("within", "prototypes of one finding", "cosine of two prototypes of one finding", 0.990),
    ):
        histograms = [(row, figures[key]) for row, figures in rows if (key := f"histogram.{name}") in figures]
        if not histograms:
            continue
        with plotting():
            figure, axes = _axes(3.0)
            means = []
            for place, (row, shares) in enumerate(histograms):
                edges = np.linspace(-1, 1, len(shares) + 1)
                style: dict[str, Any] = {"color": colour((4, 0, 2, 5)[place % 4]), "linestyle": _DASHES[place % 4]}
                axes.stairs(shares, edges, linewidth=1.8, label=row, **style)
                means.append(f"{row}: mean {np.dot(shares, (edges[1:] + edges[:-1]) / 2):.2f}")
            axes.axvline(paper, color=INK, linewidth=0.8, linestyle=":", label=f"the paper's mean, {paper:.3f}")
            axes.set(xlabel=axis, ylabel="share")
            figure.legend(loc="outside upper center", ncols=2, fontsize=8)
            plots.append(Plot(inline(figure, f"histogram-{name}", f"Cosines of {title}. {'; '.join(means)}."), ""))
    return tuple(plots)


def curves_plot(rows: FiguresByTitle) -> tuple[Plot, ...]:
    """Return the probability of the class while pixels are removed, or revealed, the most salient first."""
    plots = []
    rows = [(row, figures) for row, figures in rows if "own.deletion.curve" in figures]
    for kind, change in (("deletion", "removed"), ("insertion", "revealed")) if rows else ():
        with plotting():
            figure, axes = _axes(3.4)
            for place, (row, figures) in enumerate(rows):
                for order, dash, label in (("own", "-", row), ("random", ":", None)):
                    curve = figures[f"{order}.{kind}.curve"]
                    axes.plot(np.linspace(0, 1, len(curve)), curve, color=colour(place), linestyle=dash, label=label)
            axes.set(xlabel=f"share of pixels {change}; dotted: in random order", ylabel="probability of the class")
            axes.set_ylim(0, 1.02)
            figure.legend(loc="outside upper center", ncols=3, fontsize=8)
            areas = "; ".join(
                f"{row} {figures[f'own.{kind}']:.3f}, random {figures[f'random.{kind}']:.3f}" for row, figures in rows
            )
            alt = f"{kind.capitalize()}: area under each curve: {areas}."
            plots.append(Plot(inline(figure, f"curves-{kind}", alt), ""))
    return tuple(plots)


def _axes(height: float) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(6.4, height), layout="constrained")
    return figure, figure.subplots()


def _text(line: Line, column: Column) -> str:
    cell = line.ours.get(column.key)
    return f"{line.title} {cell.text}" if isinstance(cell, Value) else f"{line.title} none"
