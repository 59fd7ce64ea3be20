"""The tables of real films: each figure as mean over the seeds, beside its trivial baseline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medgrape.paper.recipes import Variant
from medgrape.paper.reproduce import software_versions
from medgrape.paper.tables import Column, Line, Table, Value, as_markdown, spread

ALL = "all"  # in place of a concept's name: film-concept pairs of all concepts together
_COSTS = {"minutes": ("seconds", 60), "peak_gib": ("peak_bytes", 2**30)}


@dataclass(frozen=True)
class Summary:
    """One variant over the seeds that have a result."""

    variant: Variant
    results: Mapping[int, Mapping[str, Any]]  # content of the result file of each seed

    @property
    def missing(self) -> tuple[int, ...]:
        """Seeds of the variant without a result."""
        return tuple(seed for seed in self.variant.seeds if seed not in self.results)

    @property
    def count(self) -> str:
        """Number of seeds, with those that are missing."""
        if not self.missing:
            return str(len(self.results))
        absent = ", ".join(map(str, self.missing))
        return f"{len(self.results)} of {len(self.results) + len(self.missing)} (missing: seed {absent})"

    def figure(self, name: str) -> Value | None:
        """Return the mean over the seeds for which the figure is defined; None if there is no such seed."""
        if name in _COSTS:
            key, unit = _COSTS[name]
            return spread([float(result[key]) / unit for result in self.results.values()])
        return spread([result["figures"].get(name) for result in self.results.values()])

    def names(self) -> tuple[str, ...]:
        """Return the names of all figures that some seed has."""
        names = (name for result in self.results.values() for name in result["figures"])
        return tuple(dict.fromkeys((*names, *_COSTS)))

    def to_json(self) -> dict[str, Any]:
        """Return the means over the seeds, and the result of each seed."""
        values = {name: self.figure(name) for name in self.names()}
        return {
            **self.variant.model_dump(mode="json"),
            "n": len(self.results),
            "missing": list(self.missing),
            "figures": {
                name: None if value is None else {"mean": value.mean, "sd": value.sd, "se": value.se}
                for name, value in values.items()
            },
            "by_seed": {str(seed): result for seed, result in self.results.items()},
        }


_DIGITS = {"minutes": 1, "peak_gib": 1, "pointing.{}.pairs": 0, "present.{}": 0}


def _columns(titles: Mapping[str, str]) -> tuple[Column, ...]:
    return tuple(Column(key, title, digits=_DIGITS.get(key, 3)) for title, key in titles.items())


BOXED = _columns({
    "mean map": "pointing.all.mean", "max map": "pointing.all.max", "CAM": "pointing.all.cam",
    "random point": "pointing.all.chance", "fixed prior": "pointing.all.fixed",
    "safety check, balanced": "safety.balanced", "majority answer, balanced": "majority.balanced",
    "active or obsolete, AUC (chance 0.5)": "telling_apart", "1 film, share of full": "one_shot",
    "minutes": "minutes", "peak GiB": "peak_gib",
})  # fmt: skip
BOXED_CONCEPT = _columns({
    "pairs": "pointing.{}.pairs", "mean map": "pointing.{}.mean", "max map": "pointing.{}.max",
    "CAM": "pointing.{}.cam", "random point": "pointing.{}.chance", "fixed prior": "pointing.{}.fixed",
    "caught": "safety.{}.caught", "false alarms": "safety.{}.false_alarms",
    "majority: caught": "majority.{}.caught", "majority: false alarms": "majority.{}.false_alarms",
})  # fmt: skip
LABELLED = _columns({
    "macro-F1": "macro_f1", "majority answer, macro-F1": "majority.macro_f1", "mean AUC (chance 0.5)": "auc.all",
    "minutes": "minutes", "peak GiB": "peak_gib",
})  # fmt: skip
LABELLED_CONCEPT = _columns({"films that show it": "present.{}", "AUC (chance 0.5)": "auc.{}"})
FILMS = tuple(Column(f"films.{split}", split, digits=0) for split in ("train", "val", "test"))
INTRODUCTION = """\
# Real films, run again

Made by `medgrape reproduce real-films`. Each figure is the mean ± standard deviation over n seeds; each seed trains
another model and tests it on other patients, a fifth of them. Pointing is counted by film and finding. The safety check
is calibrated for balance on validation films; balanced is the mean over findings of (caught + 1 - false alarms) / 2,
which is 0.5 for every answer that looks at no film; caught and false alarms of one finding are of the claims that name
it. Minutes count every stage, also one that another row had learnt already.
"""


def page(summaries: Sequence[Summary]) -> str:
    """Return all tables as Markdown, each figure beside its trivial baseline."""
    boxed, labelled = ([summary for summary in summaries if summary.variant.data == data] for data in ("tbx11k", "nih"))
    return "\n".join([
        INTRODUCTION,
        *_section("TBX11K", boxed, BOXED, BOXED_CONCEPT),
        *_section("NIH ChestX-ray14", labelled, LABELLED, LABELLED_CONCEPT),
        *_remarks(summaries),
    ])  # fmt: skip


def _section(
    title: str, summaries: Sequence[Summary], columns: tuple[Column, ...], concept_columns: tuple[Column, ...]
) -> Iterator[str]:
    if not summaries:
        return

    def table(columns: tuple[Column, ...], rows: Sequence[Summary]) -> str:
        lines = [
            Line(row.variant.title, {"count": row.count, **{column.key: row.figure(column.key) for column in columns}})
            for row in rows
        ]
        return as_markdown(Table("variant", (Column("count", "n"), *columns), tuple(lines)))

    concepts = [line for summary in summaries for line in _concept_lines(summary, concept_columns)]
    yield f"## {title}\n"
    yield table(columns, summaries)
    yield f"### {title}, by finding\n"
    yield as_markdown(Table("variant", (Column("finding", "finding"), *concept_columns), tuple(concepts)))
    yield f"### {title}, films\n"
    yield table(FILMS, [summary for summary in summaries if summary.results])


def _concept_lines(summary: Summary, columns: tuple[Column, ...]) -> Iterator[Line]:
    """A line for each concept for which the variant has the figure of the first column."""
    before, after = columns[0].key.split("{}")
    for name in summary.names():
        concept = name.removeprefix(before).removesuffix(after)
        if name == f"{before}{concept}{after}" and concept != ALL:
            figures = {column.key: summary.figure(column.key.format(concept)) for column in columns}
            yield Line(summary.variant.title, {"finding": concept, **figures})


def _remarks(summaries: Sequence[Summary]) -> Iterator[str]:
    """Pictures, the software, and models that could not be calibrated."""
    results = [(summary.variant, seed, result) for summary in summaries for seed, result in summary.results.items()]
    for variant, seed, result in results:
        for kind, drawn in result["pictures"].items():
            if drawn:
                films = ", ".join(f"{pair['film']} ({pair['concept']})" for pair in drawn)
                yield f"![{variant.title}, {kind}](pictures/{variant.name}-{kind}.png)\n"
                yield f"{variant.title}, seed {seed}, {kind}, drawn by lot: {films}.\n"
    versions = software_versions(result for _, _, result in results)
    if versions:
        yield f"Made by software {', '.join(versions)}; which row by which is in real-films.json.\n"
    for variant, seed, result in results:
        if result["uncalibrated"] and variant.data == "tbx11k":
            yield f"{variant.title}, seed {seed}: not calibrated. {result['uncalibrated']}\n"
