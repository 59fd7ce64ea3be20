"""All of it: which jobs some suites need, the jobs done, the tables written, one report."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from medgrape.config import load_config, parse_config
from medgrape.errors import UserError
from medgrape.files import whole_file
from medgrape.paper.jobs import Job, Place, Role
from medgrape.paper.recipes import FULL, QUICK, DataFacts, second_base
from medgrape.paper.report import as_csv, as_latex, page
from medgrape.paper.results import Results
from medgrape.paper.suites.base import Suite
from medgrape.paper.suites.registry import SUITES
from medgrape.paper.tables import Table
from medgrape.paper.work import Tell, Work, do_all
from medgrape.progress import Track, Watch, quietly, unwatched

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
    second_config: Path | None = None

    def results(self) -> Results:
        """Where results are found, and with which settings they are made."""
        base = load_config(self.config or (QUICK if self.quick else FULL))
        other = second_base(base) if self.second_config is None else load_config(self.second_config)
        data: dict[Role, DataFacts] = {"first": DataFacts.of(self.data)}
        if self.second is not None:
            data["second"] = DataFacts.of(self.second)
        draws, faithful = (2, 24) if self.quick else (5, 200)
        place = Place({"first": base, "second": other}, data, self.out, draws, faithful)
        return Results(place, self.seeds or (QUICK_SEEDS if self.quick else SEEDS))

    @property
    def options(self) -> str:
        """What was typed, but for the suites' names."""
        given = {
            "--data": self.data, "--second": self.second, "--out": self.out,
            "--seeds": ",".join(map(str, self.seeds)) or None, "--config": self.config,
            "--second-config": self.second_config,
        }  # fmt: skip
        words = [f"{name} {shlex.quote(str(value))}" for name, value in given.items() if value is not None]
        return " ".join([*words, *(["--quick"] if self.quick else [])])


def jobs_of(request: Request, results: Results) -> tuple[Job, ...]:
    """Every job once, in the order in which suites ask for them; suites without their data set ask for none."""
    wanted = (job for suite in request.suites if results.has(suite.role) for job in suite.needs(results))
    return tuple(dict.fromkeys(wanted))


def reproduce(
    request: Request,
    *,
    tell: Tell = lambda _: None,
    track: Track = quietly,
    watch: Watch = unwatched,
    work: Work = do_all,
) -> dict[str, Any]:
    """Do the jobs that are not done, and write the report of all that is there."""
    results = request.results()
    jobs = jobs_of(request, results)
    for job in jobs:
        results.place.found(job)  # what was made with something else is refused before anything is written
    request.out.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(request.out / ".lock", timeout=0):
            told = _noted(request, results)
            work(jobs, results.place, tell, track, watch)
            made = write_report(_from_note(request.out, told), told["options"])
            return made | {"warnings": _missing(results, request.suites)}
    except Timeout:
        raise UserError(f"Another process is at work in {request.out}; wait for it, or choose another --out.") from None


def _noted(request: Request, results: Results) -> dict[str, Any]:
    """What the folder holds, with what earlier commands with the same settings left there; kept as ``suite.json``."""
    place = results.place
    told: dict[str, Any] = {
        "options": request.options, "seeds": list(results.seeds), "draws": place.draws, "faithful": place.faithful,
        "bases": {role: base.model_dump(mode="json") for role, base in place.bases.items()},
        "data": {role: facts.to_json() for role, facts in place.data.items()},
    }  # fmt: skip
    path = request.out / NOTED
    told = json.loads(json.dumps(told))
    if path.is_file():
        before = json.loads(path.read_text("utf-8"))
        if all(before.get(key) == told[key] for key in ("draws", "faithful", "bases")):
            told["seeds"] = list(dict.fromkeys([*before["seeds"], *told["seeds"]]))
            if set(before["data"]) > set(told["data"]):  # what was typed then makes more of the tables
                told["options"] = before["options"]
            told["data"] = before["data"] | told["data"]
    with whole_file(path) as draft:
        draft.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    return told


def report_again(out: Path) -> dict[str, Any]:
    """The report from the results of earlier commands alone: no film and no model is needed."""
    path = out / NOTED
    if not path.is_file():
        raise UserError(f"{out} has no {NOTED}: run some suites there first, such as medgrape reproduce all --quick.")
    told = json.loads(path.read_text("utf-8"))
    return write_report(_from_note(out, told), told["options"])


def _from_note(out: Path, told: dict[str, Any]) -> Results:
    data = {role: DataFacts.from_json(facts) for role, facts in told["data"].items()}
    bases = {role: parse_config(tables, f"{out / NOTED}") for role, tables in told["bases"].items()}
    return Results(Place(bases, data, out, told["draws"], told["faithful"]), tuple(told["seeds"]))


def write_report(results: Results, options: str) -> dict[str, Any]:
    """``report/index.html``, and a CSV and a LaTeX file for each table of which any job is done."""
    suites = [suite for suite in SUITES.values() if results.has(suite.role) and _any_done(results, suite)]
    made = [replace(suite.build(results), command=f"medgrape reproduce {suite.name} {options}") for suite in suites]
    warnings = _missing(results, suites)
    folder = results.place.out / "report"
    for table in made:
        for suffix, text in (("csv", as_csv(table)), ("tex", as_latex(table))):
            _write(folder / f"{table.suite}.{suffix}", text)
    _write(folder / "index.html", page(results, made, [*warnings, *_software(results, suites)]))
    return {"report": str(folder / "index.html"), "tables": [_told(table) for table in made], "warnings": warnings}


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
