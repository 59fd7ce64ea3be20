"""Documents say what the program does: commands, settings, addresses and links; tests/documents runs what they show."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.main import get_command

from benchmarks.commands import app as benchmarks
from medgrape.cli.app import app
from medgrape.config import Config
from medgrape.server.app import ROUTERS
from medgrape.server.errors import _CODES
from medgrape.server.services import RequireRole
from medgrape.server.settings import API, ServerSettings

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(path, language):
    """Blocks of code, with lines that a backslash carries on made one."""
    text = path.read_text("utf-8").replace("\\\n", " ")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def all_commands(command, path):
    for name, below in command.commands.items():
        if hasattr(below, "commands"):
            yield from all_commands(below, f"{path} {name}")
        else:
            yield f"{path} {name}"


def keys(model, path=""):
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from keys(field.annotation, f"{path}{name}.")
        else:
            yield f"{path}{name}", field.get_default(call_default_factory=True)


@pytest.mark.parametrize(("pages", "most"), [("README.md", 700), ("docs/**/*.md", 45_000)])
def test_documents_stay_short(pages, most):
    words = sum(len(path.read_text("utf-8").split()) for path in ROOT.glob(pages))
    assert 0 < words <= most


def test_the_architecture_fits_on_two_screens():
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()) <= 100


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_in_a_document_has_a_target(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text("utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_every_command_is_documented():
    text = (ROOT / "docs/reference/commands.md").read_text("utf-8")
    commands = [
        *all_commands(get_command(app), "medgrape"),
        *all_commands(get_command(benchmarks), "python -m benchmarks"),
    ]
    assert [name for name in commands if f"`{name}`" not in text] == []


def test_every_setting_is_documented_with_its_default():
    """In a row of its own, or in the table that has a row for each setting and a column for each stage."""
    text = (ROOT / "docs/reference/settings.md").read_text("utf-8")
    rows = [f"| `{key}` | {json.dumps(default)} |" for key, default in keys(Config)]
    shared = {f"| `{key}` | {json.dumps(default)} |" for key, default in by_stage(text)}
    assert [row for row in rows if row not in text and row not in shared] == []


def by_stage(text):
    """Key and default of every cell of the table with a column for each stage."""
    header, _, *rows = text.split("| `stages.` |")[1].split("\n\n")[0].splitlines()
    stages = re.findall(r"`(\w+)`", header)
    for row in rows:
        name, *cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        for stage, cell in zip(stages, cells, strict=False):
            yield f"stages.{stage}.{name.strip('`')}", json.loads(cell)


def test_every_setting_of_the_server_is_documented_with_its_default():
    text = (ROOT / "docs/reference/server.md").read_text("utf-8")
    rows = [f"| `{key}` | {json.dumps(default)} |" for key, default in keys(ServerSettings)]
    assert [row for row in rows if row not in text] == []


def test_every_address_of_the_server_is_documented_with_its_role_and_no_other():
    text = (ROOT / "docs/reference/server.md").read_text("utf-8")
    report = set(re.findall(r"^\| `([A-Z]+ /\S*)` \| (\w+) \|", text, re.MULTILINE))
    assert report == {
        (f"{method} {route.path.removeprefix(API)}", role_of(router))
        for router in ROUTERS
        for route in router.routes
        for method in route.methods
    }


def role_of(router):
    roles = [one.dependency.role.value for one in router.dependencies if isinstance(one.dependency, RequireRole)]
    return roles[0] if roles else "anybody"


def test_every_problem_of_the_server_is_documented_with_its_status_and_no_other():
    sources = "".join(path.read_text("utf-8") for path in sorted((ROOT / "src/medgrape/server").rglob("*.py")))
    raised = {(code, status) for status, code in re.findall(r'Problem\(\s*(\d{3}),\s*"(\w+)"', sources)}
    raised |= {(code, str(status)) for status, code in _CODES.items()} | {("refused", "other")}
    table = (ROOT / "docs/reference/server.md").read_text("utf-8").split("| code | status |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \| (\w+) \|", table, re.MULTILINE)) == raised


def test_every_make_target_in_the_readme_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {
        word
        for path in DOCUMENTS
        for block in blocks(path, "bash")
        for word in re.findall(r"^make ([a-z-]+)", block, re.M)
    }
    assert named
    assert named <= targets


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    names = {_normal(re.split(r"[<>=!\[]", requirement)[0]) for requirement in asked} - {"medgrape"}
    pins = re.findall(r"^([^#\s=]+)==", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    assert names <= set(map(_normal, pins))
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text("utf-8").splitlines()


def _normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_example_with_the_pacemaker_has_a_help_text():
    result = subprocess.run(
        [sys.executable, "examples/shortcut.py", "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "pacemaker" in result.stdout


def test_no_two_test_files_have_the_same_name():
    """Of two, only the first would be run."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name not in ("conftest.py", "__init__.py")]
    assert sorted(set(names)) == sorted(names)
