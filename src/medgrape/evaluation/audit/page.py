"""HTML page of an audit: one file that loads nothing from elsewhere, with a plot for each table."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medgrape.concepts import colour
from medgrape.evaluation.audit.summary import verdict
from medgrape.evaluation.page import render_report
from medgrape.evaluation.plots import INK, Plot, inline, label_rows, plotting, shorten
from medgrape.evaluation.summary import Verdict, format_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Series = tuple[str, str, str, str, str, float]
_DRAWN: tuple[
    Series, ...
] = (  # figure, label, its baseline, marker, colour, and the offset within the row of its group
    ("macro_f1", "macro-F1", "majority", "o", colour(4), -0.17),
    ("pointing", "pointing, mean map", "fixed", "s", colour(5), 0.17),
)
_SHORT = 30  # letters of a name that fit beside a plot


def audit_page(report: dict[str, Any]) -> str:
    """Render the page. All its figures come from ``report``, the content of ``audit.json``."""
    measures = {measure["name"]: measure for measure in report["measures"]}

    def verdict_of(figure: dict[str, Any]) -> Verdict:
        gap = figure["gap"]
        return verdict(measures[figure["measure"]]["best"], gap["difference"], flagged=gap["flagged"])

    plots = [groups_plot(report, table) for table in range(len(report["tables"]))]
    return render_report("audit.html", report, measures=measures, verdict_of=verdict_of, plots=plots)


def groups_plot(report: dict[str, Any], table: int) -> Plot | None:
    """Plot macro-F1 and pointing of each group with their intervals; None for a single group."""
    rows = [report["whole"], *report["tables"][table]["groups"]]
    if len(rows) < 3:
        return None
    with plotting():
        from matplotlib.figure import Figure  # slow to import

        figure = Figure(figsize=(5.8, 1.2 + 0.42 * len(rows)), layout="constrained")
        axes = figure.subplots()
        for series in _DRAWN:
            _draw(axes, rows, series)
        label_rows(axes, [shorten(row["name"], _SHORT) for row in rows])
        axes.set(xlim=(-0.02, 1.02), xlabel="the thin lines are 95 % intervals")
        axes.axhline(0.5, color=INK, linewidth=0.5)
        handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        labels = sorted(handles, key=lambda label: (":" in label, label))  # the model first, then the baselines
        figure.legend(
            [handles[label] for label in labels], labels, loc="outside upper center", ncols=2, handletextpad=0.4,
            fontsize=8,
        )  # fmt: skip
        title = report["tables"][table]["title"]
        words = " ".join(_row_in_words(row) for row in rows)
        return Plot(inline(figure, f"groups{table}", f"Macro-F1 and pointing by {title}. {words}"), "")


def _draw(axes: "Axes", rows: list[dict[str, Any]], series: Series) -> None:
    """Draw filled markers with whiskers for the model, hollow ones for the baseline."""
    name, label, baseline, marker, tone, offset = series
    figures = [_find_figure(row, name) for row in rows]
    known = [(row + offset, figure) for row, figure in enumerate(figures) if figure is not None]
    if not known:
        return
    values = np.array([figure["value"] for _, figure in known])
    bounds = np.array([(figure["interval"]["low"], figure["interval"]["high"]) for _, figure in known])
    axes.errorbar(
        values, [y for y, _ in known], xerr=np.abs(bounds.T - values), fmt=marker, color=tone, ecolor=INK,
        elinewidth=0.9, markersize=5.5, label=label,
    )  # fmt: skip
    trivial = [(y, t) for y, figure in known for t in figure["trivial"] if t["name"] == baseline]
    if trivial:
        axes.plot(
            [t["value"] for _, t in trivial], [y for y, _ in trivial], marker, color=tone, markerfacecolor="none",
            markersize=5.5, label=f"{label}: {trivial[0][1]['title']}",
        )  # fmt: skip


def _find_figure(row: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((f for f in row["figures"] if f["measure"] == name and f["value"] is not None), None)


def _row_in_words(row: dict[str, Any]) -> str:
    figures = {name.replace("_f1", "-F1"): _find_figure(row, name) for name, *_ in _DRAWN}
    words = (f"{name} {format_figure(figure['value']) if figure else 'too few'}" for name, figure in figures.items())
    return f"{row['name']}: {', '.join(words)}."
