"""The release check: its steps, packages and known vulnerabilities."""

import json
from datetime import date
from pathlib import Path
from types import SimpleNamespace as Namespace

import pytest
import release_check
from release import audit
from release.audit import Vulnerability, refuse
from release.installation import HIDDEN, clean_env
from release.packages import IN_WHEEL, NEVER, missing, unwanted
from release.programs import run_checked
from release.steps import OutOfReachError, RefusedError, State, Step, all_passed, run_steps
from release.workspace import EXTRAS, Workspace

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path, tmp_path)


def failing(_):
    raise RefusedError("It is broken.")


def silent(_):
    raise OutOfReachError("Nobody answers.")


def test_a_step_whose_needs_failed_is_not_done_and_all_others_are(workspace):
    steps = (Step("build", failing), Step("demo", lambda _: "fine", ("build",)), Step("lint", lambda _: "fine"))
    assert [one.state for one in run_steps(steps, workspace)] == [State.FAILED, State.NOT_DONE, State.PASSED]


def test_a_service_out_of_reach_ends_badly_unless_that_was_allowed(workspace):
    outcomes = list(run_steps((Step("audit", silent), Step("lint", lambda _: "fine")), workspace))
    assert [one.state for one in outcomes] == [State.NOT_DONE, State.PASSED]
    assert not all_passed(outcomes)
    assert all_passed(outcomes, allowed=frozenset({"audit"}))


def test_a_failed_audit_ends_badly_whatever_was_allowed(workspace):
    assert not all_passed(run_steps((Step("audit", failing),), workspace), allowed=frozenset({"audit"}))


@pytest.mark.parametrize(
    ("audit", "words", "code", "place"),
    [
        (lambda _: "fine", [], 0, "dist"),
        (silent, [], 1, "dist-refused"),
        (silent, ["--allow-offline-audit"], 0, "dist"),
        (failing, ["--allow-offline-audit"], 1, "dist-refused"),
    ],
)
def test_refused_packages_never_lie_where_uploads_are_taken_from(
    tmp_path, monkeypatch, capsys, audit, words, code, place
):
    def build(workspace):
        workspace.made.mkdir()
        (workspace.made / "medgrape.whl").write_text("a wheel")
        return "built"

    monkeypatch.setattr(release_check, "ROOT", tmp_path)
    monkeypatch.setattr(release_check, "STEPS", (Step("build", build), Step("audit", audit)))
    assert release_check.main(words) == code
    assert [folder.name for folder in tmp_path.iterdir()] == [place]
    assert {file.name for file in (tmp_path / place).iterdir()} == {"medgrape.whl", "release-check.json"}
    assert ("not done: audit" in capsys.readouterr().out) == (audit is silent)


def test_a_wheel_without_its_settings_or_with_a_film_is_found_out():
    names = ["medgrape/py.typed", "medgrape/server/page/index.html", "tests/film.png", "medgrape/film.DCM".lower()]
    assert "medgrape/config/recipes/*.toml" in missing(names, IN_WHEEL)
    assert "medgrape/py.typed" not in missing(names, IN_WHEEL)
    assert unwanted(names, NEVER) == ["tests/film.png", "medgrape/film.dcm"]


def test_programs_in_the_clean_environment_find_no_compiler_and_no_node(workspace):
    told = run_checked(
        ["sh", "-c", f"for one in {' '.join(HIDDEN)}; do command -v $one; done; true"],
        workspace.folder,
        clean_env(workspace),
    )
    assert told.out == ""


def test_what_is_tried_is_what_the_readme_tells_people_to_install():
    assert f"pip install -c constraints.txt '.[{EXTRAS}]'" in (ROOT / "README.md").read_text("utf-8")


SAFE, UNKNOWN = {"version": "1", "vulns": []}, {"skip_reason": "not found"}
WEAK = {"version": "1", "vulns": [{"id": "GHSA-1", "fix_versions": ["2"]}]}


@pytest.fixture
def services(workspace, monkeypatch):
    """Two packages are installed; the test says what each service knows of them, and hears what each was asked."""
    workspace.made.mkdir()
    asked, known = {}, {}

    def run_program(command, folder):
        service = command[command.index("--vulnerability-service") + 1]
        asked[service] = (folder / "audited.txt").read_text("utf-8").split()
        names = [one.partition("==")[0].lower() for one in asked[service]]
        told = {"dependencies": [{"name": name} | known[service][name] for name in names]} if known[service] else None
        return Namespace(out=json.dumps(told) if told else "no network")

    monkeypatch.setattr(
        audit, "packages", lambda _: [Namespace(name="Odd", version="1+cpu"), Namespace(name="pillow", version="1")]
    )
    monkeypatch.setattr(audit, "tool", Path)
    monkeypatch.setattr(audit, "run_program", run_program)
    return Namespace(known=known, asked=asked)


def test_a_known_vulnerability_is_refused_even_if_another_package_is_unknown(workspace, services):
    services.known |= {one: {"odd": UNKNOWN, "pillow": WEAK} for one in audit.SERVICES}
    with pytest.raises(RefusedError, match="pillow 1: GHSA-1"):
        audit.audit_packages(workspace)
    assert services.asked == {"pypi": ["Odd==1", "pillow==1"], "osv": ["Odd==1"]}
    assert "GHSA-1" in (workspace.made / "audit.json").read_text("utf-8")


def test_a_package_unknown_to_all_services_is_not_counted_as_safe(workspace, services):
    services.known |= {one: {"odd": UNKNOWN, "pillow": SAFE} for one in audit.SERVICES}
    with pytest.raises(OutOfReachError, match="not audited: Odd==1: unknown to all"):
        audit.audit_packages(workspace)
    assert "pillow" in (workspace.made / "audit.json").read_text("utf-8")


@pytest.mark.parametrize("first", [{}, {"odd": UNKNOWN, "pillow": SAFE}])
def test_packages_unknown_to_one_service_are_looked_up_at_the_next(workspace, services, first):
    services.known |= {"pypi": first, "osv": {"odd": SAFE, "pillow": SAFE}}
    assert audit.audit_packages(workspace).startswith("2 packages, no known vulnerability")
    services.known["osv"] = {"odd": WEAK, "pillow": SAFE}
    with pytest.raises(RefusedError, match="odd 1: GHSA-1"):
        audit.audit_packages(workspace)


def test_without_any_answer_there_is_no_audit(workspace, services):
    services.known |= {one: {} for one in audit.SERVICES}
    with pytest.raises(OutOfReachError, match="no vulnerability service"):
        audit.audit_packages(workspace)
    assert not (workspace.made / "audit.json").exists()


def test_a_vulnerability_is_refused_unless_accepted_and_again_after_the_last_day(tmp_path):
    found = [Vulnerability("a", "1.0", "GHSA-1", "1.1")]
    table = tmp_path / "audit.toml"
    table.write_text("accepted = []\n")
    with pytest.raises(RefusedError, match=r"a 1\.0: GHSA-1 \(fixed in 1\.1\)"):
        refuse(found, date(2026, 11, 18), table)
    table.write_text('[[accepted]]\nid = "GHSA-1"\npackage = "a"\nreason = "not used"\nuntil = 2026-12-31\n')
    refuse(found, date(2026, 12, 31), table)
    with pytest.raises(RefusedError):
        refuse(found, date(2027, 1, 1), table)
