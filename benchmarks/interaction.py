"""A question about an open film against opening it: a box, its check, the new classes and maps."""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from PIL import Image

from benchmarks.ratio import Ratio, race
from benchmarks.untrained import untrained_reader
from medgrape.concepts import ConceptSet
from medgrape.config import BackboneSettings, parse_config
from medgrape.films.decoder import Decoder
from medgrape.geometry import Box
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import draw
from medgrape.reader import Reader
from medgrape.study import Study

TARGETS = {"tbx11k": 1 / 20, "nih": 1 / 10}
"""Most that a question may cost, in openings of the film, for 3 and for 14 concepts."""
SIDE = 224


def bench_interaction(rounds: int = 25, backbone: BackboneSettings = BackboneSettings()) -> Iterator[Ratio]:  # noqa: B008
    """Yield for each vocabulary the ratios to ``reader.open`` and to an opening with a running decoder."""
    config = parse_config({"backbone": backbone.model_dump(), "preprocessing": {"size": SIDE}})
    with tempfile.TemporaryDirectory() as name, Decoder() as decoder:
        film = Path(name) / "film.png"
        Image.fromarray(draw(plan("tb", 1, seed=0)[0], SIDE).pixels).save(film)
        for vocabulary, target in TARGETS.items():
            reader = untrained_reader(config, ConceptSet.built_in(vocabulary))
            yield _race(reader, partial(reader.open, film, decoder), "opening it, decoder at work", target, rounds)
            yield _race(reader, partial(reader.open, film), "opening it, decoder and all", target, max(3, rounds // 3))


def _race(reader: Reader, opened: Callable[[], Study], named: str, target: float, rounds: int) -> Ratio:
    study = opened()
    timed = race(lambda: _asked(study), lambda: _shown(opened()), rounds)
    return Ratio(f"check, apply, predict, maps; K = {len(reader.concepts)}", named, *timed, target)


def _asked(study: Study) -> None:
    concept, box = study.run.concepts.names[0], Box(30, 40, 110, 130)
    study.check(box, concept)
    _shown(study.apply(box, concept, confirmed=True))


def _shown(study: Study) -> None:
    """Compute everything that a page shows after a box."""
    _ = study.prediction, study.evidence.mean, study.evidence.disagreement
