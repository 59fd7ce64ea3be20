"""Jobs are done once, stages are shared, and what is there is the report."""

import csv
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from filelock import FileLock

from medgrape.config import load_config
from medgrape.errors import UserError
from medgrape.paper.estimate import plan
from medgrape.paper.recipes import fixed_recipes, second_base
from medgrape.paper.reproduce import PaperRequest, report_again, reproduce
from medgrape.paper.results import Results
from medgrape.paper.suites import SUITES, chosen_suites
from medgrape.paper.suites.base import published
from scenes import REAL

PAPER = {
    "tab:tbx11k", "tab:nih", "tab:compare", "tab:tau_sweep", "tab:eta_sweep", "tab:hparams_fixed",
    "tab:hparams_dataset", "tab:n4", "tab:n4_zeroshot", "tab:graph_heads", "tab:speed", "tab:edge_ablation",
    "tab:sota", "tab:perclass_f1", "tab:confusion", "tab:safety", "tab:pg_perconcept", "tab:zeroshot",
    "tab:zeroshot_nih", "tab:faithfulness", "tab:n5", "tab:mean_vs_max", "tab:n6_mlp", "fig:proto_dispersion",
    "fig:simmaps_cmp_panel", "fig:pg_dots", "fig:interaction",
}  # fmt: skip
"""Labels of all tables of the paper and of all figures that show results."""

pytestmark = pytest.mark.xdist_group("suites")  # one process runs them once for all of these tests


def test_every_table_of_the_paper_has_a_suite():
    labels = {label for suite in SUITES.values() for label in suite.labels}
    assert labels == PAPER


@pytest.mark.real
@pytest.mark.skipif(not (REAL.parent / "paper/grape.tex").is_file(), reason="the paper is not beside the project")
def test_the_list_of_tables_is_the_papers():
    lines = (REAL.parent / "paper/grape.tex").read_text("utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("%"))
    tables = set(re.findall(r"\\label\{(tab:[^}]+)\}", text))
    assert tables == {label for label in PAPER if label.startswith("tab:")}


def test_figures_of_the_paper_belong_to_suites():
    assert set(published()) <= set(SUITES)


def test_the_report_opens_offline_and_holds_every_table(some_tables):
    request, report = some_tables
    html = (request.out / "report/index.html").read_text("utf-8")
    assert "http://" not in html
    assert "https://" not in html
    assert "default-src &#39;none&#39;" in html
    assert {suite.name for suite in request.suites} <= {table["suite"] for table in report["tables"]}
    for table in report["tables"]:
        assert f'<section id="{table["suite"]}">' in html
        typed = f"--data {request.data} --out {request.out} --seeds 0 --config {request.config} --quick"
        assert f"medgrape reproduce {table['suite']} {typed}" in html


def test_a_table_has_our_figure_the_papers_and_the_trivial_baseline(some_tables):
    request, _ = some_tables
    with (request.out / "report/modules.csv").open() as file:
        rows = {(row["row"], row["figure"]): row for row in csv.DictReader(file)}
    csr = rows["CSR", "macro_f1"]
    assert csr["paper"] == "0.706 ± 0.059"
    result = json.loads((request.out / "results/films-first-csr-seed0.json").read_text())
    assert float(csr["ours"]) == result["figures"]["macro_f1"]
    trivial = rows["always the commonest class", "macro_f1"]
    assert float(trivial["ours"]) == result["figures"]["majority.macro_f1"]
    assert trivial["trivial"] == "1"
    graph = rows["+ graph head", "macro_f1"]
    other = json.loads((request.out / "results/films-first-grape-seed0.json").read_text())["figures"]["macro_f1"]
    assert float(graph["difference"]) == pytest.approx(other - result["figures"]["macro_f1"])
    assert float(graph["p_holm"]) >= float(graph["p_permutation"])


def test_latex_of_every_table_is_balanced(some_tables):
    request, report = some_tables
    for table in report["tables"]:
        text = (request.out / f"report/{table['suite']}.tex").read_text("utf-8")
        columns = re.search(r"\\begin\{tabular\}\{@\{\}(l+)@\{\}\}", text)
        rows = [line for line in text.splitlines() if line.endswith("\\\\")]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(columns.group(1))}


def test_finished_jobs_are_not_repeated(some_tables):
    request, _ = some_tables
    before = {path: path.stat().st_mtime_ns for path in (request.out / "results").iterdir()}
    sentences = []
    reproduce(request, tell=sentences.append)
    assert sentences == [f"{len(before)} of {len(before)} jobs are done already."]
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_rows_that_differ_only_in_the_head_share_all_earlier_stages(some_tables):
    request, _ = some_tables
    kept = request.out / "stages"
    assert len(list(kept.glob("*/early"))) == 2, "PIP-Net has views of its own"
    assert len(list(kept.glob("*/concepts.safetensors"))) == 2, "the paper's first stage and medgrape's"
    assert len(list(kept.glob("*/prototypes.safetensors"))) == 3, "without text, with text, medgrape's"


def test_a_report_can_be_made_from_results_alone(some_tables, tmp_path):
    request, _ = some_tables
    for name in ("results", "suite.json"):
        source = request.out / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / name)
    report = report_again(tmp_path)
    made = {table["suite"] for table in report["tables"]}
    assert {suite.name for suite in request.suites} <= made
    same = (request.out / "report/modules.csv").read_text()
    assert (tmp_path / "report/modules.csv").read_text() == same


