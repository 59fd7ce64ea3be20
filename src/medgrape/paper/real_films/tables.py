"""The tables of real films as one page: each figure with what the trivial answer gets on the same films beside it."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medgrape.evaluation.few_shot import Spread
from medgrape.paper.real_films.figures import ALL
from medgrape.paper.real_films.row import Row
from medgrape.paper.real_films.variants import Variant

SECONDS_A_MINUTE, BYTES_A_GIB = 60, 2**30


@dataclass(frozen=True)
class Summary:
    """One variant, over the seeds of which there is a result."""

    variant: Variant
    results: Mapping[int, Mapping[str, Any]]
    """Seed to what its row found."""

    @property
    def missing(self) -> tuple[int, ...]:
        """Seeds of the variant that were not run yet."""
        return tuple(seed for seed in self.variant.seeds if seed not in self.results)

    @property
    def count(self) -> str:
        """How many seeds the figures rest on; fewer than asked for is said."""
        if not self.missing:
            return str(len(self.results))
        absent = ", ".join(map(str, self.missing))
        return f"{len(self.results)} of {len(self.results) + len(self.missing)} (missing: seed {absent})"

    def figure(self, name: str) -> Spread | None:
        """Over the seeds for which it is defined; None where it is for none."""
        found = [self._of(result, name) for result in self.results.values()]
        values = [value for value in found if value is not None]
        return Spread.of(values) if values else None

    def names(self) -> tuple[str, ...]:
        """Every figure that some seed has."""
        found = (name for result in self.results.values() for name in result["figures"])
        return tuple(dict.fromkeys((*found, *_COSTS)))

    def _of(self, result: Mapping[str, Any], name: str) -> float | None:
        if name in _COSTS:
            key, unit = _COSTS[name]
            return float(result[key]) / unit
        value: float | None = result["figures"].get(name)
        return value

    def to_json(self) -> dict[str, Any]:
        """Plain data: the spreads, and what each seed found."""
        spreads = {name: self.figure(name) for name in self.names()}
        return {
            **self.variant.model_dump(mode="json"),
            "n": len(self.results),
            "missing": list(self.missing),
            "figures": {name: None if one is None else one.to_json() for name, one in spreads.items()},
            "by_seed": {str(seed): result for seed, result in self.results.items()},
        }


_COSTS = {"minutes": ("seconds", SECONDS_A_MINUTE), "peak_gib": ("peak_bytes", BYTES_A_GIB)}


def summaries(*rows: Sequence[Row]) -> tuple[Summary, ...]:
    """What there is of each variant, of these rows alone: figures of other settings or films count nowhere."""
    of_variant: dict[str, dict[int, Row]] = {}
    for row in itertools.chain(*rows):
        of_variant.setdefault(row.variant.name, {})[row.seed] = row
    found = []
    for by_seed in of_variant.values():
        told = {seed: by_seed[seed].found() for seed in sorted(by_seed)}
        variant = next(iter(by_seed.values())).variant
        found.append(Summary(variant, {seed: one for seed, one in told.items() if one is not None}))
    return tuple(found)


@dataclass(frozen=True)
class Column:
    """A heading and the figure below it; ``{}`` in its name stands for a concept."""

    heading: str
    figure: str
    digits: int = 3


COSTS = (Column("minutes", "minutes", 1), Column("peak GiB", "peak_gib", 1))
BOXED = (
    Column("mean map", f"pointing.{ALL}.mean"),
    Column("max map", f"pointing.{ALL}.max"),
    Column("CAM", f"pointing.{ALL}.cam"),
    Column("random point", f"pointing.{ALL}.chance"),
    Column("fixed prior", f"pointing.{ALL}.fixed"),
    Column("safety check, balanced", "safety.balanced"),
    Column("majority answer, balanced", "majority.balanced"),
    Column("active or obsolete, AUC (chance 0.5)", "telling_apart"),
    Column("1 film, share of full", "one_shot"),
    *COSTS,
)
BOXED_CONCEPT = (
    Column("pairs", "pointing.{}.pairs", 0),
    Column("mean map", "pointing.{}.mean"),
    Column("max map", "pointing.{}.max"),
    Column("CAM", "pointing.{}.cam"),
    Column("random point", "pointing.{}.chance"),
    Column("fixed prior", "pointing.{}.fixed"),
    Column("caught", "safety.{}.caught"),
    Column("false alarms", "safety.{}.false_alarms"),
    Column("majority: caught", "majority.{}.caught"),
    Column("majority: false alarms", "majority.{}.false_alarms"),
)
LABELLED = (
    Column("macro-F1", "macro_f1"),
    Column("majority answer, macro-F1", "majority.macro_f1"),
    Column("mean AUC (chance 0.5)", f"auc.{ALL}"),
    *COSTS,
)
LABELLED_CONCEPT = (Column("films that show it", "present.{}", 0), Column("AUC (chance 0.5)", "auc.{}"))
FILMS = tuple(Column(split, f"films.{split}", 0) for split in ("train", "val", "test"))
INTRODUCTION = """\
# Real films, run again

