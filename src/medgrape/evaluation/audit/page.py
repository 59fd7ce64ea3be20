"""The audit as one page that opens without a network, with a plot for each attribute."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from medgrape.concepts import colour
from medgrape.evaluation.audit.counting import AuditTable, GroupFigure, GroupFigures
from medgrape.evaluation.audit.sampling import FEWEST, Gap, Measure
from medgrape.evaluation.page import rendered
from medgrape.evaluation.plots import INK, Plot, inline, plotting
from medgrape.evaluation.statistics import LEVEL
from medgrape.evaluation.verdicts import BETTER, UNCLEAR, WORSE, Verdict, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HIGHER, LOWER = Verdict("unclear", "▲", "higher"), Verdict("unclear", "▼", "lower")
"""Of a figure that is best at zero neither is better."""


def verdict(best: str, difference: float, *, flagged: bool) -> Verdict:
    """Which way a gap goes, where it surely goes one."""
    if not flagged:
        return UNCLEAR
    if best == "zero":
        return HIGHER if difference > 0 else LOWER
    return BETTER if (difference > 0) == (best == "high") else WORSE


def headline(gaps: int, flagged: int, still_flagged: int) -> tuple[str, ...]:
    """How many gaps there are, and how many would be there by luck alone."""
    if not gaps:
        return (f"No gap could be judged: in no group and in all other films are there {FEWEST} patients each.",)
    luck = gaps * (1 - LEVEL)
    expected = f"about {luck:.0f}" if luck >= 1 else "less than one"
    return (
        f"{gaps:,} gaps between a group and all other films were judged: {flagged:,} have a 95 % interval that "
        f"excludes zero, where luck alone would give {expected}; {still_flagged:,} of them "
        "also after Holm's correction for having looked at so many.",
    )


def flagged_gaps(measures: Sequence[Measure], tables: Sequence[AuditTable]) -> tuple[str, ...]:
    """A sentence for each flagged gap; of two groups that share all films between them, for the one that is worse."""
    named = {one.name: one for one in measures}
    told: dict[object, tuple[bool, str]] = {}
    for table, group, figure, gap in _flagged(tables):
        measure = named[figure.measure]
        key = (table.by, None if len(table.groups) == 2 else group.name, measure)
        if key not in told or verdict(measure.best, gap.difference, flagged=True) is WORSE:
            told[key] = (gap.still_flagged, _sentence(f"{table.title} {group.name}", figure, measure, gap))
    return tuple(sentence for _, sentence in sorted(told.values(), key=lambda one: not one[0]))


def cautions(measures: Sequence[Measure], tables: Sequence[AuditTable]) -> tuple[str, ...]:
    """What was not compared, and why."""
    told = []
    for table in tables:
        if not table.known:
            told.append(f"No film has a known {table.title}.")
        elif len(table.groups) == 1:
            told.append(f"All films are of one {table.title}, {table.groups[0].name}: there is nothing to compare.")
    groups = [(table, one) for table in tables for one in table.groups if one.patients < FEWEST]
    if groups:
        few = "; ".join(f"{table.title} {one.name} ({one.patients})" for table, one in groups)
        told.append(f"Fewer than {FEWEST} patients, so neither figures nor flags: {few}.")
    if not any(one.name == "pointing" for one in measures):
        told.append("No film that was read has a box, so nothing can be said on where the maps point.")
    return tuple(told)


def _flagged(tables: Sequence[AuditTable]) -> Iterator[tuple[AuditTable, GroupFigures, GroupFigure, Gap]]:
    for table in tables:
        for group in table.groups:
            for figure in group.figures:
                if figure.gap is not None and figure.gap.flagged:
                    yield table, group, figure, figure.gap


def _sentence(where: str, figure: GroupFigure, measure: Measure, gap: Gap) -> str:
    way = verdict(measure.best, gap.difference, flagged=True).word
    low, high = sorted((abs(gap.interval.low), abs(gap.interval.high)))
    stands = "also after" if gap.still_flagged else "but not after"
    return (
        f"{where}: {measure.title} {shown(figure.value)}, in all other films {shown(gap.rest)}; "
        f"{way} by {shown(abs(gap.difference))} (95 % interval {shown(low)} to {shown(high)}), {stands} "
        "Holm's correction."
    )


_DRAWN = (
    ("macro_f1", "majority", "o", colour(4), -0.17),
    ("pointing", "fixed", "s", colour(5), 0.17),
)
"""Figure, its blind answer, marker, colour, and where it stands in the row of its group."""
_SHORT = 30
"""Letters of a name that fit beside a plot."""


def audit_page(told: dict[str, Any]) -> str:
    """The whole page. Every figure on it is looked up in ``told``, the same plain data that ``audit.json`` holds."""
    measures = {one["name"]: one for one in told["measures"]}

    def judged(figure: dict[str, Any]) -> Verdict:
        gap = figure["gap"]
        return verdict(measures[figure["measure"]]["best"], gap["difference"], flagged=gap["flagged"])

    plots = [groups_plot(told, place) for place in range(len(told["tables"]))]
    return rendered("audit.html", told, measures=measures, judged=judged, plots=plots)


def groups_plot(told: dict[str, Any], place: int) -> Plot | None:
    """Macro-F1 and pointing of each group as dots with whiskers; None where no group has any of it."""
    rows = [told["whole"], *told["tables"][place]["groups"]]
    if len(rows) < 3:  # of one group alone there is nothing to compare
        return None
    with plotting():
        from matplotlib.figure import Figure  # slow to import

        figure = Figure(figsize=(5.8, 1.2 + 0.42 * len(rows)), layout="constrained")
        axes = figure.subplots()
        for name, blind, marker, tone, shift in _DRAWN:
            _draw(axes, [_found(row, name) for row in rows], blind, marker, tone, shift)
        axes.set_yticks(range(len(rows)), [_short(row["name"]) for row in rows])
        axes.set(ylim=(len(rows) - 0.5, -0.5), xlim=(-0.02, 1.02), xlabel="the thin lines are 95 % intervals")
        axes.axhline(0.5, color=INK, linewidth=0.5)
        figure.legend(*_legend(axes), loc="outside upper center", ncols=2, handletextpad=0.4, fontsize=8)
        title = told["tables"][place]["title"]
        words = " ".join(_row_words(row) for row in rows)
        return Plot(inline(figure, f"groups{place}", f"Macro-F1 and pointing by {title}. {words}"), "")


def _draw(axes: "Axes", figures: list[dict[str, Any] | None], blind: str, marker: str, tone: str, shift: float) -> None:
    """Filled markers with whiskers for the model, hollow ones for the blind answer."""
    known = [(place + shift, one) for place, one in enumerate(figures) if one is not None]
    if not known:
        return
    values = np.array([one["value"] for _, one in known])
    reach = np.array([(one["interval"]["low"], one["interval"]["high"]) for _, one in known])
    label = {"macro_f1": "macro-F1", "pointing": "pointing, mean map"}[known[0][1]["measure"]]
    axes.errorbar(
        values, [y for y, _ in known], xerr=np.abs(reach.T - values), fmt=marker, color=tone, ecolor=INK,
        elinewidth=0.9, markersize=5.5, label=label,
    )  # fmt: skip
    trivial = [(y, t) for y, one in known for t in one["trivial"] if t["name"] == blind]
    if trivial:
        axes.plot(
            [t["value"] for _, t in trivial], [y for y, _ in trivial], marker, color=tone, markerfacecolor="none",
            markersize=5.5, label=f"{label}: {trivial[0][1]['title']}",
        )  # fmt: skip


def _legend(axes: "Axes") -> tuple[list[Any], list[str]]:
    """The model first, then the blind answers, figure by figure."""
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda place: (":" in labels[place], labels[place]))
    return [handles[place] for place in order], [labels[place] for place in order]


def _found(row: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((one for one in row["figures"] if one["measure"] == name and one["value"] is not None), None)


def _row_words(row: dict[str, Any]) -> str:
    told = [(name, _found(row, name)) for name, *_ in _DRAWN]
    words = (f"{name.replace('_f1', '-F1')} {'too few' if one is None else shown(one['value'])}" for name, one in told)
    return f"{row['name']}: {', '.join(words)}."


def _short(name: str) -> str:
    return name if len(name) <= _SHORT else name[: _SHORT - 1] + "…"
