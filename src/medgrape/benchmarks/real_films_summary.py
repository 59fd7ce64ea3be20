"""Rows over their seeds: mean and standard deviation of every figure, and which seeds are missing."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medgrape.benchmarks.real_films_row import Row
from medgrape.benchmarks.real_films_variants import Variant
from medgrape.evaluation.vocabulary_figures import Spread

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
