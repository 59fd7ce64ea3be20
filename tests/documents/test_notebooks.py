"""The notebooks are stored without outputs, and run from top to bottom."""

import ast
import importlib
import os
from pathlib import Path

import nbformat
import pytest
from document_blocks import ROOT
from nbclient import NotebookClient

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
SHOWN = {"first-reading": 2, "train-and-judge": 4, "teach-and-curate": 3}
"""Smallest number of pictures in each."""


def opened(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def test_all_notebooks_are_known():
    assert {path.stem for path in NOTEBOOKS} == set(SHOWN)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_and_names_its_language(path):
    notebook = opened(path)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.language == "python"
    assert notebook.metadata.language_info.name == "python"
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
            assert cell.metadata == {}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_explains_itself_and_the_limits_of_its_model(path):
    prose = [cell.source for cell in opened(path).cells if cell.cell_type == "markdown"]
    assert len(prose) >= 6
    assert "Research software, not a medical device" in prose[0]
    assert "**drawn**" in prose[0]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_everything_that_a_notebook_imports_exists(path):
    code = "\n".join(cell.source for cell in opened(path).cells if cell.cell_type == "code")
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("medgrape"):
            for name in node.names:
                assert hasattr(importlib.import_module(node.module), name.name), f"{node.module}.{name.name}"


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory) -> Path:
    """Return the folder with the films and the model that all notebooks share."""
    return tmp_path_factory.mktemp("notebooks")


@pytest.mark.slow  # `make docs` runs them, too, and stops at the first that fails
@pytest.mark.xdist_group("notebooks")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_its_pictures(path, shared_folder, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(shared_folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    notebook = opened(path)
    client = NotebookClient(
        notebook, timeout=280, kernel_name="python3", resources={"metadata": {"path": str(shared_folder)}}
    )
    client.execute()
    outputs = [one for cell in notebook.cells if cell.cell_type == "code" for one in cell.outputs]
    pictures = [one for one in outputs if "image/png" in one.get("data", {})]
    assert len(pictures) >= SHOWN[path.stem]
    complaints = [one.text for one in outputs if one.output_type == "stream" and one.name == "stderr"]
    assert complaints == []
