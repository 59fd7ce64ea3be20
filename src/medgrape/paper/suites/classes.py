"""Tables of classes: modules, baselines, CSR against GRAPE, the second data set, end to end, class by class."""

from collections.abc import Callable, Sequence

from medgrape.paper.jobs import Job
from medgrape.paper.results import Results
from medgrape.paper.suites.base import (
    ENERGY,
    F1,
    PAIRS,
    POINTS,
    Row,
    Suite,
    corrected,
    named,
    number,
    published,
    recipe_lines,
    trivial_lines,
    versus,
)
from medgrape.paper.suites.plots import dots_plot
from medgrape.paper.tables import Cell, Column, Line, Table, Value

MAPS = (F1, POINTS, PAIRS, ENERGY)
_OURS = "ours"


def _needs(*recipes: str) -> Callable[[Results], Sequence[Job]]:
    def needs(results: Results) -> Sequence[Job]:
        return results.jobs("films", *recipes)

    return needs


def modules(results: Results) -> Table:
    """What each module adds."""
    csr = Row("csr", "CSR")
    rows = (
        csr,
        Row("grape", "+ graph head"),
        Row("csr-text", "+ text"),
        Row("grape-text", "+ graph head + text"),
        Row("grape", "GRAPE: graph head + safety check", "safety", again=True),
        Row(_OURS),
    )
    lines = recipe_lines(results, "modules", rows, MAPS, csr)
    lines += trivial_lines(results, "csr", MAPS)
    return Table(
        "modules",
        "What each module adds",
        ("tab:tbx11k",),
        MAPS,
        tuple(lines),
        versus(lines, named(lines, "+ graph head"), lines[0], F1),
        csr.told,
        ("The safety check changes no class and no map, so its row is that of the graph head, here as in the paper.",),
        plots=dots_plot("modules", lines, F1),
    )


def baselines(results: Results) -> Table:
    """Methods that learn in other ways."""
    grape = Row("grape")
    rows = (Row("black-box"), Row("end-to-end"), Row("cbm"), Row("pip-net"), grape, Row(_OURS))
    lines = recipe_lines(results, "baselines", rows, MAPS, grape)
    lines += trivial_lines(results, "grape", MAPS)
    return Table(
        "baselines",
        "Other methods on the same backbone",
        ("tab:tbx11k",),
        MAPS,
        tuple(lines),
        versus(lines, lines[0], named(lines, grape.told), F1),
        grape.told,
        (
            "The plain backbone knows no findings: its map is that of the class it answers. PIP-Net's parts have no "
            "names: a finding's map is the sum of the parts that go with it on training films.",
        ),
        plots=dots_plot("baselines", lines, PAIRS),
    )


def compare(results: Results) -> Table:
    """CSR against GRAPE over all seeds, on both data sets."""
    columns = (F1, POINTS, PAIRS)
    first = (Row("csr", "CSR, first set", "first-csr"), Row("grape", "GRAPE, first set", "first-grape"))
    lines = recipe_lines(results, "compare", first, columns, first[0]) + trivial_lines(results, "csr", columns)
    main = len(lines)
    if results.has("second"):
        second = (
            Row("csr", "CSR, second set", "second-csr", "second"),
            Row("grape-text", "GRAPE with text, second set", "second-grape-text", "second"),
        )
        more = recipe_lines(results, "compare", second, columns, second[0])
        more += trivial_lines(results, "csr", columns, "second")
        lines = corrected([*lines, *more])
    return Table(
        "compare",
        "CSR against GRAPE",
        ("tab:compare",),
        columns,
        tuple(lines),
        versus(lines[:main], lines[1], lines[0], F1),
        "CSR on the same set",
        ("The paper: p = 0.0013 on TBX11K, p = 0.894 on NIH, by a t-test over five seeds.",),
    )


def nih(results: Results) -> Table:
    """The modules on the second data set."""
    columns = MAPS
    csr = Row("csr", "CSR", role="second")
    rows = (
        csr,
        Row("grape", "+ graph head + safety check", role="second"),
        Row("csr-text", "+ safety check + text", role="second"),
        Row("grape-text", "GRAPE (all)", role="second"),
    )
    lines = recipe_lines(results, "nih", rows, columns, csr) + trivial_lines(results, "csr", columns, "second")
    return Table(
        "nih",
        "The modules on the second data set",
        ("tab:nih",),
        columns,
        tuple(lines),
        versus(lines, lines[3], lines[0], F1),
        csr.told,
    )


def end_to_end(results: Results) -> Table:
    """Stages against everything at once."""
    staged = Row("grape", "Staged")
    rows = (staged, Row("end-to-end", "End to end"))
    lines = recipe_lines(results, "end-to-end", rows, MAPS, staged) + trivial_lines(results, "grape", MAPS)
    return Table(
        "end-to-end",
        "Stages, or everything at once",
        ("tab:n4",),
        MAPS,
        tuple(lines),
        versus(lines, lines[1], lines[0], F1),
        staged.told,
    )


