"""The results of an audit in plain sentences: headline, flagged gaps and warnings."""

from collections.abc import Iterator, Sequence

from medgrape.evaluation.audit.group_figures import AuditTable, GroupFigure
from medgrape.evaluation.audit.resampling import FEWEST, Gap, Measure
from medgrape.evaluation.statistics import LEVEL
from medgrape.evaluation.summary import BETTER, UNCLEAR, WORSE, Verdict, format_figure

HIGHER, LOWER = Verdict("unclear", "▲", "higher"), Verdict("unclear", "▼", "lower")  # of figures that are best at zero


def verdict(best: str, difference: float, *, flagged: bool) -> Verdict:
    """Return the direction of a gap, if it is flagged."""
    if not flagged:
        return UNCLEAR
    if best == "zero":
        return HIGHER if difference > 0 else LOWER
    return BETTER if (difference > 0) == (best == "high") else WORSE


def headline(gaps: int, flagged: int, still_flagged: int) -> tuple[str, ...]:
    """Return the number of flagged gaps, beside the number expected by chance."""
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
    """Return a sentence for each flagged gap; of two groups that together hold all films, for the worse one."""
    by_name = {measure.name: measure for measure in measures}
    sentences: dict[object, tuple[bool, str]] = {}
    for table in tables:
        for group in table.groups:
            for figure in group.figures:
                measure, gap = by_name[figure.measure], figure.gap
                if gap is None or not gap.flagged:
                    continue
                key = (table.by, None if len(table.groups) == 2 else group.name, measure)
                if key not in sentences or verdict(measure.best, gap.difference, flagged=True) is WORSE:
                    sentence = _sentence(f"{table.title} {group.name}", figure, measure, gap)
                    sentences[key] = (gap.still_flagged, sentence)
    return tuple(sentence for _, sentence in sorted(sentences.values(), key=lambda item: not item[0]))


def cautions(measures: Sequence[Measure], tables: Sequence[AuditTable]) -> Iterator[str]:
    """Yield what was not compared, and why."""
    for table in tables:
        if not table.known:
            yield f"No film has a known {table.title}."
        elif len(table.groups) == 1:
            yield f"All films are of one {table.title}, {table.groups[0].name}: there is nothing to compare."
    small = [
        f"{table.title} {group.name} ({group.patients})"
        for table in tables
        for group in table.groups
        if group.patients < FEWEST
    ]
    if small:
        yield f"Fewer than {FEWEST} patients, so neither figures nor flags: {'; '.join(small)}."
    if not any(measure.name == "pointing" for measure in measures):
        yield "No film that was read has a box, so nothing can be said on where the maps point."


def _sentence(group: str, figure: GroupFigure, measure: Measure, gap: Gap) -> str:
    word = verdict(measure.best, gap.difference, flagged=True).word
    low, high = (format_figure(bound) for bound in sorted((abs(gap.interval.low), abs(gap.interval.high))))
    return (
        f"{group}: {measure.title} {format_figure(figure.value)}, in all other films {format_figure(gap.rest)}; "
        f"{word} by {format_figure(abs(gap.difference))} (95 % interval {low} to {high}), "
        f"{'also after' if gap.still_flagged else 'but not after'} Holm's correction."
    )
