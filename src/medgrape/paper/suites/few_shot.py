"""Tables of findings that are learnt from a sentence and few films."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from medgrape.paper.jobs import Role
from medgrape.paper.measures import FEW_SHOT_FILMS
from medgrape.paper.results import Results
from medgrape.paper.suites.base import NOT_MEASURED, number, published, suite
from medgrape.paper.suites.plots import shots_plot
from medgrape.paper.tables import Cell, Column, Line, Table, spread

_NOTE = (
    "Means over the seeds of training and, within each, over draws of the examples; the standard deviation is over the "
    "seeds. The text projection is made to forget the finding first, where there are others to learn it from; the "
    "paper's had seen it."
)
Pick = Callable[[dict[str, Any]], Any]


def _concepts(results: Results, recipe: str, role: Role) -> list[dict[str, Any]]:
    """Concepts of the first seed that is done; all seeds have the same."""
    found = [figures["concepts"] for figures in results.found("few-shot", recipe, role) if figures.get("concepts")]
    return list(found[0]) if found else []


def _over_seeds(results: Results, recipe: str, role: Role, name: str, pick: Pick) -> Cell:
    concepts = (c for figures in results.found("few-shot", recipe, role) for c in figures.get("concepts", []))
    return spread([pick(concept) for concept in concepts if concept["name"] == name])


def _pointing(films: int) -> Pick:
    """Pick the pointing game after learning from so many films."""
    return lambda concept: next((shots["mean"] for shots in concept["shots"] if shots["films"] == films), None)


def _films(count: int) -> str:
    return {0: "the sentence alone", 1: "1 film"}.get(count, f"{count} films")


def _lines(results: Results, suite: str, recipe: str, role: Role, prefix: str = "") -> list[Line]:
    paper = published()[suite] if not prefix else {}
    names = [concept["name"] for concept in _concepts(results, recipe, role)]
    rows: list[tuple[str, str, Pick, bool]] = [
        (_films(films), str(films), _pointing(films), False) for films in FEW_SHOT_FILMS
    ]
    rows.append(("all training films", "full", itemgetter("full"), False))
    if not prefix:
        rows.append(("a random point", "chance", itemgetter("chance"), True))
        rows.append(("one fixed point for each finding", "fixed", itemgetter("fixed"), True))
    return [
        Line(
            f"{prefix}{title}",
            {name: _over_seeds(results, recipe, role, name, pick) for name in names},
            {name: text for name, text in paper.get(key, {}).items() if name in names},
            trivial=trivial,
        )
        for title, key, pick, trivial in rows
    ]


def _few_shot(results: Results, suite: str, title: str, role: Role) -> Table:
    lines = _lines(results, suite, "grape-text", role)
    if role == "first":
        lines += _lines(results, suite, "ours", role, "medgrape's recipe: ")
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
    found = results.found("few-shot", "grape-text", role)
    warnings = dict.fromkeys(warning for figures in found for warning in figures.get("warnings", []))
    plots = shots_plot(suite, lines, columns)
    return Table(title, columns, tuple(lines), reading, notes=(_NOTE, *warnings), plots=plots)


@suite("few-shot", "tab:zeroshot", needs=lambda r: r.jobs("few-shot", "grape-text", "ours"))
def first(results: Results) -> Table:
    """Findings learnt from a sentence and few films."""
    return _few_shot(results, "few-shot", "A finding learnt from few films", "first")


@suite(
    "few-shot-second",
    "tab:zeroshot_nih",
    needs=lambda r: r.jobs("few-shot", "grape-text", role="second"),
    role="second",
)
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

    paper = published()["end-to-end-few-shot"]
    lines = [Line(_films(films), cells(_pointing(films)), paper[str(films)]) for films in FEW_SHOT_FILMS]
    lines.append(Line("a random point", cells(itemgetter("chance")), trivial=True))
    lines.append(Line("one fixed point", cells(itemgetter("fixed")), trivial=True))
    staged, whole = (number(lines[1], key) for key in recipes)
    reading = NOT_MEASURED
    if staged is not None and whole is not None:
        reading = f"From one film: {staged:.3f} with stages, {whole:.3f} end to end."
    columns = (Column("staged", "Staged", "higher"), Column("whole", "End to end", "higher"))
    notes = (f"Of {name or 'no finding'}, the one with the most boxes. {_NOTE}",)
    return Table("Few films, with stages and without", columns, tuple(lines), reading, notes=notes)
