"""The reproduction engine: do the jobs of a request that are not done, and write the tables of all results."""

import base64
import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from medgrape.config import load_config, parse_config
from medgrape.errors import UserError
from medgrape.evaluation.page import render_template
from medgrape.evaluation.report import NOTICE
from medgrape.evaluation.statistics import ROUNDS
from medgrape.files import locked_folder, write_json, write_text
from medgrape.paper.jobs import Job, PaperJob, Role, Tell, Work, Workspace, do_all
from medgrape.paper.recipes import FULL, QUICK, DataFacts, second_base
from medgrape.paper.results import Results
from medgrape.paper.suites import SUITES
from medgrape.paper.suites.base import Suite
from medgrape.paper.tables import Table, as_csv, as_latex, shown
from medgrape.progress import Track, Watch, quietly, unwatched

SEEDS, QUICK_SEEDS = (0, 1, 2, 3, 42), (0, 1)
NOTE = "suite.json"
FIRST_READ = ("modules", "baselines", "pointing", "gate")  # suites whose readings are above all tables


class Request(ABC):
    """Jobs to do, and the tables to make of their results."""

    out: Path
    reports_after_each = False  # whether to write the tables after every job, not only at the end

    @abstractmethod
    def jobs(self) -> Sequence[Job]:
        """Return every job once, in order."""

    def begin(self) -> None:  # noqa: B027 (optional)
        """Write files into the output folder before the first job."""

    @abstractmethod
    def report(self) -> dict[str, Any]:
        """Write the tables, and return them as plain data."""


def reproduce(
    request: Request,
    *,
    tell: Tell = lambda _: None,
    track: Track = quietly,
    watch: Watch = unwatched,
    work: Work = do_all,
) -> dict[str, Any]:
    """Do the jobs that have no result, and write the tables. A request that cannot be done changes nothing."""
    jobs = request.jobs()
    for job in jobs:
        job.check()
        job.load_result()
    busy = f"Another process is at work in {request.out}; wait for it, or choose another --out."
    with locked_folder(request.out, busy):
        request.begin()
        work(jobs, tell, track, watch, request.report if request.reports_after_each else lambda: None)
        return request.report()


@dataclass(frozen=True)
class PaperRequest(Request):
    """Some of the paper's tables on prepared data sets."""

    suites: tuple[Suite, ...]
    data: Path
    out: Path
    second: Path | None = None
    seeds: tuple[int, ...] = ()
    quick: bool = False
    config: Path | None = None
    second_config: Path | None = None

    @cached_property
    def workspace(self) -> Workspace:
        """Settings, data sets and output folder."""
        base = load_config(self.config or (QUICK if self.quick else FULL))
        other = second_base(base) if self.second_config is None else load_config(self.second_config)
        folders: dict[Role, Path | None] = {"first": self.data, "second": self.second}
        data = {role: DataFacts.of(folder) for role, folder in folders.items() if folder is not None}
        draws, faithful = (2, 24) if self.quick else (5, 200)
        return Workspace({"first": base, "second": other}, data, self.out, draws, faithful)

    def results(self) -> Results:
        """Return the results in the output folder."""
        return Results(self.workspace, self.seeds or (QUICK_SEEDS if self.quick else SEEDS))

    def jobs(self) -> tuple[PaperJob, ...]:
        """Return every job once, in the order of the suites; none for suites without their data set."""
        results = self.results()
        needed = (job for suite in self.suites if suite.role in results.data for job in suite.needs(results))
        return tuple(dict.fromkeys(needed))

    @property
    def options(self) -> str:
        """The options as typed on the command line, without the names of the suites."""
        values = {
            "--data": self.data, "--second": self.second, "--out": self.out,
            "--seeds": ",".join(map(str, self.seeds)) or None, "--config": self.config,
            "--second-config": self.second_config,
        }  # fmt: skip
        words = [f"{name} {shlex.quote(str(value))}" for name, value in values.items() if value is not None]
        return " ".join(words + ["--quick"] * self.quick)

    def begin(self) -> None:
        """Write ``suite.json``: settings and data sets, with those of earlier commands that had the same settings."""
        space, path = self.workspace, self.out / NOTE
        payload: dict[str, Any] = {
            "options": self.options, "seeds": list(self.results().seeds), "draws": space.draws,
            "faithful": space.faithful,
            "bases": {role: base.model_dump(mode="json") for role, base in space.bases.items()},
            "data": {role: facts.to_json() for role, facts in space.data.items()},
        }  # fmt: skip
        payload = json.loads(json.dumps(payload))
        if path.is_file():
            before = json.loads(path.read_text("utf-8"))
            if all(before.get(key) == payload[key] for key in ("draws", "faithful", "bases")):
                payload["seeds"] = list(dict.fromkeys([*before["seeds"], *payload["seeds"]]))
                if set(before["data"]) > set(payload["data"]):  # the earlier command makes more of the tables
                    payload["options"] = before["options"]
                payload["data"] = before["data"] | payload["data"]
        write_json(path, payload, indent=1, allow_nan=True)  # a gate may be infinite

    def report(self) -> dict[str, Any]:
        """Write the report of all results, with warnings about the suites of this request."""
        return report_again(self.out) | {"warnings": _warnings(self.results(), self.suites)}


