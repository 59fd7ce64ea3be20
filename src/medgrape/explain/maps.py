"""Maps on films: how strongly a concept is seen where, and where its prototypes disagree.

Colours mean the same for every concept of a picture. A similarity map is painted on the scale from what films without
the concept typically score (clear, nothing painted) to what films with it score (full colour), so that a finding which
is absent stays dark however its own highest patch compares with the rest.
"""

from collections.abc import Sequence

import cv2
import numpy as np
from jaxtyping import Bool, Float, UInt8
from matplotlib import colormaps
from PIL import Image

from medgrape.explain.explanation import ConceptEvidence
from medgrape.explain.layout import halo, is_bright
from medgrape.explain.words import PERHAPS
from medgrape.geometry import FilmSize

HEAT, SPREAD = "plasma", "cividis"
_DIMMED = 0.5
"""How bright the film stays under a map of disagreement, which must not be taken for a map of the finding."""
OPAQUE = 0.68
"""How much of the film the strongest colour hides."""
ENLARGED = 6.0
"""No film is shown more than this many times its size: blur is no detail."""
LEAST_SPREAD = 2e-4
"""The scale of disagreement never ends below this variance, the one up to which prototypes count as agreed."""
_SHARE, _ROUND, _FINE = 0.5, 0.12, 3
Grey = UInt8[np.ndarray, "height width"]
Colour = UInt8[np.ndarray, "height width 3"]
Map = Float[np.ndarray, "height width"]


def fitted(film: FilmSize, room: FilmSize) -> FilmSize:
    """How large a film is shown: as large as there is room, in its own proportions."""
    scale = min(room.width / film.width, room.height / film.height, ENLARGED)
    return FilmSize(max(round(film.width * scale), 1), max(round(film.height * scale), 1))


def resized(pixels: Grey, size: FilmSize) -> UInt8[np.ndarray, "high wide"]:
    """The film at the size at which it is shown."""
    shrinks = size.width <= pixels.shape[1]
    way = cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(pixels, (size.width, size.height), interpolation=way), np.uint8)


def upsampled(patches: Map, size: FilmSize) -> Float[np.ndarray, "high wide"]:
    """One value a pixel, bilinear between the middles of patches."""
    values = np.nan_to_num(patches.astype(np.float64), nan=0.0)
    return np.asarray(cv2.resize(values, (size.width, size.height), interpolation=cv2.INTER_LINEAR), np.float64)


def relative(patches: Map) -> Map:
    """0 at the map's middle value and 1 at its highest: also a weak map shows where it would point."""
    middle = float(np.median(patches))
    return np.asarray((patches - middle) / max(float(patches.max()) - middle, 1e-9), np.float64)


def strengths(evidence: ConceptEvidence) -> Map:
    """The map on the scale of ``strength``: 0 as on films without the concept, 1 as on films with it."""
    if not evidence.is_informative:
        return np.zeros(evidence.mean.shape)
    step = evidence.present_score - evidence.absent_score
    return np.asarray(np.nan_to_num((evidence.mean - evidence.absent_score) / step, nan=0.0), np.float64)


def painted(film: Grey, level: Map, colours: str) -> Colour:
    """The film with colour laid over it, clear where the level is 0 or less, strongest from 1 on."""
    ink, cover = _inked(np.clip(level, 0.0, 1.0), colours)
    grey = np.repeat(film[..., None], 3, axis=2).astype(np.float64)
    return np.asarray(np.rint(grey + cover * (ink - grey)), np.uint8)


def overlay(level: Map, colours: str) -> UInt8[np.ndarray, "height width 4"]:
    """The same colour by itself, to be laid over a film by whoever shows it; in 256 steps, which is quick."""
    ink, cover = _inked(np.linspace(0.0, 1.0, 256)[None], colours)
    steps = np.rint(np.concatenate([ink, cover * 255.0], axis=2)).astype(np.uint8)[0]
    return np.asarray(steps[np.rint(np.clip(level, 0.0, 1.0) * 255.0).astype(np.uint8)])


def map_overlay(
    evidence: ConceptEvidence, size: FilmSize, kind: str, concepts: Sequence[ConceptEvidence]
) -> UInt8[np.ndarray, "height width 4"]:
    """A concept's map of either kind, ``mean`` or ``disagreement``, on the scale of all concepts of the film."""
    if kind == "disagreement":
        return overlay(upsampled(evidence.disagreement / widest_spread(concepts), size), SPREAD)
    return overlay(upsampled(strengths(evidence), size), HEAT)


def _inked(level: Map, colours: str) -> tuple[np.ndarray, np.ndarray]:
    """Which colour, and how much of it, for levels from 0 to 1."""
    ink = np.asarray(colormaps[colours](0.12 + 0.88 * level))[..., :3] * 255.0
    return ink, (OPAQUE * np.sqrt(level) * (level > 0))[..., None]


def seen(film: Grey, evidence: ConceptEvidence, size: FilmSize) -> Image.Image:
    """Where the concept is seen, laid over the film."""
    return Image.fromarray(painted(resized(film, size), upsampled(strengths(evidence), size), HEAT))


def widest_spread(concepts: Sequence[ConceptEvidence]) -> float:
    """Where the scale of disagreement ends, for all concepts of a picture."""
    largest = [float(np.nan_to_num(evidence.disagreement).max()) for evidence in concepts]
    return max([LEAST_SPREAD, *largest])


def disagreement(film: Grey, evidence: ConceptEvidence, size: FilmSize, widest: float) -> Image.Image:
    """Where the concept's prototypes disagree, laid over the film."""
    dimmed = np.rint(resized(film, size) * _DIMMED).astype(np.uint8)
    return Image.fromarray(painted(dimmed, upsampled(evidence.disagreement / widest, size), SPREAD))


def scale(colours: str, width: int, height: int) -> Image.Image:
    """The colours as they look on a lung, from nothing to full."""
    lung = np.full((height, width), 70 if colours == HEAT else round(70 * _DIMMED), np.uint8)
    return Image.fromarray(painted(lung, np.tile(np.linspace(0.0, 1.0, width), (height, 1)), colours))


def inside(evidence: ConceptEvidence, size: FilmSize, finer: int = 1) -> Bool[np.ndarray, "high wide"]:
    """Pixels at least half as strong as the peak or strong enough by themselves, with corners rounded.

    The second half of the rule keeps a smaller focus from being lost beside a very strong one.
    """
    strong = upsampled(strengths(evidence), size) >= min(_SHARE * evidence.strength, PERHAPS)
    patch = min(size.height / evidence.mean.shape[0], size.width / evidence.mean.shape[1])
    share = cv2.GaussianBlur(strong.astype(np.float32), (0, 0), max(_ROUND * patch, 0.1))
    share = cv2.resize(share, (finer * size.width, finer * size.height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(share >= 0.5, np.bool_)


def outline(panel: Image.Image, evidence: ConceptEvidence, ink: str, thick: int = 3) -> None:
    """Draw the edge of where the concept is seen onto a film."""
    mask = np.pad(inside(evidence, FilmSize(*panel.size), finer=_FINE).astype(np.uint8), 1)
    side = thick * _FINE | 1
    rim = cv2.morphologyEx(mask, cv2.MORPH_GRADIENT, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side)))
    shown = Image.fromarray(rim[1:-1, 1:-1] * np.uint8(255)).resize(panel.size, Image.Resampling.BOX)
    halo(panel, shown, ink, "black" if is_bright(ink) else "white")
