"""Tables of classes: modules, baselines, CSR against GRAPE, the second data set, end to end, class by class."""

from dataclasses import replace

from medgrape.paper.recipes import fixed_recipes
from medgrape.paper.results import Results
from medgrape.paper.suites.base import (
    ENERGY,
    F1,
    NOT_MEASURED,
    PAIRS,
    POINTS,
    RecipeRow,
    films,
    number,
    ranked,
    recipe_lines,
    recipe_table,
    suite,
    trivial_lines,
    versus,
)
from medgrape.paper.suites.plots import dots_plot
from medgrape.paper.tables import Cell, Column, Line, Table, Value

MAPS = (F1, POINTS, PAIRS, ENERGY)


@suite("modules", "tab:tbx11k", needs=films("csr", "grape", "csr-text", "grape-text", "ours"))
def modules(results: Results) -> Table:
    """What each module adds to CSR."""
    rows = (
        RecipeRow("csr", "CSR"),
        RecipeRow("grape", "+ graph head"),
        RecipeRow("csr-text", "+ text"),
        RecipeRow("grape-text", "+ graph head + text"),
        RecipeRow("grape", "GRAPE: graph head + safety check", "safety", again=True),
        RecipeRow("ours"),
    )
    note = "The safety check changes no class and no map, so its row is that of the graph head, here as in the paper."
    table = recipe_table(results, "What each module adds", rows, MAPS, read=1, notes=(note,))
    return replace(table, plots=dots_plot("modules", table.lines, F1))


@suite("baselines", "tab:tbx11k", needs=films("black-box", "end-to-end", "cbm", "pip-net", "grape", "ours"))
def baselines(results: Results) -> Table:
    """Other methods on the same backbone: plain backbone, end-to-end GRAPE, CBM, PIP-Net."""
    rows = [RecipeRow(name) for name in ("black-box", "end-to-end", "cbm", "pip-net", "grape", "ours")]
    note = (
        "The plain backbone knows no findings: its map is that of the class it answers. PIP-Net's parts have no "
        "names: a finding's map is the sum of the parts that go with it on training films."
    )
    title = "Other methods on the same backbone"
    table = recipe_table(results, title, rows, MAPS, against=4, read=0, notes=(note,))
    return replace(table, plots=dots_plot("baselines", table.lines, PAIRS))


@suite(
    "compare",
    "tab:compare",
    needs=lambda r: (*r.jobs("films", "csr", "grape"), *r.jobs("films", "csr", "grape-text", role="second")),
)
def compare(results: Results) -> Table:
    """CSR against GRAPE over all seeds, on both data sets."""
    columns = (F1, POINTS, PAIRS)
    first = (RecipeRow("csr", "CSR, first set", "first-csr"), RecipeRow("grape", "GRAPE, first set", "first-grape"))
    lines = recipe_lines(results, first, columns, first[0]) + trivial_lines(results, "csr", columns)
    reading = versus(lines, lines[1], lines[0], F1)
    if "second" in results.data:
        second = (
            RecipeRow("csr", "CSR, second set", "second-csr", "second"),
            RecipeRow("grape-text", "GRAPE with text, second set", "second-grape-text", "second"),
        )
        lines += recipe_lines(results, second, columns, second[0]) + trivial_lines(results, "csr", columns, "second")
    notes = ("The paper: p = 0.0013 on TBX11K, p = 0.894 on NIH, by a t-test over five seeds.",)
    return Table("CSR against GRAPE", columns, tuple(lines), reading, "CSR on the same set", notes)


@suite("nih", "tab:nih", needs=films("csr", "grape", "csr-text", "grape-text", role="second"), role="second")
def nih(results: Results) -> Table:
    """The modules on the second data set."""
    rows = (
        RecipeRow("csr", "CSR", role="second"),
        RecipeRow("grape", "+ graph head + safety check", role="second"),
        RecipeRow("csr-text", "+ safety check + text", role="second"),
        RecipeRow("grape-text", "GRAPE (all)", role="second"),
    )
    return recipe_table(results, "The modules on the second data set", rows, MAPS, read=3)


