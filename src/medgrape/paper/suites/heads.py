"""Tables of the head: other graph heads, an MLP as large, edges taken out, the graph's threshold."""

from dataclasses import replace

from medgrape.paper.recipes import TAUS, Edge, Recipe, edges, fixed_recipes
from medgrape.paper.results import Results
from medgrape.paper.suites.base import (
    F1,
    NOT_MEASURED,
    PAIRS,
    RecipeRow,
    films,
    number,
    ranked,
    recipe_lines,
    recipe_table,
    suite,
    trivial_lines,
)
from medgrape.paper.tables import Column, Table, Value

MOST_EDGES = 20
_SAME_MAPS = "Heads share all earlier stages, so maps, and with them pointing, are the same for every head."


@suite("heads", "tab:graph_heads", needs=films("csr", "ml-gcn", "add-gcn", "grape"))
def heads(results: Results) -> Table:
    """Linear, ML-GCN, ADD-GCN and GAT heads."""
    titles = {"csr": "Linear (CSR)", "ml-gcn": "ML-GCN", "add-gcn": "ADD-GCN", "grape": "GAT (GRAPE)"}
    rows, columns = [RecipeRow(name, title) for name, title in titles.items()], (F1, PAIRS)
    return recipe_table(results, "Graph heads", rows, columns, read=3, keys=(F1.key,), notes=(_SAME_MAPS,))


@suite("mlp", "tab:n6_mlp", needs=films("csr", "mlp", "grape"))
def mlp(results: Results) -> Table:
    """An MLP with as many parameters as the GAT."""
    parameters = Column("parameters.head", "Parameters")
    rows = (RecipeRow("csr", "Linear (CSR)"), RecipeRow("mlp", "MLP, matched"), RecipeRow("grape", "GAT (GRAPE)"))
    notes = (
        _SAME_MAPS,
        "The paper's pointing figures here (0.165, 0.171) fit its 164 active pairs alone, so they are left out.",
    )
    columns, title = (F1, PAIRS, parameters), "Graph, or just more parameters"
    table = recipe_table(results, title, rows, columns, against=2, read=1, keys=(F1.key,), notes=notes)
    lines = list(table.lines)
    for place, row in enumerate(rows):
        count = results.value(row.recipe, parameters.key, whole=True)
        lines[place] = replace(lines[place], ours={**lines[place].ours, parameters.key: count})
    return replace(table, lines=tuple(lines))


def cut_edges(results: Results) -> tuple[Edge, ...]:
    """Return the edges that are taken out one by one: all, or the first ones of a dense graph."""
    return edges(results.data["first"], results.workspace.base.model.tau)[:MOST_EDGES]


@suite("edges", "tab:edge_ablation", needs=lambda r: r.jobs("films", "grape", *(edge.recipe for edge in cut_edges(r))))
def edge_importance(results: Results) -> Table:
    """The head retrained without each edge."""
    whole = RecipeRow("grape", "the whole graph", "all")
    rows = [whole]
    for edge in cut_edges(results):
        kind = "self-loop" if edge.speaker == edge.listener else "between findings"
        rows.append(RecipeRow(edge.recipe, f"without {edge.speaker} → {edge.listener} ({kind})"))
    lines = recipe_lines(results, rows, (F1,), whole) + trivial_lines(results, "grape", (F1,))
    base, cut = number(lines[0], F1.key), ranked(lines[1:], F1.key)
    reading = NOT_MEASURED
    if base is not None and cut:
        worst, title = cut[0]
        reading = "Taking an edge out lowers macro-F1 nowhere."
        if worst < base:
            reading = f"The largest loss is {title}: macro-F1 {worst:.3f} instead of {base:.3f}."
    count = len(edges(results.data["first"], results.workspace.base.model.tau))
    notes = (
        f"The graph has {count} edges, self-loops included; at most {MOST_EDGES} are taken out. In the paper "
        "the edge between findings is drawn from active to obsolete; here active listens to obsolete.",
    )
    return Table("What each edge of the graph is worth", (F1,), tuple(lines), reading, whole.title, notes)


def _tau(results: Results, tau: float) -> Recipe:
    """GRAPE with another threshold of the graph; GRAPE itself if this is its own one."""
    grape = fixed_recipes()["grape"]
    if tau == results.workspace.base.model.tau:
        return grape
    return Recipe(f"tau-{tau:.2f}", f"tau = {tau:.2f}", grape.change | {"model.tau": tau})


@suite("tau", "tab:tau_sweep", needs=lambda r: r.jobs("films", *(_tau(r, tau) for tau in TAUS)))
def tau_sweep(results: Results) -> Table:
    """The head retrained with other thresholds of the concept graph."""
    columns = (F1, PAIRS, Column("edges", "Edges"))
    rows = [RecipeRow(_tau(results, tau), f"tau = {tau:.2f}", f"{tau:.2f}") for tau in TAUS]
    lines = [
        replace(line, ours={**line.ours, "edges": Value(len(edges(results.data["first"], tau)), whole=True)})
        for line, tau in zip(recipe_lines(results, rows, columns, rows[2], (F1.key,)), TAUS, strict=True)
    ]
    values = [value for value, _ in ranked(lines, F1.key)]
    reading = f"Macro-F1 moves by {values[-1] - values[0]:.3f} over the whole sweep." if values else NOT_MEASURED
    lines += trivial_lines(results, "grape", columns)
    return Table("The graph's threshold", columns, tuple(lines), reading, rows[2].title, (_SAME_MAPS,))
