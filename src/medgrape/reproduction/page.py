"""The report as one page that opens without a network, every picture and plot on it."""

import base64
from collections.abc import Sequence
from pathlib import Path

from medgrape.evaluation.page import filled
from medgrape.evaluation.report import NOTICE
from medgrape.evaluation.statistics import ROUNDS
from medgrape.reproduction.results import Results
from medgrape.reproduction.tables import Cell, Table, Value

FIRST_READ = ("modules", "baselines", "pointing", "gate")
"""Suites whose readings stand above all tables."""


def page(results: Results, tables: Sequence[Table], warnings: Sequence[str]) -> str:
    """All tables, with a summary above them."""
    pictures = results.place.out / "pictures"
    given = {
        "tables": tables,
        "data": list(results.place.data.values()),
        "seeds": results.seeds,
        "backbone": results.place.base.backbone.name,
        "text": results.place.base.text.encoder,
        "headline": [f"{table.title}. {table.reading}" for table in tables if table.suite in FIRST_READ],
        "warnings": list(warnings),
        "notice": NOTICE,
        "rounds": ROUNDS,
        "shown": lambda cell: shown(cell, len(results.seeds)),
        "p": _p,
        "data_uri": lambda name: _data_uri(pictures / name),
    }
    return filled("reproduction.html", given, package="medgrape.reproduction", sheets=("reproduction.css",))


def shown(cell: Cell, seeds: int = 0) -> str:
    """As people read it; a figure of fewer seeds than there are says of how many."""
    if cell is None:
        return "–"
    if not isinstance(cell, Value):
        return cell
    return f"{cell.text} (n = {cell.n})" if 0 < cell.n < seeds and cell.sd is not None else cell.text


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _data_uri(path: Path) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(path.read_bytes()).decode()
