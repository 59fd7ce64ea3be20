"""``python -m benchmarks``, from the top of the repository."""

from benchmarks.commands import app
from medgrape.cli.app import run

if __name__ == "__main__":
    run(app)