Made by `medgrape reproduce real-films`. Each figure is the mean ± standard deviation over n seeds; each seed trains
another model and tests it on other patients, a fifth of them. Pointing is counted by film and finding. The safety check
is calibrated for balance on validation films; balanced is the mean over findings of (caught + 1 - false alarms) / 2,
which is 0.5 for every answer that looks at no film; caught and false alarms of one finding are of the claims that name
it. Minutes count every stage, also one that another row had learnt already.
"""


def page(rows: Sequence[Summary]) -> str:
    """Everything as Markdown."""
    boxed, labelled = ([row for row in rows if row.variant.data == data] for data in ("tbx11k", "nih"))
    parts = [
        INTRODUCTION,
        *_section("TBX11K", boxed, BOXED, BOXED_CONCEPT, "pointing.{}.pairs"),
        *_section("NIH ChestX-ray14", labelled, LABELLED, LABELLED_CONCEPT, "present.{}"),
        *_pictures(rows),
        *_remarks(rows),
    ]
    return "\n".join(parts)


def _section(
    title: str, rows: Sequence[Summary], whole: Sequence[Column], each: Sequence[Column], known_by: str
) -> Iterator[str]:
    if not rows:
        return
    yield f"## {title}\n"
    named = [((row.variant.title, row.count), row, "") for row in rows]
    yield _table(("variant", "n"), named, whole)
    yield f"### {title}, by finding\n"
    yield _table(("variant", "finding"), list(_by_concept(rows, known_by)), each)
    yield f"### {title}, films\n"
    yield _table(("variant", "n"), [line for line in named if line[1].results], FILMS)


def _by_concept(rows: Iterable[Summary], known_by: str) -> Iterator[tuple[tuple[str, str], Summary, str]]:
    """A line for each concept that the row has figures of."""
    before, after = known_by.split("{}")
    for row in rows:
        for name in row.names():
            concept = name.removeprefix(before).removesuffix(after)
            if name == f"{before}{concept}{after}" and concept != ALL:
                yield (row.variant.title, concept), row, concept


def _table(
    first: tuple[str, str], lines: Sequence[tuple[tuple[str, str], Summary, str]], columns: Sequence[Column]
) -> str:
    headings = (*first, *(column.heading for column in columns))
    told = [
        (*names, *(_cell(row.figure(column.figure.format(concept)), column.digits) for column in columns))
        for names, row, concept in lines
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [headings, ("---",) * len(headings), *told])


def _cell(found: Spread | None, digits: int) -> str:
    if found is None:
        return "-"
    spread = "" if found.sd is None else f" ± {found.sd:.{digits}f}"
    return f"{found.mean:.{digits}f}{spread}"


def _pictures(rows: Iterable[Summary]) -> Iterator[str]:
    for row in rows:
        for seed, result in row.results.items():
            for kind, drawn in result["pictures"].items():
                if drawn:
                    films = ", ".join(f"{one['film']} ({one['concept']})" for one in drawn)
                    yield f"![{row.variant.title}, {kind}](pictures/{row.variant.name}-{kind}.png)\n"
                    yield f"{row.variant.title}, seed {seed}, {kind}, drawn by lot: {films}.\n"


def _remarks(rows: Iterable[Summary]) -> Iterator[str]:
    states = {result["software"] for row in rows for result in row.results.values()}
    if states:
        yield f"Made by software {', '.join(sorted(states))}; which row by which is in real-films.json.\n"
    for row in rows:
        for seed, result in row.results.items():
            if result["uncalibrated"] and row.variant.data == "tbx11k":
                yield f"{row.variant.title}, seed {seed}: not calibrated. {result['uncalibrated']}\n"
