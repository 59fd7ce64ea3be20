"""Installs the wheel into an empty environment without compiler and Node.js."""

import os
import shutil
import sys
import venv
from pathlib import Path

from release.programs import run_checked, run_program
from release.steps import RefusedError
from release.workspace import EXTRAS, Workspace

HIDDEN = (
    "cc", "gcc", "g++", "c++", "clang", "clang++", "tcc", "cl", "ld", "make", "cmake", "ninja", "gfortran", "rustc",
    "cargo", "node", "npm", "npx", "git",
)  # fmt: skip
KEPT = ("sh", "uname", "env")
"""The only programs of the machine in PATH."""
PASSED_ON = ("PIP_", "SSL_CERT_", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http", "no_proxy")
"""Prefixes of variables with which pip finds packages; only the installation gets them."""


def install(workspace: Workspace) -> str:
    """Install the wheel with the extras of the README, from wheels only."""
    venv.create(workspace.environment, symlinks=True)
    environment = clean_env(workspace, online=True)
    pip: list[str | Path] = [
        Path(sys.executable),
        "-m",
        "pip",
        "--python",
        workspace.python,
        "--disable-pip-version-check",
    ]
    wanted = f"medgrape[{EXTRAS}] @ {workspace.wheel.as_uri()}"
    pins = workspace.source / "constraints.txt"
    run_checked(
        [*pip, "install", "--quiet", "--only-binary", ":all:", "-c", pins, wanted], workspace.folder, environment
    )
    run_checked([*pip, "check"], workspace.folder, environment)
    bytes_ = sum(file.stat().st_size for file in workspace.environment.rglob("*") if file.is_file())
    count = len(list(workspace.environment.glob("lib/*/site-packages/*.dist-info")))
    return f"{count} packages from wheels only, {bytes_ / 1e9:.1f} GB; no compiler and no Node.js in PATH."


def version(workspace: Workspace) -> str:
    """Check the version and the place of the installed program."""
    output = run_checked(
        [workspace.environment / "bin" / "medgrape", "--version"], workspace.folder, clean_env(workspace)
    ).out.strip()
    if workspace.version not in output:
        raise RefusedError(f"The installed program says {output!r}, the sources say {workspace.version}.")
    where = "import medgrape; print(medgrape.__file__)"
    place = run_program([workspace.python, "-c", where], workspace.folder, clean_env(workspace)).out.strip()
    if not place.startswith(str(workspace.environment)):
        raise RefusedError(f"medgrape is imported from {place}, not from the empty environment.")
    return output


def clean_env(workspace: Workspace, *, online: bool = False) -> dict[str, str]:
    """Return variables with the environment and three tools in PATH, and no usable ``CC``."""
    tools, home = workspace.folder / "tools", workspace.folder / "home"
    if not tools.exists():
        home.mkdir()
        tools.mkdir()
        for name in KEPT:
            (tools / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    path = os.pathsep.join((str(workspace.environment / "bin"), str(tools)))
    if visible := [name for name in HIDDEN if shutil.which(name, path=path)]:
        raise RefusedError(f"{', '.join(visible)} should be hidden but can be found.")
    variables = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "CC": "/bin/false", "CXX": "/bin/false"}
    return variables | (_for_pip() if online else {})


def _for_pip() -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pip"
    return {"PIP_CACHE_DIR": str(cache)} | variables
