"""Rows over their seeds: mean and standard deviation of every figure, and which seeds are missing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medgrape.benchmarks.real_films_row import result_path
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


def summaries(variants: Sequence[Variant], out: Path, seeds: Sequence[int] = ()) -> tuple[Summary, ...]:
    """What there is of each variant; ``seeds`` are looked for beside the variant's own."""
    found = []
    for variant in variants:
        paths = {seed: result_path(out, variant, seed) for seed in sorted({*variant.seeds, *seeds})}
        results = {seed: json.loads(path.read_text("utf-8")) for seed, path in paths.items() if path.is_file()}
        found.append(Summary(variant, results))
    return tuple(found)
