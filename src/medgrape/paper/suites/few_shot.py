"""Tables of findings that are learnt from a sentence and few films."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from medgrape.paper.jobs import Role
from medgrape.paper.measures.methods import FILMS
from medgrape.paper.results import Results
from medgrape.paper.suites.base import Suite, number, published
from medgrape.paper.suites.plots import shots_plot
from medgrape.paper.tables import Cell, Column, Line, Table, spread

_NOTE = (
    "Means over the seeds of training and, within each, over draws of the examples; the standard deviation is over the "
    "seeds. The text projection is made to forget the finding first, where there are others to learn it from; the "
    "paper's had seen it."
)


def _concepts(results: Results, recipe: str, role: Role) -> list[dict[str, Any]]:
    """Those of the first seed that is done; all seeds have the same."""
    found = [told["concepts"] for told in results.found("few-shot", recipe, role) if told.get("concepts")]
    return list(found[0]) if found else []


def _over_seeds(results: Results, recipe: str, role: Role, concept: str, pick: Callable[[dict[str, Any]], Any]) -> Cell:
    values = [
        pick(one)
        for told in results.found("few-shot", recipe, role)
        for one in told.get("concepts", [])
        if one["name"] == concept
    ]
    return spread(values)


def _shot(films: int) -> Callable[[dict[str, Any]], float | None]:
    return lambda one: next((shots["mean"] for shots in one["shots"] if shots["films"] == films), None)


def _films(count: int) -> str:
    return {0: "the sentence alone", 1: "1 film"}.get(count, f"{count} films")


def _lines(results: Results, suite: str, recipe: str, role: Role, prefix: str = "") -> list[Line]:
    paper = published()[suite] if not prefix else {}
    concepts = [one["name"] for one in _concepts(results, recipe, role)]
    rows: list[tuple[str, str, Callable[[dict[str, Any]], Any], bool]] = [
        (_films(films), str(films), _shot(films), False) for films in FILMS
    ]
    rows.append(("all training films", "full", itemgetter("full"), False))
    if not prefix:
        rows.append(("a random point", "chance", itemgetter("chance"), True))
        rows.append(("one fixed point for each finding", "fixed", itemgetter("fixed"), True))
    return [
        Line(
            f"{prefix}{title}",
            {name: _over_seeds(results, recipe, role, name, pick) for name in concepts},
            {name: text for name, text in paper.get(key, {}).items() if name in concepts},
            trivial=trivial,
        )
        for title, key, pick, trivial in rows
    ]


def _few_shot(results: Results, suite: str, title: str, labels: tuple[str, ...], role: Role) -> Table:
    lines = _lines(results, suite, "grape-text", role)
    if role == "first":
        lines += _lines(results, suite, "ours", role, "medgrape's recipe: ")
    told = results.dataset(role).concepts
    concepts = _concepts(results, "grape-text", role)
    columns = tuple(
        Column(one["name"], f"{told[one['name']].title} ({one['pairs']} pairs)", "higher") for one in concepts
    )
    return Table(
        suite,
        title,
        labels,
        columns,
        tuple(lines),
        _reading(lines, columns),
        notes=(_NOTE, *_warnings(results, role)),
        plots=shots_plot(suite, lines, columns),
    )


def _warnings(results: Results, role: Role) -> list[str]:
    """What the trials themselves had to say, each once."""
    told = [one for found in results.found("few-shot", "grape-text", role) for one in found.get("warnings", [])]
    return list(dict.fromkeys(told))


def _reading(lines: list[Line], columns: tuple[Column, ...]) -> str:
    if not columns:
        return "Not measured: no finding has boxes on training and on test films, or the job is not done yet."
    key, name = columns[0].key, columns[0].title
    one, full, fixed = number(lines[1], key), number(lines[4], key), number(lines[6], key)
    if one is None or full is None:
        return "Not measured yet."
    told = f"{name}: one film points at {one:.3f}, all training films at {full:.3f}"
    return told + ("." if fixed is None else f"; one fixed point at {fixed:.3f}.")


def first(results: Results) -> Table:
    """On the first data set."""
    return _few_shot(results, "few-shot", "A finding learnt from few films", ("tab:zeroshot",), "first")


def second(results: Results) -> Table:
    """On the second data set."""
    return _few_shot(results, "few-shot-second", "The same on the second data set", ("tab:zeroshot_nih",), "second")


def end_to_end(results: Results) -> Table:
    """Stages against everything at once, for the finding with the most boxes."""
    concepts = _concepts(results, "grape-text", "first")
    columns = (Column("staged", "Staged", "higher"), Column("whole", "End to end", "higher"))
    lines = []
    recipes = {"staged": "grape-text", "whole": "end-to-end-text"}
    name = max(concepts, key=lambda one: int(one["pairs"]))["name"] if concepts else ""
    for films in FILMS:
        cells = {key: _over_seeds(results, recipe, "first", name, _shot(films)) for key, recipe in recipes.items()}
        lines.append(
            Line(
                _films(films),
                cells,
                published()["end-to-end-few-shot"][str(films)],
            )
        )
    for title, key in (("a random point", "chance"), ("one fixed point", "fixed")):
        cells = {
            column: _over_seeds(results, recipe, "first", name, itemgetter(key)) for column, recipe in recipes.items()
        }
        lines.append(Line(title, cells, trivial=True))
    staged, whole = (number(lines[1], key) for key in recipes)
    reading = "Not measured yet."
    if staged is not None and whole is not None:
        reading = f"From one film: {staged:.3f} with stages, {whole:.3f} end to end."
    return Table(
        "end-to-end-few-shot",
        "Few films, with stages and without",
        ("tab:n4_zeroshot",),
        columns,
        tuple(lines),
        reading,
        notes=(f"Of {name or 'no finding'}, the one with the most boxes. {_NOTE}",),
    )


SUITES = (
    Suite(
        "few-shot",
        "findings learnt from a sentence and few films",
        ("tab:zeroshot",),
        lambda r: r.jobs("few-shot", "grape-text", "ours"),
        first,
    ),
    Suite(
        "few-shot-second",
        "the same on the second data set",
        ("tab:zeroshot_nih",),
        lambda r: r.jobs("few-shot", "grape-text", role="second"),
        second,
        "second",
    ),
    Suite(
        "end-to-end-few-shot",
        "the same with stages and end to end",
        ("tab:n4_zeroshot",),
        lambda r: r.jobs("few-shot", "grape-text", "end-to-end-text"),
        end_to_end,
    ),
)
