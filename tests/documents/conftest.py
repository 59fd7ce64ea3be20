"""Props for the pages, made once however many processes test."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from document_props import make_props
from filelock import FileLock


@pytest.fixture(scope="session")
def props(tmp_path_factory) -> Path:
    """What lies in every page's folder."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    with FileLock(shared / "props.lock"):
        made = shared / "props"
        if not made.exists():
            make_props(shared / "props.part").rename(made)
    return made


@pytest.fixture
def short_folder() -> Path:
    """A folder with a short name: the address of a socket has room for a hundred letters."""
    folder = Path(tempfile.mkdtemp(prefix="page-"))
    yield folder
    shutil.rmtree(folder)
