"""Tables of findings that are learnt from a sentence and few films."""

from collections.abc import Callable
from operator import itemgetter
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
Pick = Callable[[dict[str, Any]], Any]  # picks a figure of a concept
CHANCE, FIXED, FULL = itemgetter("chance"), itemgetter("fixed"), itemgetter("full")


def _concepts(results: Results, recipe: str, role: Role) -> list[dict[str, Any]]:
    """The concepts of the first finished seed; all seeds have the same."""
    by_seed = [figures["concepts"] for figures in results.figures("few-shot", recipe, role) if figures.get("concepts")]
    return list(by_seed[0]) if by_seed else []


def _over_seeds(results: Results, recipe: str, role: Role, name: str, pick: Pick) -> Cell:
    concepts = (c for figures in results.figures("few-shot", recipe, role) for c in figures.get("concepts", []))
    return spread([pick(concept) for concept in concepts if concept["name"] == name])


def _by_films() -> list[tuple[str, str, Pick]]:
    """Title, key and pointing share of each number of films."""

    def pointing(films: int) -> Pick:
        return lambda concept: next((shots["mean"] for shots in concept["shots"] if shots["films"] == films), None)

    titles = {0: "the sentence alone", 1: "1 film"}
    return [(titles.get(films, f"{films} films"), str(films), pointing(films)) for films in FEW_SHOT_FILMS]


def _lines(results: Results, recipe: str, role: Role, prefix: str = "") -> list[Line]:
    """A line for each number of films; those with a prefix have no figures in the paper and no baselines."""
    rows: list[tuple[str, str, Pick]] = [*_by_films(), ("all training films", "full", FULL)]
    if not prefix:
        rows += [("a random point", "chance", CHANCE), ("one fixed point for each finding", "fixed", FIXED)]
    names = [concept["name"] for concept in _concepts(results, recipe, role)]
    return [
        Line(
            f"{prefix}{title}",
            {name: _over_seeds(results, recipe, role, name, pick) for name in names},
            "" if prefix else key,
            trivial=pick in (CHANCE, FIXED),
        )
        for title, key, pick in rows
    ]


def _few_shot(results: Results, suite: str, title: str, role: Role) -> Table:
    lines = _lines(results, "grape-text", role)
    if role == "first":
        lines += _lines(results, "ours", role, "medgrape's recipe: ")
    concepts = results.dataset(role).concepts
    columns = tuple(
        Column(concept["name"], f"{concepts[concept['name']].title} ({concept['pairs']} pairs)", "higher")
        for concept in _concepts(results, "grape-text", role)
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
    concepts = _concepts(results, "grape-text", "first")
    name = max(concepts, key=lambda concept: int(concept["pairs"]))["name"] if concepts else ""
    recipes = {"staged": "grape-text", "whole": "end-to-end-text"}

    def cells(pick: Pick) -> dict[str, Cell]:
        return {column: _over_seeds(results, recipe, "first", name, pick) for column, recipe in recipes.items()}

    lines = [Line(title, cells(pick), key) for title, key, pick in _by_films()]
    lines.append(Line("a random point", cells(CHANCE), trivial=True))
    lines.append(Line("one fixed point", cells(FIXED), trivial=True))
    staged, whole = (number(lines[1], key) for key in recipes)
    reading = NOT_MEASURED
    if staged is not None and whole is not None:
        reading = f"From one film: {staged:.3f} with stages, {whole:.3f} end to end."
    columns = (Column("staged", "Staged", "higher"), Column("whole", "End to end", "higher"))
    notes = (f"Of {name or 'no finding'}, the one with the most boxes. {_NOTE}",)
    return Table("Few films, with stages and without", columns, tuple(lines), reading, notes=notes)
