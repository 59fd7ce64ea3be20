"""Tables of findings that are learnt from a sentence and few films."""

from typing import Any

from medgrape.paper.jobs import Role
from medgrape.paper.measures import FEW_SHOT_FILMS
from medgrape.paper.results import Results
from medgrape.paper.suites.base import NOT_MEASURED, number, suite
from medgrape.paper.suites.plots import shots_plot
from medgrape.paper.tables import Cell, Column, Line, Table, spread

_NOTE = (
    "Means over the seeds of training and, within each, over draws of the examples; the standard deviation is over the "
    "seeds. The text projection is made to forget the finding first, where there are others to learn it from; the "
    "paper's had seen it."
)
SHOTS = {str(films): {0: "the sentence alone", 1: "1 film"}.get(films, f"{films} films") for films in FEW_SHOT_FILMS}
ROWS = SHOTS | {"full": "all training films", "chance": "a random point", "fixed": "one fixed point for each finding"}
BASELINES = ("chance", "fixed")


def _by_concept(results: Results, recipe: str, role: Role = "first") -> dict[str, list[dict[str, Any]]]:
    """The figures of each concept in every finished seed, with the keys of ``ROWS``."""
    by_concept: dict[str, list[dict[str, Any]]] = {}
    for figures in results.figures("few-shot", recipe, role):
        for concept in figures.get("concepts", []):
            shots = {str(shots["films"]): shots["mean"] for shots in concept["shots"]}
            by_concept.setdefault(concept["name"], []).append(concept | shots)
    return by_concept


def _cells(concepts: dict[str, list[dict[str, Any]]], key: str) -> dict[str, Cell]:
    return {name: spread([seed.get(key) for seed in seeds]) for name, seeds in concepts.items()}


def _few_shot(results: Results, suite: str, title: str, role: Role) -> Table:
    concepts, names = _by_concept(results, "grape-text", role), results.data[role].concepts
    lines = [Line(row, _cells(concepts, key), key, trivial=key in BASELINES) for key, row in ROWS.items()]
    if role == "first":
        ours = _by_concept(results, "ours")
        learnt = [key for key in ROWS if key not in BASELINES]
        lines += [Line(f"medgrape's recipe: {ROWS[key]}", _cells(ours, key)) for key in learnt]
    columns = tuple(
        Column(name, f"{names[name].title} ({seeds[0]['pairs']} pairs)", "higher") for name, seeds in concepts.items()
    )
    reading = "Not measured: no finding has boxes on training and on test films, or the job is not done yet."
    if columns:
        key, reading = columns[0].key, NOT_MEASURED
        one_film, full, fixed = (number(lines[place], key) for place in (1, 4, 6))
        if one_film is not None and full is not None:
            reading = f"{columns[0].title}: one film points at {one_film:.3f}, all training films at {full:.3f}"
            reading += "." if fixed is None else f"; one fixed point at {fixed:.3f}."
    by_seed = results.figures("few-shot", "grape-text", role)
    warnings = dict.fromkeys(warning for figures in by_seed for warning in figures.get("warnings", []))
    plots = shots_plot(suite, lines, columns)
    return Table(title, columns, tuple(lines), reading, notes=(_NOTE, *warnings), plots=plots)


@suite("few-shot", "tab:zeroshot", needs=lambda r: r.jobs("few-shot", "grape-text", "ours"))
def first(results: Results) -> Table:
    """Findings learnt from a sentence and few films."""
    return _few_shot(results, "few-shot", "A finding learnt from few films", "first")


@suite(
    "few-shot-second", "tab:zeroshot_nih", role="second",
    needs=lambda r: r.jobs("few-shot", "grape-text", role="second"),
)  # fmt: skip
def second(results: Results) -> Table:
    """Findings learnt from a sentence and few films, on the second data set."""
    return _few_shot(results, "few-shot-second", "The same on the second data set", "second")


@suite("end-to-end-few-shot", "tab:n4_zeroshot", needs=lambda r: r.jobs("few-shot", "grape-text", "end-to-end-text"))
def end_to_end(results: Results) -> Table:
    """Findings learnt from few films after training in stages and end to end."""
    staged_concepts, whole_concepts = (_by_concept(results, recipe) for recipe in ("grape-text", "end-to-end-text"))
    name = max(staged_concepts, key=lambda name: int(staged_concepts[name][0]["pairs"]), default="")
    seeds = {"staged": staged_concepts.get(name, []), "whole": whole_concepts.get(name, [])}
    rows = SHOTS | {"chance": "a random point", "fixed": "one fixed point"}
    lines = [Line(row, _cells(seeds, key), key, trivial=key in BASELINES) for key, row in rows.items()]
    staged, whole = (number(lines[1], column) for column in seeds)
    reading = NOT_MEASURED
    if staged is not None and whole is not None:
        reading = f"From one film: {staged:.3f} with stages, {whole:.3f} end to end."
    columns = (Column("staged", "Staged", "higher"), Column("whole", "End to end", "higher"))
    notes = (f"Of {name or 'no finding'}, the one with the most boxes. {_NOTE}",)
    return Table("Few films, with stages and without", columns, tuple(lines), reading, notes=notes)
