"""Print exact versions of all dependencies, with all extras: ``make constraints``.

Installs into a temporary environment. The version of torch is set by hand, as newer releases install gigabytes of GPU
libraries.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

TORCH = "torch==2.13.0"
ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Exact versions of everything, made by `make constraints`. Ranges are in pyproject.toml."


def main() -> None:
    """Install all dependencies and print their versions."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)  # noqa: S603
        python = str(Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", TORCH, "-e", f"{ROOT}[dev,release]"]
        subprocess.run(install, check=True, stdout=sys.stderr)  # noqa: S603
        listing = [python, "-m", "pip", "list", "--format=freeze", "--exclude-editable"]
        pins = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split()  # noqa: S603
    kept = sorted((pin.split("+")[0] for pin in pins if not pin.startswith(("pip==", "setuptools=="))), key=str.lower)
    sys.stdout.write("\n".join([HEADER, *kept]) + "\n")


if __name__ == "__main__":
    main()
