"""Results of a measurement and its machine, in a file to compare with later."""

import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.ratio import Ratio
from medgrape.errors import UserError
from medgrape.files import whole_file

FORMAT = 1
PACKAGES = ("medgrape", "torch", "numpy", "transformers", "torch_geometric", "onnxruntime", "quantus")


@dataclass(frozen=True)
class Row:
    """A ratio as it is stored."""

    what: str
    alternative: str
    ours: float
    theirs: float
    unit: str
    value: float
    low: float
    high: float
    """Range of the rounds: the middle half of them, or all where they are few."""
    rounds: int
    target: float
    at_most: bool
    met: bool

    @classmethod
    def of(cls, ratio: Ratio) -> "Row":
        """Return the part of a ratio that is stored."""
        return cls(**ratio.to_json())

    @property
    def key(self) -> tuple[str, str]:
        """Return the key of the row."""
        return self.what, self.alternative


@dataclass(frozen=True)
class Outcome:
    """The result of a suite."""

    suite: str
    rows: tuple[Row, ...]
    seconds: float
    not_run: str | None = None
    """Why the suite, or its rest, could not be run; None if all of it was."""


@dataclass(frozen=True)
class Results:
    """Suites that were run one after the other on one machine."""

    machine: dict[str, Any]
    outcomes: tuple[Outcome, ...]

    @property
    def rows(self) -> Iterator[tuple[str, Row]]:
        """Return every row with the name of its suite."""
        return ((outcome.suite, row) for outcome in self.outcomes for row in outcome.rows)

    @property
    def missed(self) -> list[tuple[str, Row]]:
        """Return the rows whose target is missed."""
        return [(suite, row) for suite, row in self.rows if not row.met]

    @property
    def seconds(self) -> float:
        """Return the seconds of all suites together."""
        return sum(outcome.seconds for outcome in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"format": FORMAT, "machine": self.machine, "suites": [asdict(outcome) for outcome in self.outcomes]}

    @classmethod
    def from_json(cls, payload: dict[str, Any]) -> "Results":
        """The inverse of ``to_json``."""
        return cls(dict(payload["machine"]), tuple(_outcome(one) for one in payload["suites"]))

    def save(self, path: Path) -> None:
        """Write the results atomically."""
        with whole_file(path) as draft:
            draft.write_text(json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n", "utf-8")

    @classmethod
    def load(cls, path: Path) -> "Results":
        """Load the results that ``save`` wrote."""
        try:
            payload = json.loads(path.read_text("utf-8"))
            if payload["format"] != FORMAT:
                raise UserError(f"{path} is of format {payload['format']}, this version reads {FORMAT}; measure again.")
            return cls.from_json(payload)
        except FileNotFoundError:
            raise UserError(f"There is no {path}; python -m benchmarks all --save {path} writes it.") from None
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is not a file of python -m benchmarks --save: {error!r}.") from error


def _outcome(payload: dict[str, Any]) -> Outcome:
    return Outcome(**payload | {"rows": tuple(Row(**row) for row in payload["rows"])})


def machine() -> dict[str, Any]:
    """Return the properties of the machine on which the figures depend."""
    import torch

    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": platform.platform(),
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the name of the processor; on Linux it is in a file."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