def test_the_plan_counts_shared_stages_once_and_marks_finished_jobs(some_tables, drawn_dataset, brief, tmp_path):
    request, _ = some_tables
    assert all(planned.done for planned in plan(request.jobs()))
    fresh = PaperRequest(chosen_suites(["heads"]), drawn_dataset, tmp_path / "new", seeds=(0,), config=brief)
    first, *others = plan(fresh.jobs())
    assert not first.done
    assert all(planned.seconds < first.seconds for planned in others)


def test_results_of_other_settings_or_films_are_refused(some_tables):
    request, _ = some_tables
    job = request.jobs()[0]
    base = job.workspace.base

    def with_base(changed):
        return replace(job, workspace=replace(job.workspace, bases={"first": changed}))

    assert with_base(base.model_copy(update={"seed": 7})).load_result() is not None, "a job has its own seed"
    other = base.model_copy(update={"model": base.model.model_copy(update={"prototypes": 5})})
    with pytest.raises(UserError, match=r"was made with other settings; remove it and .*runs/first-csr-seed0"):
        with_base(other).load_result()
    relabelled = job.data.model_copy(update={"checksum": "0"})
    with pytest.raises(UserError, match="was made with other films or labels"):
        replace(job, workspace=replace(job.workspace, data={"first": relabelled})).load_result()


def test_a_refused_command_changes_nothing(some_tables, brief, tmp_path):
    request, _ = some_tables
    before = {path: path.read_bytes() for path in request.out.rglob("*.json") if "runs" not in path.parts}
    other = tmp_path / "other.toml"
    other.write_text(brief.read_text().replace("prototypes = 4", "prototypes = 5"))
    with pytest.raises(UserError, match="was made with other settings"):
        reproduce(replace(request, config=other))
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
def test_a_report_contains_the_tables_of_earlier_commands(some_tables):
    request, report = some_tables
    again = reproduce(replace(request, suites=chosen_suites(["latency"])))
    before, after = ({table["suite"] for table in made["tables"]} for made in (report, again))
    assert after == before | {"latency"}
    assert "latency" not in before


def test_two_commands_do_not_work_in_one_folder(some_tables):
    request, _ = some_tables
    with FileLock(request.out / ".lock"), pytest.raises(UserError, match="Another process is at work"):
        reproduce(request)


def test_settings_that_some_recipe_cannot_use_are_refused_before_the_first_job(drawn_dataset, brief, tmp_path):
    few = tmp_path / "few.toml"
    few.write_text(brief.read_text().replace("views = 3", "views = 2"))
    with pytest.raises(UserError, match="compares two views"):
        reproduce(PaperRequest(chosen_suites(["baselines"]), drawn_dataset, tmp_path / "out", seeds=(0,), config=few))
    assert not (tmp_path / "out").exists()


def test_a_recipe_sets_method_order_and_head_for_any_base_settings(brief):
    base = load_config(brief)
    odd = base.model_copy(update={"training": base.training.model_copy(update={"order": "end-to-end"})})
    config = fixed_recipes()["csr"].config(odd, 0)
    assert (config.model.method, config.training.order, config.model.head) == ("grape", "staged", "linear")
    mute = base.model_copy(update={"text": base.text.model_copy(update={"encoder": "none"})})
    with pytest.raises(UserError, match="Some recipes read text"):
        fixed_recipes()["grape-text"].config(mute, 0)


def test_the_second_set_has_tau_0_05_and_half_the_learning_rate_as_in_the_paper(brief):
    base = load_config(brief)
    second = second_base(base)
    assert second.model.tau == 0.05
    assert second.stages.head.learning_rate == base.stages.head.learning_rate / 2
    assert second.stages.concepts.epochs == base.stages.concepts.epochs


def test_each_seed_is_compared_with_the_same_seed(some_tables):
    request, _ = some_tables
    results = request.results()
    more = Results(results.workspace, (0, 9))
    assert more.compared("grape", "csr", "macro_f1").seeds == 1
    assert Results(results.workspace, (9,)).compared("grape", "csr", "macro_f1") is None


def test_an_error_names_the_broken_result_file(some_tables, tmp_path):
    request, _ = some_tables
    job = request.jobs()[0]
    job = replace(job, workspace=replace(job.workspace, out=tmp_path))
    job.result.parent.mkdir()
    job.result.write_text("{")
    with pytest.raises(UserError, match=r"cannot be read .* remove it"):
        job.load_result()


def test_tables_of_the_second_set_are_left_out_without_one(drawn_dataset, brief, tmp_path):
    request = PaperRequest(
        chosen_suites(["nih", "settings"]), drawn_dataset, tmp_path / "out", seeds=(0,), config=brief
    )
    report = reproduce(request)
    assert [table["suite"] for table in report["tables"]] == ["settings"]
    assert "There is no second data set, so these tables are left out: nih." in report["warnings"]


@pytest.mark.slow
def test_a_killed_suite_continues_and_repeats_no_finished_job(drawn_dataset, brief, tmp_path):
    out = tmp_path / "out"
    words = f"reproduce heads --data {drawn_dataset} --out {out} --seeds 0 --config {brief}".split()
    command = [sys.executable, "-m", "medgrape", *words]
    first = out / "results/films-first-csr-seed0.json"
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1200):
        if first.is_file() and list((out / "runs").glob(".*.training")):
            break
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert first.is_file()
    done = {path: path.stat().st_mtime_ns for path in (out / "results").glob("*.json")}
    assert len(done) < 4
    assert not (out / "report/index.html").is_file()
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert len(list((out / "results").glob("*.json"))) == 4
    assert (out / "report/index.html").is_file()
    assert not list(out.rglob("*.part"))
