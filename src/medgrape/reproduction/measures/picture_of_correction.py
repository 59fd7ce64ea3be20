"""A reader's box, before and after; and a wrong claim, with the warning that the model answers it with."""

from collections.abc import Iterator, Sequence

import numpy as np
from PIL import Image

from medgrape.data.dataset import Dataset, FilmRecord
from medgrape.evaluation.reading import Loaded
from medgrape.explain.render_layout import badge, beside, bordered, outlined, stacked, stamped
from medgrape.explain.render_maps import HEAT, fitted, painted, relative, resized, upsampled
from medgrape.explain.render_text import SMALL, paragraph
from medgrape.feedback.reader import Reader
from medgrape.feedback.study import Study
from medgrape.geometry import Box, FilmSize, PatchGrid, peak
from medgrape.model.checkpoint import LoadedRun
from medgrape.palette import colour

ROOM = FilmSize(420, 420)
_GAP = 12
_RIGHT, _WRONG = colour(1), colour(5)


def correction_pictures(
    loaded: Loaded, dataset: Dataset, films: Sequence[tuple[FilmRecord, tuple[Box, ...]]], concept: str
) -> Iterator[tuple[str, Image.Image, str]]:
    """Name, picture and caption of each; the warning is the first that any wrong claim on these films calls up."""
    if not isinstance(loaded, LoadedRun):
        return
    reader = Reader(loaded)
    opened = [(film, boxes, reader.open(dataset.film_path(film))) for film, boxes in films]
    film, (box, *_), study = opened[0]
    yield (
        "correction",
        _before_and_after(study, film, box, concept),
        _shares(study, study.apply(box, concept, confirmed=True)),
    )
    for film, boxes, study in opened:
        for box in boxes:
            for claim in (name for name in dataset.concepts.names if name != concept):
                check = study.check(box, claim)
                if check.mismatch:
                    said = f"Somebody draws this box and says it shows {dataset.concepts[claim].title}."
                    yield "warning", _warning(study, film, box, said, check.reason), f"{said} {check.reason}"
                    return


def _shares(before: Study, after: Study) -> str:
    told = ", ".join(f"{name} {share:.2f} to {after.prediction[name]:.2f}" for name, share in before.prediction.items())
    return f"Left: the map as the model saw it. Right: after a reader drew the box. Classes: {told}."


def _before_and_after(study: Study, film: FilmRecord, box: Box, concept: str) -> Image.Image:
    after = study.apply(box, concept, confirmed=True)
    row = study.original.concepts.index(concept)
    panels = [
        stacked([_panel(study, film, box, one.evidence.mean[row].numpy()), paragraph(title, 400, size=SMALL)], gap=6)
        for title, one in (("before", study), ("after the box", after))
    ]
    return bordered(beside(panels, gap=_GAP), _GAP)


def _warning(study: Study, film: FilmRecord, box: Box, said: str, reason: str) -> Image.Image:
    size = fitted(film.size, ROOM)
    panel = _framed(Image.fromarray(resized(study.film.pixels, size)).convert("RGB"), film, box, size, _WRONG)
    words = stacked(
        [paragraph(said, 420, size=SMALL, most=4), paragraph(reason, 420, size=SMALL, ink=_WRONG, most=8)], gap=8
    )
    return bordered(beside([panel, words], gap=_GAP), _GAP)


def _panel(study: Study, film: FilmRecord, box: Box, scores: np.ndarray) -> Image.Image:
    size = fitted(film.size, ROOM)
    panel = Image.fromarray(painted(resized(study.film.pixels, size), upsampled(relative(scores), size), HEAT))
    x, y = peak(scores, PatchGrid(film.size, *scores.shape))
    spot = Box(x - 0.5, y - 0.5, x + 0.5, y + 0.5).moved(film.size, size).centre
    stamped(panel, badge("", colour(0), 14), spot)
    return _framed(panel, film, box, size, _RIGHT)


def _framed(panel: Image.Image, film: FilmRecord, box: Box, size: FilmSize, ink: str) -> Image.Image:
    outlined(panel, box.moved(film.size, size).corners, ink)
    return panel
