"""Files that the pages use, made once for all test processes."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from document_props import make_props
from filelock import FileLock


@pytest.fixture(scope="session")
def props(tmp_path_factory) -> Path:
    """Return the folder whose contents are copied to the folder of every page."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    with FileLock(shared / "props.lock"):
        made = shared / "props"
        if not made.exists():
            make_props(shared / "props.part").rename(made)
    return made


@pytest.fixture
def short_folder() -> Path:
    """Return a folder with a short path, as the path of a socket has at most about 100 characters."""
    folder = Path(tempfile.mkdtemp(prefix="page-"))
    yield folder
    shutil.rmtree(folder)
