"""An empty environment, as on a machine with no compiler and no Node.js, and the wheel installed into it."""

import os
import shutil
import sys
import venv
from pathlib import Path

from release.bench import EXTRAS, Bench
from release.programs import done, ended
from release.steps import RefusedError

HIDDEN = (
    "cc", "gcc", "g++", "c++", "clang", "clang++", "tcc", "cl", "ld", "make", "cmake", "ninja", "gfortran", "rustc",
    "cargo", "node", "npm", "npx", "git",
)  # fmt: skip
KEPT = ("sh", "uname", "env")
"""All that is left of the machine's own programs."""
PASSED_ON = ("PIP_", "SSL_CERT_", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http", "no_proxy")
"""How pip finds its packages; installing needs it, nothing after that does."""


def install(bench: Bench) -> str:
    """Install the wheel with the README's extras, from wheels alone."""
    venv.create(bench.environment, symlinks=True)  # so that nothing is in it but what we bring
    environment = bare(bench, online=True)
    pip: list[str | Path] = [Path(sys.executable), "-m", "pip", "--python", bench.python, "--disable-pip-version-check"]
    wanted = f"medgrape[{EXTRAS}] @ {bench.wheel.as_uri()}"
    pins = bench.source / "constraints.txt"
    done([*pip, "install", "--quiet", "--only-binary", ":all:", "-c", pins, wanted], bench.folder, environment)
    done([*pip, "check"], bench.folder, environment)
    bytes_ = sum(file.stat().st_size for file in bench.environment.rglob("*") if file.is_file())
    count = len(list(bench.environment.glob("lib/*/site-packages/*.dist-info")))
    return f"{count} packages from wheels alone, {bytes_ / 1e9:.1f} GB; no compiler and no Node.js within reach."


def version(bench: Bench) -> str:
    """Ask the installed program for its version."""
    told = done([bench.environment / "bin" / "medgrape", "--version"], bench.folder, bare(bench)).out.strip()
    if bench.version not in told:
        raise RefusedError(f"The installed program says {told!r}, the sources say {bench.version}.")
    where = "import medgrape; print(medgrape.__file__)"
    place = ended([bench.python, "-c", where], bench.folder, bare(bench)).out.strip()
    if not place.startswith(str(bench.environment)):
        raise RefusedError(f"medgrape is imported from {place}, not from the empty environment.")
    return told


def bare(bench: Bench, *, online: bool = False) -> dict[str, str]:
    """Variables for a program that finds the environment, three tools and nothing else; ``CC`` leads nowhere."""
    tools, home = bench.folder / "tools", bench.folder / "home"
    if not tools.exists():
        home.mkdir()
        tools.mkdir()
        for name in KEPT:
            (tools / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    path = os.pathsep.join((str(bench.environment / "bin"), str(tools)))
    if within_reach := [name for name in HIDDEN if shutil.which(name, path=path)]:
        raise RefusedError(f"{', '.join(within_reach)} should be hidden, and can be found.")
    variables = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "CC": "/bin/false", "CXX": "/bin/false"}
    return variables | (_for_pip() if online else {})


def _for_pip() -> dict[str, str]:
    told = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    kept = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pip"
    return {"PIP_CACHE_DIR": str(kept)} | told
