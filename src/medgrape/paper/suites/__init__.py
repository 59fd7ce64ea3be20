"""All suites by name, in the order of the report, and what the paper calls their tables and figures."""

from collections.abc import Collection, Sequence

from medgrape.errors import UserError, nearest
from medgrape.paper.suites import classes, facts, few_shot, heads, maps, safety
from medgrape.paper.suites.base import Suite

SUITES: dict[str, Suite] = {
    suite.name: suite
    for module in (classes, heads, safety, few_shot, maps, facts)
    for suite in vars(module).values()
    if isinstance(suite, Suite)
}
ALL = "all"
PAPER = {
    "tab:tbx11k": "modules and baselines on TBX11K",
    "tab:nih": "modules on NIH",
    "tab:compare": "CSR against GRAPE over five seeds",
    "tab:tau_sweep": "threshold of the graph",
    "tab:eta_sweep": "lead of the safety check",
    "tab:hparams_fixed": "settings that never change",
    "tab:hparams_dataset": "settings of each data set",
    "tab:n4": "stages against end to end",
    "tab:n4_zeroshot": "few films, stages against end to end",
    "tab:graph_heads": "graph heads",
    "tab:speed": "time of a prediction",
    "tab:edge_ablation": "edges of the graph",
    "tab:sota": "what others published",
    "tab:perclass_f1": "F1 of each class",
    "tab:confusion": "confusion matrices",
    "tab:safety": "safety check against miscorrection rates",
    "tab:pg_perconcept": "pointing by finding",
    "tab:zeroshot": "few films on TBX11K",
    "tab:zeroshot_nih": "few films on NIH",
    "tab:faithfulness": "insertion and deletion",
    "tab:n5": "MC-dropout",
    "tab:mean_vs_max": "mean or maximum inside a box",
    "tab:n6_mlp": "an MLP as large as the graph head",
    "fig:proto_dispersion": "geometry of prototypes",
    "fig:simmaps_cmp_panel": "maps of all methods",
    "fig:pg_dots": "points of all methods",
    "fig:interaction": "a correction, before and after",
}
"""Labels of all tables of the paper and of all figures that show results."""


def chosen_suites(names: Sequence[str], others: Collection[str] = ()) -> tuple[Suite, ...]:
    """Return the suites of these names, or all; an error may suggest one of the ``others`` as well."""
    if names == [ALL]:
        return tuple(SUITES.values())
    for name in names:
        if name not in SUITES:
            raise UserError(f"There is no suite {name!r}{nearest(name, [*SUITES, ALL, *others])}.")
    return tuple(SUITES[name] for name in dict.fromkeys(names))
