"""The suites of ``python -m benchmarks``. To add one, add a row to ``SUITES``."""

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from benchmarks import ROOT
from benchmarks.ratio import Ratio
from benchmarks.results import Outcome, Results, Row
from medgrape.errors import UserError


@dataclass(frozen=True)
class Suite:
    """Ratios that belong together."""

    name: str
    about: str
    """The comparison in one sentence."""
    function: str
    """``module:function`` in this package, which takes the number of rounds and yields ratios."""
    rounds: int
    """Default number of rounds; slow rows take fewer."""
    fewest: int = 3
    install: str | None = None
    """The requirement to install with pip, where the package does not bring it."""

    def run(self, rounds: int | None = None) -> Iterator[Ratio]:
        """Yield the ratios; the module is imported only here, since torch is slow to import."""
        module, name = self.function.split(":")
        measure: Callable[[int], Iterator[Ratio]] = getattr(import_module(f"{__package__}.{module}"), name)
        return measure(self.rounds if rounds is None else rounds)


SUITES = (
    Suite("head", "The GAT head against a linear one, GATConv and a loop over films.", "head:bench_head", 40),
    Suite("interaction", "A question about an open film against opening it.", "interaction:bench_interaction", 25),
    Suite("losses", "The contrastive loss against loops over concepts.", "losses:bench_losses", 15),
    Suite("training", "Stages 3 and 4 against running the backbone in them.", "training:bench_training", 5, 1),
    Suite(
        "export", "Exported models against torch, and what int8 costs.", "export:bench_export", 9,
        install="medgrape[export]",
    ),
    Suite(
        "bulk", "Bulk reading against the forward pass alone.", "bulk:bench_bulk", 5, install="medgrape[bulk,export]",
    ),
    Suite("faithfulness", "Insertion and deletion against Quantus.", "faithfulness:bench_faithfulness", 5, 1),
    Suite("start", "medgrape read from nothing against importing its libraries.", "start:bench_start", 7),
    Suite("memory", "An evaluation's memory against keeping every map.", "memory:bench_memory", 5, 1),
    Suite(
        "films", "Reading films against the bare decoders, and the cache against decoding.", "films:bench_films", 15,
        install="medgrape[dicom]",
    ),
)  # fmt: skip
"""In the order in which ``all`` runs them."""


def measured(suite: Suite, rounds: int | None = None) -> Outcome:
    """Run a suite; if a requirement is not installed, keep the rows measured before that."""
    began, rows, not_run = time.perf_counter(), list[Row](), None
    gc.collect()
    try:
        for ratio in suite.run(rounds):
            rows.append(Row.of(ratio))
    except UserError as missing:
        not_run = str(missing)
    except ModuleNotFoundError as missing:
        not_run = f"It needs {missing.name}, which is not installed: pip install '{suite.install or missing.name}'."
    return Outcome(suite.name, tuple(rows), time.perf_counter() - began, not_run)


def measured_apart(suite: Suite) -> Outcome:
    """Run a suite in its own process, so that its figures do not depend on the suites before it."""
    began, command = time.perf_counter(), [sys.executable, "-m", "benchmarks", suite.name, "--json"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    try:
        return Results.from_json(json.loads(ended.stdout)).outcomes[0]
    except ValueError:
        said = ended.stderr.strip().splitlines() or ["nothing was said"]
        return Outcome(
            suite.name, (), time.perf_counter() - began, f"It ended with code {ended.returncode}: {said[-1]}"
        )


def suite_named(name: str) -> Suite:
    """Return the suite of that name."""
    for suite in SUITES:
        if suite.name == name:
            return suite
    raise UserError(f"There is no suite {name!r}; there are {', '.join(suite.name for suite in SUITES)}.")
