"""Packages with parts for medgrape, installed for a test only."""

import importlib
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "own-parts"


def pip_installed(project: Path, folder: Path) -> Path:
    """Install a project with pip, without a network and without changing its folder; return the target folder."""
    copy = folder / "project"
    shutil.copytree(project, copy)
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--target"]
    ended = subprocess.run([*command, str(folder / "site"), str(copy)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return folder / "site"


def written(folder: Path, name: str, groups: dict, code: str = "", version: str = "1.0") -> Path:
    """Write a package of one module with its metadata, as pip installs it."""
    about = folder / f"{name}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in told.items()) for group, told in groups.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    (folder / f"{name}.py").write_text(code, "utf-8")
    return folder


@contextmanager
def on_path(*folders: Path):
    """Put the folders on the import path for a while."""
    before, known = list(sys.path), set(sys.modules)
    sys.path[:0] = [str(folder) for folder in folders]
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before
        importlib.invalidate_caches()
        for name in set(sys.modules) - known:
            if any(str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(one)) for one in folders):
                del sys.modules[name]
