"""The source package and the wheel, built from what is committed, and what is in them."""

import fnmatch
import io
import tarfile
import zipfile
from collections.abc import Iterable

from release.programs import run_checked, tool
from release.steps import RefusedError
from release.workspace import Workspace

PAGE = "medgrape/server/page"
IN_WHEEL = (
    "medgrape/py.typed",
    f"{PAGE}/index.html",
    f"{PAGE}/assets/*.js",
    f"{PAGE}/assets/licences.md",
    "medgrape/config/recipes/*.toml",
    "medgrape/config/vocabularies/*.toml",
    "medgrape/*/templates/*",
    "medgrape/server/storage/migrations/*",
    "medgrape-*.dist-info/licenses/LICENSE",
)
IN_SDIST = (
    "hatch_build.py",
    "constraints.txt",
    "LICENSE",
    "CHANGELOG.md",
    "ui/package-lock.json",
    "ui/src/*",
    "src/medgrape/*",
    "tests/*",
)
NEVER = (
    "*node_modules*", "*__pycache__*", "*.pyc", "*.part", "*.venv*", "*.dcm", "*.npy", "*.npz", "*.safetensors",
    "*.onnx", "*.db", "*.png", "*.jpg", "*.jpeg",
)  # fmt: skip
"""No caches, nobody else's code, no models, and no picture: a film in a package could be a person's."""


def build(workspace: Workspace) -> str:
    """Build the source package from the commit, and the wheel from the source package alone."""
    workspace.source.mkdir()
    workspace.made.mkdir()
    archive = workspace.folder / "source.tar"
    run_checked(["git", "archive", "--format=tar", f"--output={archive}", "HEAD"], workspace.root)
    with tarfile.open(archive) as packed:
        packed.extractall(workspace.source, filter="data")
    run_checked([tool("python"), "-m", "build", "--outdir", workspace.made, "."], workspace.source)
    run_checked([tool("twine"), "check", "--strict", workspace.wheel, workspace.sdist], workspace.folder)
    sizes = (f"{file.name} {file.stat().st_size / 1e6:.1f} MB" for file in (workspace.sdist, workspace.wheel))
    return f"{', '.join(sizes)}; twine check --strict agrees.{_left_out(workspace)}"


def look_inside(workspace: Workspace) -> str:
    """Refuse packages that lack something or hold what must not be in them."""
    with zipfile.ZipFile(workspace.wheel) as wheel:
        in_wheel = [name for name in wheel.namelist() if not name.endswith("/")]
    with tarfile.open(workspace.sdist) as sdist:
        in_sdist = [member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()]
    ours = [name.removeprefix("src/") for name in _committed(workspace) if name.startswith("src/medgrape/")]
    complaints = [
        *(f"the wheel has no {name}" for name in missing(in_wheel, (*IN_WHEEL, *ours))),
        *(f"the wheel has {name}" for name in unwanted(in_wheel, (*NEVER, "tests/*", "ui/*", "docs/*"))),
        *(f"the source package has no {name}" for name in missing(in_sdist, IN_SDIST)),
        *(f"the source package has {name}" for name in unwanted(in_sdist, (*NEVER, f"src/{PAGE}/*"))),
    ]
    if complaints:
        raise RefusedError(f"{len(complaints)} complaints: {'; '.join(complaints[:6])}.")
    return (
        f"{len(in_wheel)} files in the wheel, {len(ours)} of them as committed; {len(in_sdist)} in the source package."
    )


def missing(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Patterns that nothing fits."""
    held = set(names)
    return [one for one in patterns if one not in held and not fnmatch.filter(held, one)]


def unwanted(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Names that fit one of the patterns."""
    return [name for name in names if any(fnmatch.fnmatch(name, one) for one in patterns)]


def page_notices(workspace: Workspace) -> str:
    """The licences of what the page is made of, as they stand in the wheel."""
    with zipfile.ZipFile(workspace.wheel) as wheel, wheel.open(f"{PAGE}/assets/licences.md") as file:
        return io.TextIOWrapper(file, "utf-8").read()


def _committed(workspace: Workspace) -> list[str]:
    return run_checked(["git", "ls-files"], workspace.root).out.splitlines()


def _left_out(workspace: Workspace) -> str:
    changed = run_checked(["git", "status", "--porcelain"], workspace.root).out.splitlines()
    if changed and workspace.release:
        raise RefusedError(f"{len(changed)} files are not committed; what is released is what is committed.")
    return f" Not committed, and so not looked at: {len(changed)} files." if changed else ""
