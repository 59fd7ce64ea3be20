"""The temporary folder of a release check: the committed sources and everything built from them."""

import re
from dataclasses import dataclass
from pathlib import Path

EXTRAS = "dicom,lite,text,server"
"""Extras of the default install, as in the README."""


@dataclass(frozen=True)
class Workspace:
    """Folders of one check."""

    root: Path
    """The working copy, which is not changed."""
    folder: Path
    """The temporary folder."""
    release: bool = False
    """Whether the present commit will be released."""

    @property
    def source(self) -> Path:
        """The committed sources."""
        return self.folder / "source"

    @property
    def made(self) -> Path:
        """Packages and reports, which are kept."""
        return self.folder / "made"

    @property
    def environment(self) -> Path:
        """The empty environment into which the wheel is installed."""
        return self.folder / "environment"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.environment / "bin" / "python"

    @property
    def trial(self) -> Path:
        """Folder in which the demo runs."""
        return self.folder / "trial"

    @property
    def wheel(self) -> Path:
        """The one wheel that was built."""
        (wheel,) = self.made.glob("*.whl")
        return wheel

    @property
    def sdist(self) -> Path:
        """The one source package that was built."""
        (sdist,) = self.made.glob("*.tar.gz")
        return sdist

    @property
    def version(self) -> str:
        """The version in ``medgrape.__version__``."""
        text = (self.root / "src" / "medgrape" / "__init__.py").read_text("utf-8")
        found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
        if found is None:
            raise ValueError("src/medgrape/__init__.py has no __version__.")
        return found[1]
