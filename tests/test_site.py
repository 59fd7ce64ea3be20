"""The site of these documents: built without a warning, nothing left out, and no other host asked for anything."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import medgrape
from medgrape.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["'](?:https?:)?//|<link\b[^>]*\bhref=["'](?:https?:)?//"""
)
IMPORTED = re.compile(r"""\bimport\b[^;<]{0,80}["']https?://|url\(\s*["']?https?://""")


def build(site, **surroundings):
    """The site as `make docs` builds it, but for the running of notebooks; --quiet would also count no warning."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    quiet = {"MEDGRAPE_RUN_NOTEBOOKS": "false", "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | quiet | surroundings, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="the site needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    ended = build(folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "WARNING" not in ended.stdout + ended.stderr
    return folder


def commands(tree=None, words=("medgrape",)):
    for name, one in (tree or get_command(app)).commands.items():
        if hasattr(one, "commands"):
            yield from commands(one, (*words, name))
        else:
            yield words, name, one


def linked(site):
    """Every page that the table of contents, which stands on each page, leads to."""
    found = re.findall(r'href="([^"#:]+)"', (site / "index.html").read_text("utf-8").split("md-nav--primary")[1])
    return {re.sub(r"\.html$", "", place) for place in found}


pytestmark = pytest.mark.xdist_group("site")


def test_every_page_of_the_documents_is_in_the_table_of_contents(site):
    contents = linked(site)
    places = {
        path.relative_to(DOCS).with_suffix("").as_posix() for kind in ("*.md", "*.ipynb") for path in DOCS.rglob(kind)
    }
    assert len(places) > 30
    assert places - contents == set()


@pytest.mark.parametrize("page", ["architecture", "changes", "contributing"])
def test_files_beside_the_documents_are_on_the_site(site, page):
    assert f'href="../project/{page}.html"' in (site / "how-to/reading.html").read_text("utf-8")
    assert (site / f"project/{page}.html").is_file()


def test_every_command_is_described_with_all_its_options_on_the_page_of_its_group(site):
    found = list(commands())
    assert len(found) > 40
    for words, name, one in found:
        group = words[1] if len(words) > 1 else "medgrape"
        text = (site / f"reference/cli/{group}.html").read_text("utf-8")
        section = text.split(f'<h2 id="{"-".join((*words, name))}"')[1].split("<h2")[0]
        for option in one.params:
            shown = [word for word in option.opts if word.startswith("--") and not option.hidden]
            assert all(word in section for word in shown), (words, name, shown)


def test_every_public_name_is_described_on_the_page_of_the_api(site):
    text = (site / "reference/api.html").read_text("utf-8")
    assert [name for name in medgrape.__all__ if f'id="medgrape.{name}"' not in text] == ["__version__"]
    for name in ("reader.Reader.open", "study.Study.apply", "study.Study.prediction", "safety.check.SafetyCheck.gap"):
        assert f'id="medgrape.{name}"' in text


def test_every_address_of_the_server_has_a_description(site):
    text = (site / "reference/http.html").read_text("utf-8")
    told = json.loads((ROOT / "ui/openapi.json").read_text("utf-8"))["paths"]
    addresses = [f"{how.upper()} {place.removeprefix('/api/v1')}" for place, ways in told.items() for how in ways]
    assert "POST /studies/{study}/boxes" in addresses
    assert [one for one in addresses if not re.search(rf"<h3 [^>]*><code>{re.escape(one)}</code>", text)] == []
    assert (site / "reference/openapi.json").read_bytes() == (ROOT / "ui/openapi.json").read_bytes()


def test_a_page_loads_nothing_from_other_hosts(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text("utf-8")
        assert not LOADED.search(text), page
        assert not IMPORTED.search(text), page


def test_links_to_files_without_a_page_become_plain_text(site):
    export = (site / "how-to/export.html").read_text("utf-8")
    assert "<code>examples/onnx_client.py</code>" in export
    assert 'onnx_client.py"' not in export
    assert 'href="../decisions.html"' in (site / "project/architecture.html").read_text("utf-8")
