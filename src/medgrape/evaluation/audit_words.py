"""What an audit found, in words: which gaps are flagged, which way, and what to beware of."""

from collections.abc import Iterator, Sequence

from medgrape.evaluation.audit_counting import AuditTable, GroupFigure, GroupFigures
from medgrape.evaluation.statistics import LEVEL
from medgrape.evaluation.subgroup_figures import Measure
from medgrape.evaluation.subgroup_gaps import FEWEST, Gap
from medgrape.evaluation.verdicts import BETTER, UNCLEAR, WORSE, Verdict, shown

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
