"""Tables of the head: other graph heads, an MLP as large, edges taken out, the graph's threshold."""

from dataclasses import replace

from medgrape.paper.jobs import Job
from medgrape.paper.recipes import TAUS, Edge, Recipe, edges, fixed_recipes, tau_recipe
from medgrape.paper.results import Results
from medgrape.paper.suites.base import F1, PAIRS, Row, Suite, named, number, recipe_lines, trivial_lines, versus
from medgrape.paper.tables import Column, Table, Value, spread

MOST_EDGES = 20
_SAME = "Heads share all earlier stages, so maps, and with them pointing, are the same for every head."


def heads(results: Results) -> Table:
    """Which graph, or none."""
    csr = Row("csr", "Linear (CSR)")
    rows = (csr, Row("ml-gcn", "ML-GCN"), Row("add-gcn", "ADD-GCN"), Row("grape", "GAT (GRAPE)"))
    lines = recipe_lines(results, "heads", rows, (F1, PAIRS), csr, (F1.key,)) + trivial_lines(
        results, "csr", (F1, PAIRS)
    )
    return Table(
        "heads",
        "Graph heads",
        ("tab:graph_heads",),
        (F1, PAIRS),
        tuple(lines),
        versus(lines, lines[3], lines[0], F1),
        csr.told,
        (_SAME,),
    )


def mlp(results: Results) -> Table:
    """Is it the graph, or the parameters?"""
    columns = (F1, PAIRS, Column("parameters.head", "Parameters"))
    gat = Row("grape", "GAT (GRAPE)")
    rows = (Row("csr", "Linear (CSR)"), Row("mlp", "MLP, matched"), gat)
    lines = [
        replace(line, ours={**line.ours, "parameters.head": results.value(row.recipe, "parameters.head", whole=True)})
        for line, row in zip(recipe_lines(results, "mlp", rows, columns, gat, (F1.key,)), rows, strict=True)
    ]
    lines += trivial_lines(results, "csr", columns)
    return Table(
        "mlp",
        "Graph, or just more parameters",
        ("tab:n6_mlp",),
        columns,
        tuple(lines),
        versus(lines, named(lines, "MLP, matched"), named(lines, gat.told), F1),
        gat.told,
        (
            _SAME,
            "The paper's pointing figures here (0.165, 0.171) fit its 164 active pairs alone, so they are left out.",
        ),
    )


def cut_edges(results: Results) -> tuple[Edge, ...]:
    """Those that are taken out one by one: all, or of a dense graph the first ones."""
    return edges(results.dataset("first"), results.place.base.model.tau)[:MOST_EDGES]


def edge_importance(results: Results) -> Table:
    """The head learnt again without each edge."""
    whole = Row("grape", "the whole graph", "all")
    rows = [whole]
    for edge in cut_edges(results):
        kind = "self-loop" if edge.itself else "between findings"
        rows.append(Row(edge.recipe, f"without {edge.speaker} → {edge.listener} ({kind})"))
    lines = recipe_lines(results, "edges", rows, (F1,), whole) + trivial_lines(results, "grape", (F1,))
    known = [
        (value, line.title) for line in lines[1:] if not line.trivial and (value := number(line, F1.key)) is not None
    ]
    base, worst = number(lines[0], F1.key), min(known, default=None)
    reading = "Not measured yet."
    if base is not None and worst is not None:
        loss = f"The largest loss is {worst[1]}: macro-F1 {worst[0]:.3f} instead of {base:.3f}."
        reading = loss if worst[0] < base else "Taking an edge out lowers macro-F1 nowhere."
    count = len(edges(results.dataset("first"), results.place.base.model.tau))
    return Table(
        "edges",
        "What each edge of the graph is worth",
        ("tab:edge_ablation",),
        (F1,),
        tuple(lines),
        reading,
        whole.told,
        (
            f"The graph has {count} edges, self-loops included; at most {MOST_EDGES} are taken out. In the paper "
            "the edge between findings is drawn from active to obsolete; here active listens to obsolete.",
        ),
    )


def _tau(results: Results, tau: float) -> Recipe:
    """Where the threshold is GRAPE's own, GRAPE itself."""
    return fixed_recipes()["grape"] if tau == results.place.base.model.tau else tau_recipe(tau)


def tau_sweep(results: Results) -> Table:
    """The head learnt again with other graphs."""
    columns = (F1, PAIRS, Column("edges", "Edges"))
    rows = [Row(_tau(results, tau), f"tau = {tau:.2f}", f"{tau:.2f}") for tau in TAUS]
    lines = [
        replace(line, ours={**line.ours, "edges": Value(len(edges(results.dataset("first"), tau)), whole=True)})
        for line, tau in zip(recipe_lines(results, "tau", rows, columns, rows[2], (F1.key,)), TAUS, strict=True)
    ]
    found = [value for value in (number(line, F1.key) for line in lines) if value is not None]
    width = spread([max(found) - min(found)]) if found else None
    reading = "Not measured yet." if width is None else f"Macro-F1 moves by {width.mean:.3f} over the whole sweep."
    lines += trivial_lines(results, "grape", columns)
    return Table(
        "tau",
        "The graph's threshold",
        ("tab:tau_sweep",),
        columns,
        tuple(lines),
        reading,
        rows[2].told,
        (_SAME,),
    )


def _edge_jobs(results: Results) -> tuple[Job, ...]:
    return results.jobs("films", "grape", *(edge.recipe for edge in cut_edges(results)))


SUITES = (
    Suite(
        "heads",
        "linear, ML-GCN, ADD-GCN and GAT heads",
        ("tab:graph_heads",),
        lambda r: r.jobs("films", "csr", "ml-gcn", "add-gcn", "grape"),
        heads,
    ),
    Suite(
        "mlp",
        "an MLP with as many parameters as the GAT",
        ("tab:n6_mlp",),
        lambda r: r.jobs("films", "csr", "mlp", "grape"),
        mlp,
    ),
    Suite("edges", "the head learnt again without each edge", ("tab:edge_ablation",), _edge_jobs, edge_importance),
    Suite(
        "tau",
        "thresholds of the concept graph",
        ("tab:tau_sweep",),
        lambda r: r.jobs("films", *(_tau(r, tau) for tau in TAUS)),
        tau_sweep,
    ),
)
