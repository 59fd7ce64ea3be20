"""The report as one page that opens without a network, every picture and plot on it."""

import base64
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from markupsafe import Markup

from medgrape.evaluation.page import policy
from medgrape.evaluation.report import NOTICE
from medgrape.evaluation.statistics import ROUNDS
from medgrape.reproduction.results import Results
from medgrape.reproduction.tables import Cell, Table, Value


def page(results: Results, tables: Sequence[Table], warnings: Sequence[str]) -> str:
    """All tables, with a summary above them."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # slow to import

    environment = Environment(
        loader=PackageLoader("medgrape.reproduction"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    style = _style("medgrape.evaluation", "report.css") + _style("medgrape.reproduction", "reproduction.css")
    pictures = results.place.out / "pictures"
    return environment.get_template("reproduction.html").render(
        tables=tables,
        data=list(results.place.data.values()),
        seeds=results.seeds,
        backbone=results.place.base.backbone.name,
        text=results.place.base.text.encoder,
        headline=[
            f"{table.title}. {table.reading}"
            for table in tables
            if table.suite in ("modules", "baselines", "pointing", "gate")
        ],
        warnings=list(warnings),
        notice=NOTICE,
        rounds=ROUNDS,
        shown=lambda cell: shown(cell, len(results.seeds)),
        p=_p,
        data_uri=lambda name: _data_uri(pictures / name),
        style=Markup(style),  # noqa: S704 (files of ours)
        policy=policy(style),
    )


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


def _style(package: str, name: str) -> str:
    return resources.files(package).joinpath("templates", name).read_text("utf-8")
