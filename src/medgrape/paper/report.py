"""Each table as CSV for programs and as LaTeX for papers."""

import base64
import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

from medgrape.evaluation.page import filled
from medgrape.evaluation.report import NOTICE
from medgrape.evaluation.statistics import ROUNDS
from medgrape.paper.results import Results
from medgrape.paper.tables import Cell, Line, Table, Value

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
    return filled("reproduction.html", given, package="medgrape", sheets=("reproduction.css",))


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


_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "→": r"$\to$", "µ": r"$\mu$", "–": "--",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "“": "``", "”": "''", "<": "$<$",
}  # fmt: skip


def as_csv(table: Table) -> str:
    """One line for each row and figure, ours and the paper's, with nothing rounded."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(
        ["row", "figure", "ours", "sd", "n", "low", "high", "paper", "trivial", "difference", "difference_low",
         "difference_high", "p_t_test", "p_permutation", "p_holm"]
    )  # fmt: skip
    for line in table.lines:
        for column in table.columns:
            cell = line.ours.get(column.key)
            compared = _compared(line, column.key)
            paper = line.paper.get(column.key, "")
            writer.writerow([line.title, column.key, *_numbers(cell), paper, int(line.trivial), *compared])
    return written.getvalue()


def _numbers(cell: Cell) -> list[object]:
    if isinstance(cell, Value):
        return ["" if one is None else one for one in (cell.mean, cell.sd, cell.n, cell.low, cell.high)]
    return [cell or "", "", "", "", ""]


def _compared(line: Line, key: str) -> list[object]:
    found = line.compared.get(key)
    if found is None:
        return [""] * 6
    bounds = (None, None) if found.interval is None else (found.interval.low, found.interval.high)
    told = (found.difference, *bounds, found.t_test, found.permutation, found.holm)
    return ["" if one is None else one for one in told]


def as_latex(table: Table) -> str:
    """With booktabs; the paper's figures in a column beside each of ours."""
    columns = "".join("ll" if table.beside(column) else "l" for column in table.columns)
    heads = [f"{_tex(column.heading)}{' & paper' if table.beside(column) else ''}" for column in table.columns]
    rows = [" & ".join(["", *heads])]
    for line in table.lines:
        cells = [_tex(line.title)]
        for column in table.columns:
            cells.append(_tex(shown(line.ours.get(column.key))))
            cells += [_tex(line.paper.get(column.key, ""))] if table.beside(column) else []
        rows.append(" & ".join(cells))
    body = " \\\\\n    ".join(rows[1:])
    return (
        f"% {table.command}\n\\begin{{table}}\n  \\caption{{{_tex(table.title)}. {_tex(table.reading)}}}\n"
        f"  \\label{{tab:medgrape-{table.suite}}}\n  \\centering\n"
        f"  \\begin{{tabular}}{{@{{}}l{columns}@{{}}}}\n    \\toprule\n"
        f"    {rows[0]} \\\\\n    \\midrule\n    {body} \\\\\n    \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}\n"
    )


def _tex(text: str) -> str:
    return re.sub(r"[\\&%$#_{}~^±→µ–↑↓“”<]", lambda found: _ESCAPED[found.group()], text)
