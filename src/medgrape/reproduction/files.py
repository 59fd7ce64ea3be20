"""Each table as CSV for programs and as LaTeX for papers."""

import csv
import io
import re

from medgrape.reproduction.page import shown
from medgrape.reproduction.tables import Cell, Line, Table, Value

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