def by_class(results: Results) -> Table:
    """F1 of each class."""
    names = results.dataset("first").classes
    columns = tuple(Column(f"f1.{name}", name, "higher") for name in names)
    rows = (Row("csr"), Row("grape"), Row(_OURS))
    lines = recipe_lines(results, "classes", rows, columns)
    blind = {column.key: results.value("csr", f"majority.{column.key}") for column in columns}
    lines.append(Line("always the commonest class", blind, trivial=True))
    gains = [(gain, column.title) for column in columns if (gain := _gain(lines, column.key)) is not None]
    most = max(gains, key=lambda one: abs(one[0]), default=None)
    reading = (
        "Not measured yet." if most is None else f"From CSR to GRAPE, F1 changes most for {most[1]}: {most[0]:+.3f}."
    )
    return Table("classes", "F1 of each class", ("tab:perclass_f1",), columns, tuple(lines), reading)


def _gain(lines: Sequence[Line], key: str) -> float | None:
    ours, theirs = number(lines[1], key), number(lines[0], key)
    return None if ours is None or theirs is None else ours - theirs


def confusion(results: Results) -> Table:
    """Who is taken for whom, with the first seed."""
    names, seed = results.dataset("first").classes, results.seeds[0]
    columns = (*(Column(f"said.{name}", f"said: {name}") for name in names), Column("recall", "Recall", "higher"))
    lines, wrong = [], []
    for recipe in ("csr", "grape"):
        found = results.by_seed("films", recipe).get(seed)
        if found is not None:
            matrix: list[list[int]] = found["confusion"]
            lines += [_taken(recipe, names, place, counts) for place, counts in enumerate(matrix)]
            off = sum(map(sum, matrix)) - sum(row[place] for place, row in enumerate(matrix))
            wrong.append(f"{Row(recipe).told} errs on {off:,} of {found['films']:,} films")
            blind = found["majority"], found["majority.accuracy"]
            if recipe == "grape" and blind[0] is not None:
                wrong.append(f"always “{blind[0]}” on {round((1 - blind[1]) * found['films']):,}")
    reading = f"With seed {seed}: {'; '.join(wrong)}." if wrong else "Not measured yet."
    notes = (f"Rows: what the films are. Of seed {seed} alone.",)
    return Table("confusion", "Who is taken for whom", ("tab:confusion",), columns, tuple(lines), reading, notes=notes)


def _taken(recipe: str, names: Sequence[str], place: int, counts: Sequence[int]) -> Line:
    cells: dict[str, Cell] = {
        f"said.{said}": Value(count, whole=True) for said, count in zip(names, counts, strict=True)
    }
    cells["recall"] = Value(counts[place] / sum(counts)) if sum(counts) else None
    paper = published()["confusion"].get(f"{recipe}-{names[place]}", {})
    told = {key if key == "recall" else f"said.{key}": text for key, text in paper.items()}
    return Line(f"{Row(recipe).told}: {names[place]}", cells, told)


def calibration(results: Results) -> Table:
    """Are the probabilities honest?"""
    columns = (Column("ece", "Calibration error", "lower"), Column("brier", "Brier score", "lower"))
    names = ("csr", "grape", _OURS, "black-box", "end-to-end", "cbm", "pip-net")
    lines = recipe_lines(results, "calibration", [Row(name) for name in names], columns)
    constant = {key: results.value("csr", f"constant.{key}") for key in ("ece", "brier")}
    lines.append(Line("always the training frequencies", constant, trivial=True))
    found = [(value, line.title) for line in lines if (value := number(line, "brier")) is not None and not line.trivial]
    best = min(found, default=None)
    blind = number(lines[-1], "brier")
    reading = "Not measured yet."
    if best is not None:
        reading = f"The best Brier score is {best[0]:.3f} ({best[1]})"
        reading += "." if blind is None else f"; constant probabilities get {blind:.3f}."
    notes = ("Expected error in 15 bins; the Brier score is summed over classes, 0 to 2. Not in the paper.",)
    return Table("calibration", "Calibration", (), columns, tuple(lines), reading, notes=notes)


SUITES = (
    Suite(
        "modules",
        "what each module adds to CSR",
        ("tab:tbx11k",),
        _needs("csr", "grape", "csr-text", "grape-text", _OURS),
        modules,
    ),
    Suite(
        "baselines",
        "plain backbone, end-to-end GRAPE, CBM, PIP-Net",
        ("tab:tbx11k",),
        _needs("black-box", "end-to-end", "cbm", "pip-net", "grape", _OURS),
        baselines,
    ),
    Suite(
        "compare",
        "CSR against GRAPE over all seeds, both data sets",
        ("tab:compare",),
        lambda r: (*r.jobs("films", "csr", "grape"), *r.jobs("films", "csr", "grape-text", role="second")),
        compare,
    ),
    Suite(
        "nih",
        "the modules on the second data set",
        ("tab:nih",),
        lambda r: r.jobs("films", "csr", "grape", "csr-text", "grape-text", role="second"),
        nih,
        "second",
    ),
    Suite("end-to-end", "stages against everything at once", ("tab:n4",), _needs("grape", "end-to-end"), end_to_end),
    Suite("classes", "F1 of each class", ("tab:perclass_f1",), _needs("csr", "grape", _OURS), by_class),
    Suite(
        "calibration",
        "are the probabilities honest?",
        (),
        _needs("csr", "grape", _OURS, "black-box", "end-to-end", "cbm", "pip-net"),
        calibration,
    ),
    Suite("confusion", "who is taken for whom", ("tab:confusion",), _needs("csr", "grape"), confusion),
)
