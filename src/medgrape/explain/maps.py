"""Maps of similarity and of disagreement, painted on films.

All concepts of a picture share one colour scale. A similarity map is transparent at the typical score of films without
the concept and has full colour at that of films with it, so that an absent finding stays dark, whatever its maximum.
"""

from collections.abc import Sequence

import cv2
import numpy as np
from jaxtyping import Bool, Float, UInt8
from matplotlib import colormaps
from PIL import Image

from medgrape.explain.film_evidence import ConceptEvidence
from medgrape.explain.layout import halo, is_bright
from medgrape.explain.words import PERHAPS
from medgrape.geometry import FilmSize

HEAT, SPREAD = "plasma", "cividis"
_DIMMED = 0.5  # brightness of the film under a map of disagreement, so that it is not taken for a map of the finding
OPAQUE = 0.68  # opacity of the strongest colour
ENLARGED = 6.0  # largest magnification of a film
LEAST_SPREAD = 2e-4  # smallest upper end of the scale of disagreement; up to this variance prototypes count as agreed
_FRACTION_OF_PEAK, _ROUNDING, _FINE = 0.5, 0.12, 3
Grey = UInt8[np.ndarray, "height width"]
Map = Float[np.ndarray, "height width"]


def fitted(film: FilmSize, room: FilmSize) -> FilmSize:
    """Return the largest size with the film's aspect ratio that fits."""
    scale = min(room.width / film.width, room.height / film.height, ENLARGED)
    return FilmSize(max(round(film.width * scale), 1), max(round(film.height * scale), 1))


def resized(pixels: Grey, size: FilmSize) -> UInt8[np.ndarray, "high wide"]:
    """Return the film at another size."""
    interpolation = cv2.INTER_AREA if size.width <= pixels.shape[1] else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(pixels, (size.width, size.height), interpolation=interpolation), np.uint8)


def upsampled(patches: Map, size: FilmSize) -> Float[np.ndarray, "high wide"]:
    """Return a value for each pixel, bilinear between the centres of patches."""
    values = np.nan_to_num(patches.astype(np.float64), nan=0.0)
    return np.asarray(cv2.resize(values, (size.width, size.height), interpolation=cv2.INTER_LINEAR), np.float64)


def relative(patches: Map) -> Map:
    """Scale a map so that its median is 0 and its maximum 1, which also shows the peak of a weak map."""
    median = float(np.median(patches))
    return np.asarray((patches - median) / max(float(patches.max()) - median, 1e-9), np.float64)


def strengths(evidence: ConceptEvidence) -> Map:
    """Return the map on the scale of ``strength``; all 0 if the score is not informative."""
    if not evidence.is_informative:
        return np.zeros(evidence.mean.shape)
    step = evidence.present_score - evidence.absent_score
    return np.asarray(np.nan_to_num((evidence.mean - evidence.absent_score) / step, nan=0.0), np.float64)


def painted(film: Grey, level: Map, colours: str) -> UInt8[np.ndarray, "height width 3"]:
    """Paint levels on a film: transparent at 0 and below, strongest at 1 and above."""
    ink, opacity = _ink_and_opacity(np.clip(level, 0.0, 1.0), colours)
    grey = np.repeat(film[..., None], 3, axis=2).astype(np.float64)
    return np.asarray(np.rint(grey + opacity * (ink - grey)), np.uint8)


def map_overlay(
    evidence: ConceptEvidence, size: FilmSize, kind: str, concepts: Sequence[ConceptEvidence]
) -> UInt8[np.ndarray, "height width 4"]:
    """Return a map, ``mean`` or ``disagreement``, as a transparent picture on the scale of all concepts of the film."""
    if kind == "disagreement":
        level, colours = upsampled(evidence.disagreement / widest_spread(concepts), size), SPREAD
    else:
        level, colours = upsampled(strengths(evidence), size), HEAT
    ink, opacity = _ink_and_opacity(np.linspace(0.0, 1.0, 256)[None], colours)  # 256 levels are fast to look up
    steps = np.rint(np.concatenate([ink, opacity * 255.0], axis=2)).astype(np.uint8)[0]
    return np.asarray(steps[np.rint(np.clip(level, 0.0, 1.0) * 255.0).astype(np.uint8)])


def _ink_and_opacity(level: Map, colours: str) -> tuple[np.ndarray, np.ndarray]:
    """Return colour and opacity of levels from 0 to 1."""
    ink = np.asarray(colormaps[colours](0.12 + 0.88 * level))[..., :3] * 255.0
    return ink, (OPAQUE * np.sqrt(level) * (level > 0))[..., None]


def widest_spread(concepts: Sequence[ConceptEvidence]) -> float:
    """Return the upper end of the scale of disagreement for all concepts of a picture."""
    return max([LEAST_SPREAD, *(float(np.nan_to_num(evidence.disagreement).max()) for evidence in concepts)])


def similarity_picture(film: Grey, evidence: ConceptEvidence, size: FilmSize) -> Image.Image:
    """Paint the similarity map on the film."""
    return Image.fromarray(painted(resized(film, size), upsampled(strengths(evidence), size), HEAT))


def disagreement_picture(film: Grey, evidence: ConceptEvidence, size: FilmSize, widest: float) -> Image.Image:
    """Paint the map of disagreement on the dimmed film."""
    dimmed = np.rint(resized(film, size) * _DIMMED).astype(np.uint8)
    return Image.fromarray(painted(dimmed, upsampled(evidence.disagreement / widest, size), SPREAD))


def colour_scale(colours: str, width: int, height: int) -> Image.Image:
    """Paint the colours, from 0 to 1, on the grey of a lung."""
    lung = np.full((height, width), 70 if colours == HEAT else round(70 * _DIMMED), np.uint8)
    return Image.fromarray(painted(lung, np.tile(np.linspace(0.0, 1.0, width), (height, 1)), colours))


def strong_pixels(evidence: ConceptEvidence, size: FilmSize, finer: int = 1) -> Bool[np.ndarray, "high wide"]:
    """Return the pixels that are half as strong as the peak or reach "perhaps", with rounded corners.

    The second condition keeps a smaller lesion beside a very strong one.
    """
    strong = upsampled(strengths(evidence), size) >= min(_FRACTION_OF_PEAK * evidence.strength, PERHAPS)
    patch = min(size.height / evidence.mean.shape[0], size.width / evidence.mean.shape[1])
    smooth = cv2.GaussianBlur(strong.astype(np.float32), (0, 0), max(_ROUNDING * patch, 0.1))
    smooth = cv2.resize(smooth, (finer * size.width, finer * size.height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(smooth >= 0.5, np.bool_)


def outline(panel: Image.Image, evidence: ConceptEvidence, ink: str, thick: int = 3) -> None:
    """Draw the outline of the strong pixels onto a film."""
    mask = np.pad(strong_pixels(evidence, FilmSize(*panel.size), finer=_FINE).astype(np.uint8), 1)
    side = thick * _FINE | 1
    rim = cv2.morphologyEx(mask, cv2.MORPH_GRADIENT, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side)))
    line = Image.fromarray(rim[1:-1, 1:-1] * np.uint8(255)).resize(panel.size, Image.Resampling.BOX)
    halo(panel, line, ink, "black" if is_bright(ink) else "white")