def report_again(out: Path) -> dict[str, Any]:
    """Write the report from the results of earlier commands; neither films nor models are needed.

    It is ``report/index.html``, and CSV and LaTeX of each table of which any job is done.
    """
    path = out / NOTE
    if not path.is_file():
        raise UserError(f"{out} has no {NOTE}: run some suites there first, such as medgrape reproduce all --quick.")
    payload = json.loads(path.read_text("utf-8"))
    data = {role: DataFacts.from_json(facts) for role, facts in payload["data"].items()}
    bases = {role: parse_config(tables, str(path)) for role, tables in payload["bases"].items()}
    workspace = Workspace(bases, data, out, payload["draws"], payload["faithful"])
    results = Results(workspace, tuple(payload["seeds"]))
    jobs = {suite: suite.needs(results) for suite in SUITES.values() if suite.role in results.data}
    payloads = {job: job.load_result() for needed in jobs.values() for job in needed}
    suites = [suite for suite, needed in jobs.items() if not needed or any(payloads[job] for job in needed)]
    tables = [suite.table(results, payload["options"]) for suite in suites]
    warnings = _warnings(results, suites)
    folder = out / "report"
    for table in tables:
        write_text(folder / f"{table.suite}.csv", as_csv(table))
        write_text(folder / f"{table.suite}.tex", as_latex(table))
    versions, on_page = software_versions(payloads.values()), list(warnings)
    if len(versions) > 1:
        on_page.append(f"Results come from {len(versions)} states of the software: {', '.join(versions)}.")
    write_text(folder / "index.html", _page(results, tables, on_page))
    return {
        "report": str(folder / "index.html"),
        "tables": [
            {"suite": table.suite, "title": table.title, "labels": list(table.labels), "reading": table.reading}
            for table in tables
        ],
        "warnings": warnings,
    }


def software_versions(results: Iterable[Mapping[str, Any] | None]) -> list[str]:
    """Return the fingerprints of the software that made the results."""
    return sorted({result["software"] for result in results if result is not None})


def _warnings(results: Results, suites: Sequence[Suite]) -> list[str]:
    warnings, missing = [], []
    without = [suite.name for suite in suites if suite.role not in results.data]
    if without:
        warnings.append(f"There is no second data set, so these tables are left out: {', '.join(without)}.")
    for suite in suites:
        jobs = suite.needs(results) if suite.role in results.data else ()
        left = sum(job.load_result() is None for job in jobs)
        missing += [f"{suite.name} {left} of {len(jobs)}"] if left else []
    if missing:
        warnings.append(f"Jobs that are not done yet: {', '.join(missing)}.")
    if len(results.seeds) < 5:
        warnings.append(f"Few seeds ({len(results.seeds)}): standard deviations and t-tests over so few say little.")
    return warnings


def _page(results: Results, tables: Sequence[Table], warnings: Sequence[str]) -> str:
    """All tables on one page, with the main results above them."""
    space = results.workspace
    values = {
        "tables": tables,
        "data": list(space.data.values()),
        "seeds": results.seeds,
        "backbone": space.base.backbone.name,
        "text": space.base.text.encoder,
        "headline": [f"{table.title}. {table.reading}" for table in tables if table.suite in FIRST_READ],
        "warnings": warnings,
        "notice": NOTICE,
        "rounds": ROUNDS,
        "shown": lambda cell: shown(cell, len(results.seeds)),
        "p": lambda value: "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}",
        "base64_of": lambda name: base64.b64encode((space.out / "pictures" / name).read_bytes()).decode(),
    }
    return render_template("reproduction.html", values, package="medgrape.paper", sheets=("reproduction.css",))
