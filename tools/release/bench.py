"""Where a release is looked at: a temporary folder with the committed sources and all that is made of them."""

import re
from dataclasses import dataclass
from pathlib import Path

EXTRAS = "dicom,lite,text,server"
"""The default install: what the README tells people to install."""


@dataclass(frozen=True)
class Bench:
    """Folders of one check."""

    root: Path
    """The working copy, which is only read."""
    folder: Path
    """Temporary; it goes away at the end."""
    release: bool = False
    """Whether this very commit is to be released, not merely fit for it."""

    @property
    def source(self) -> Path:
        """The sources as they are committed, and nothing else."""
        return self.folder / "source"

    @property
    def made(self) -> Path:
        """What is kept: packages and reports."""
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
        """Where the demo runs: an empty folder."""
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
        """What the package calls itself."""
        text = (self.root / "src" / "medgrape" / "__init__.py").read_text("utf-8")
        found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
        if found is None:
            raise ValueError("src/medgrape/__init__.py has no __version__.")
        return found[1]
