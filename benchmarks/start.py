"""A cold ``medgrape read`` in its own process, against a process that only imports its libraries."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from PIL import Image

from benchmarks.ratio import Ratio, race
from benchmarks.untrained import untrained_run
from medgrape.concepts import ConceptSet
from medgrape.config import BackboneSettings, parse_config
from medgrape.errors import UserError
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import draw

TARGET, SIDE = 1.3, 224


def bench_start(rounds: int = 7, backbone: BackboneSettings = BackboneSettings()) -> Iterator[Ratio]:  # noqa: B008
    """Read one film with a model of the paper's sizes; files are in the disk cache after the warm-up."""
    if find_spec("transformers") is None:
        raise UserError(
            "The start benchmark compares with importing transformers, which needs: pip install 'medgrape[text]'."
        )
    config = parse_config({"backbone": backbone.model_dump(), "preprocessing": {"size": SIDE}})
    with tempfile.TemporaryDirectory() as name:
        run, film = Path(name) / "run", Path(name) / "film.png"
        run.mkdir()
        untrained_run(config, ConceptSet.built_in("tbx11k")).save(run, {"name": "none", "checksum": "none"})
        Image.fromarray(draw(plan("tb", 1, seed=0)[0], SIDE).pixels).save(film)
        read = ["-m", "medgrape", "read", str(film), "--model", str(run)]
        timed = race(_process(read), _process(["-c", "import torch, transformers"]), rounds)
    yield Ratio("medgrape read FILM, a process from cold", "python -c 'import torch, transformers'", *timed, TARGET)


def _process(words: Sequence[str]) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *words], check=True, capture_output=True)  # noqa: S603