@suite("end-to-end", "tab:n4", needs=films("grape", "end-to-end"))
def end_to_end(results: Results) -> Table:
    """Training in stages against training end to end."""
    rows = (RecipeRow("grape", "Staged"), RecipeRow("end-to-end", "End to end"))
    return recipe_table(results, "Stages, or everything at once", rows, MAPS, read=1)


@suite("classes", "tab:perclass_f1", needs=films("csr", "grape", "ours"))
def by_class(results: Results) -> Table:
    """F1 of each class."""
    columns = tuple(Column(f"f1.{name}", name, "higher") for name in results.data["first"].classes)
    lines = recipe_lines(results, [RecipeRow(name) for name in ("csr", "grape", "ours")], columns)
    majority = {column.key: results.value("csr", f"majority.{column.key}") for column in columns}
    gains, reading = [], NOT_MEASURED
    for column in columns:
        csr, grape = number(lines[0], column.key), number(lines[1], column.key)
        if csr is not None and grape is not None:
            gains.append((grape - csr, column.title))
    if gains:
        gain, name = max(gains, key=lambda gain: abs(gain[0]))
        reading = f"From CSR to GRAPE, F1 changes most for {name}: {gain:+.3f}."
    lines.append(Line("always the commonest class", majority, trivial=True))
    return Table("F1 of each class", columns, tuple(lines), reading)


CALIBRATED = ("csr", "grape", "ours", "black-box", "end-to-end", "cbm", "pip-net")


@suite("calibration", needs=films(*CALIBRATED))
def calibration(results: Results) -> Table:
    """Calibration error and Brier score of the class probabilities."""
    columns = (Column("ece", "Calibration error", "lower"), Column("brier", "Brier score", "lower"))
    lines = recipe_lines(results, [RecipeRow(name) for name in CALIBRATED], columns)
    constant = {column.key: results.value("csr", f"constant.{column.key}") for column in columns}
    lines.append(Line("always the training frequencies", constant, trivial=True))
    scores, trivial = ranked(lines, "brier"), number(lines[-1], "brier")
    reading = NOT_MEASURED
    if scores:
        reading = f"The best Brier score is {scores[0][0]:.3f} ({scores[0][1]})"
        reading += "." if trivial is None else f"; constant probabilities get {trivial:.3f}."
    notes = ("Expected error in 15 bins; the Brier score is summed over classes, 0 to 2. Not in the paper.",)
    return Table("Calibration", columns, tuple(lines), reading, notes=notes)


@suite("confusion", "tab:confusion", needs=films("csr", "grape"))
def confusion(results: Results) -> Table:
    """Confusion matrices of CSR and GRAPE, with the first seed."""
    names, seed = results.data["first"].classes, results.seeds[0]
    columns = (*(Column(f"said.{name}", f"said: {name}") for name in names), Column("recall", "Recall", "higher"))
    lines, errors = [], []
    for recipe in ("csr", "grape"):
        title, figures = fixed_recipes()[recipe].title, results.by_seed("films", recipe).get(seed)
        if figures is None:
            continue
        wrong = 0
        for place, (true_class, counts) in enumerate(zip(names, figures["confusion"], strict=True)):
            cells: dict[str, Cell] = {
                f"said.{name}": Value(count, whole=True) for name, count in zip(names, counts, strict=True)
            }
            cells["recall"] = Value(counts[place] / sum(counts)) if sum(counts) else None
            lines.append(Line(f"{title}: {true_class}", cells, f"{recipe}-{true_class}"))
            wrong += sum(counts) - counts[place]
        errors.append(f"{title} errs on {wrong:,} of {figures['films']:,} films")
        if recipe == "grape" and figures["majority"] is not None:
            missed = round((1 - figures["majority.accuracy"]) * figures["films"])
            errors.append(f"always “{figures['majority']}” on {missed:,}")
    reading = f"With seed {seed}: {'; '.join(errors)}." if errors else NOT_MEASURED
    notes = (f"Rows: what the films are. Of seed {seed} alone.",)
    return Table("Who is taken for whom", columns, tuple(lines), reading, notes=notes)
