"""Every row of ``docs/explanation/real-films.md`` again, from the published folders: prepare to tabulate.

What is done is not done again, so a suite that was broken off goes on with the row at which it was.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medgrape.config import Config
from medgrape.files import whole_file
from medgrape.paper.real_films.row import Row, make, run_path
from medgrape.paper.real_films.tables import page, summaries
from medgrape.paper.real_films.variants import CONFIGS, Variant, chosen
from medgrape.progress import Track, Watch, quietly, unwatched

NAME = "real-films"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Suite:
    """All variants, the folders that they learn from, and where everything goes."""

    variants: tuple[Variant, ...]
    sources: Mapping[str, Path | None]
    """Data set to its published folder; None where nobody named one."""
    out: Path
    configs: Path = CONFIGS

    def rows(self, names: Sequence[str] = (), seeds: Sequence[int] = ()) -> tuple[Row, ...]:
        """What there is to do, of some variants and seeds or of all; every setting is checked before anything is."""
        return tuple(
            Row(variant, seed, self._config(variant, seed), self.sources[variant.data], self.out)
            for variant in chosen(self.variants, names)
            for seed in seeds or variant.seeds
        )

    def _config(self, variant: Variant, seed: int) -> Config:
        """The variant's settings; one that goes on from another has that one's run as its weights."""
        config = variant.config(seed, self.configs)
        if not variant.after:
            return config
        weights = str(run_path(self.out, variant.after, seed))
        return config.model_copy(update={"backbone": config.backbone.model_copy(update={"weights": weights})})


def reproduce(
    suite: Suite,
    names: Sequence[str] = (),
    seeds: Sequence[int] = (),
    *,
    tell: Tell = lambda sentence: None,  # noqa: ARG005 (nobody listens)
    track: Track = quietly,
    watch: Watch = unwatched,
) -> dict[str, Any]:
    """Run what is not there yet, of some variants and seeds or of all, and write the tables after every row."""
    rows = suite.rows(names, seeds)
    for row in rows:
        row.check_source()
    there = [row for row in rows if row.done()]
    if there:
        tell(f"{len(there)} of {len(rows)} rows are there already.")
    for number, row in enumerate(rows, 1):
        if row.done():  # asked again: its parent may be another one by now
            continue
        tell(f"{number} of {len(rows)}: {row.variant.name}, seed {row.seed} ({row.variant.title})")
        make(row, track=track, watch=watch)
        write_tables(suite, seeds)
    return write_tables(suite, seeds)


def write_tables(suite: Suite, seeds: Sequence[int] = ()) -> dict[str, Any]:
    """``real-films.md`` and ``real-films.json``, from all results that are there."""
    found = summaries(suite.rows(), suite.rows(seeds=seeds))
    told = {"suite": NAME, "variants": [one.to_json() for one in found]}
    files = {"json": json.dumps(told, indent=1, allow_nan=False) + "\n", "md": page(found)}
    for suffix, text in files.items():
        with whole_file(suite.out / f"{NAME}.{suffix}") as draft:
            draft.write_text(text, "utf-8")
    return told
