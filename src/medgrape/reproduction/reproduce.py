"""All of it: which jobs some suites need, the jobs done, the tables written, one report."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from medgrape.config import Config, load_config, parse_config
from medgrape.data.files import whole_file
from medgrape.errors import UserError
from medgrape.progress import Track, Watch, quietly, unwatched
from medgrape.reproduction.data_facts import DataFacts
from medgrape.reproduction.files import as_csv, as_latex
from medgrape.reproduction.jobs import Job, Place, Role
from medgrape.reproduction.page import page
from medgrape.reproduction.recipes import FULL, QUICK
from medgrape.reproduction.results import Results
from medgrape.reproduction.suites.building import Suite
from medgrape.reproduction.suites.registry import SUITES
from medgrape.reproduction.tables import Table
from medgrape.reproduction.work import Tell, do_all

SEEDS, QUICK_SEEDS = (0, 1, 2, 3, 42), (0, 1)
NOTED = "suite.json"


@dataclass(frozen=True)
class Request:
    """What somebody asks for."""

    suites: tuple[Suite, ...]
    data: Path
    out: Path
    second: Path | None = None
    seeds: tuple[int, ...] = ()
    quick: bool = False
    config: Path | None = None

    def results(self) -> Results:
        """Where results are found, and with which settings they are made."""
        base = load_config(self.config or (QUICK if self.quick else FULL))
        data: dict[Role, DataFacts] = {"first": DataFacts.of(self.data)}
        if self.second is not None:
            data["second"] = DataFacts.of(self.second)
        draws, faithful = (2, 24) if self.quick else (5, 200)
        return Results(
            Place(base, data, self.out, draws, faithful), self.seeds or (QUICK_SEEDS if self.quick else SEEDS)
        )

    @property
    def command(self) -> str:
        """What made a table, but for the suite's name: names of folders are people's own."""
        given = ["--data DATA", "--second SECOND" if self.second else "", "--out OUT"]
        given += ["--seeds " + ",".join(map(str, self.seeds)) if self.seeds else "", "--quick" if self.quick else ""]
        given += ["--config SETTINGS" if self.config else ""]
        return " ".join(part for part in given if part)


def jobs_of(request: Request, results: Results) -> tuple[Job, ...]:
    """Every job once, in the order in which suites ask for them; suites without their data set ask for none."""
    wanted = (job for suite in request.suites if results.has(suite.role) for job in suite.needs(results))
    return tuple(dict.fromkeys(wanted))


def reproduce(
    request: Request, *, tell: Tell = lambda _: None, track: Track = quietly, watch: Watch = unwatched
) -> dict[str, Any]:
    """Do the jobs that are not done, and write the report."""
    results = request.results()
    _note(request, results)
    do_all(jobs_of(request, results), results.place, tell, track, watch)
    return write_report(results, request.suites, request.command)


def _note(request: Request, results: Results) -> None:
    """What the folder is for; with other settings or films it is another one."""
    told = {
        "command": request.command, "seeds": list(results.seeds), "draws": results.place.draws,
        "faithful": results.place.faithful, "base": results.place.base.model_dump(mode="json"),
        "data": {role: facts.to_json() for role, facts in results.place.data.items()},
    }  # fmt: skip
    with whole_file(results.place.out / NOTED) as draft:
        draft.write_text(json.dumps(told, indent=1, allow_nan=True) + "\n", "utf-8")


def report_again(out: Path) -> dict[str, Any]:
    """The report from the results of an earlier command alone: no film and no model is needed."""
    path = out / NOTED
    if not path.is_file():
        raise UserError(f"{out} has no {NOTED}: run some suites there first, such as medgrape reproduce all --quick.")
    told = json.loads(path.read_text("utf-8"))
    data = {role: DataFacts.from_json(facts) for role, facts in told["data"].items()}
    base: Config = parse_config(told["base"], str(path))
    place = Place(base, data, out, told["draws"], told["faithful"])
    return write_report(Results(place, tuple(told["seeds"])), tuple(SUITES.values()), told["command"])


def write_report(results: Results, suites: Sequence[Suite], command: str) -> dict[str, Any]:
    """``report/index.html``, and a CSV and a LaTeX file for each table."""
    made, warnings = [], list(_missing(results, suites))
    for suite in suites:
        if results.has(suite.role) and _any_done(results, suite):
            made.append(replace(suite.build(results), command=f"medgrape reproduce {suite.name} {command}"))
    folder = results.place.out / "report"
    for table in made:
        for suffix, text in (("csv", as_csv(table)), ("tex", as_latex(table))):
            _write(folder / f"{table.suite}.{suffix}", text)
    _write(folder / "index.html", page(results, made, [*warnings, *_software(results, suites)]))
    return {
        "report": str(folder / "index.html"),
        "tables": [_told(table) for table in made],
        "warnings": warnings,
    }


def _any_done(results: Results, suite: Suite) -> bool:
    jobs = suite.needs(results)
    return not jobs or any(results.place.found(job) is not None for job in jobs)


def _missing(results: Results, suites: Sequence[Suite]) -> list[str]:
    told = []
    without = [suite.name for suite in suites if not results.has(suite.role)]
    if without:
        told.append(f"There is no second data set, so these tables are left out: {', '.join(without)}.")
    undone = []
    for suite in suites:
        jobs = suite.needs(results) if results.has(suite.role) else ()
        left = sum(results.place.found(job) is None for job in jobs)
        undone += [f"{suite.name} {left} of {len(jobs)}"] if left else []
    if undone:
        told.append(f"Jobs that are not done yet: {', '.join(undone)}.")
    if len(results.seeds) < 5:
        told.append(f"Few seeds ({len(results.seeds)}): standard deviations and t-tests over so few say little.")
    return told


def _software(results: Results, suites: Sequence[Suite]) -> list[str]:
    """Results of several states of the software are told apart."""
    jobs = {job for suite in suites if results.has(suite.role) for job in suite.needs(results)}
    states = {told["software"] for told in (results.place.found(job) for job in jobs) if told is not None}
    return (
        [f"Results come from {len(states)} states of the software: {', '.join(sorted(states))}."]
        if len(states) > 1
        else []
    )


def _told(table: Table) -> dict[str, Any]:
    return {"suite": table.suite, "title": table.title, "labels": list(table.labels), "reading": table.reading}


def _write(path: Path, text: str) -> None:
    with whole_file(path) as draft:
        draft.write_text(text, "utf-8")
