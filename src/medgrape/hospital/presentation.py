"""The boxes that people drew, as a presentation state: a viewer shows the film upright with the boxes on it."""

from copy import deepcopy
from typing import Any

from highdicom import PresentationLUTShapeValues, PresentationLUTTransformation
from highdicom.color import CIELabColor
from highdicom.pr import (
    AnnotationUnitsValues,
    ColorSoftcopyPresentationState,
    GraphicAnnotation,
    GraphicLayer,
    GraphicObject,
    GraphicTypeValues,
    GrayscaleSoftcopyPresentationState,
    TextJustificationValues,
    TextObject,
)
from PIL import ImageCms
from pydicom import Dataset

from medgrape.concepts import ConceptSet
from medgrape.corrections.statements import BoxCorrection
from medgrape.explain.words import NOTICE
from medgrape.geometry import Box
from medgrape.hospital.codes import Makers
from medgrape.hospital.report import outline
from medgrape.hospital.source import SourceFilm
from medgrape.study import Study

SERIES = 9903
_CORNER = (0.0, 0.97, 0.6, 1.0)
"""Where the notice stands, as shares of what is shown."""
_DEVICE_CLASS = 12
"""Where a colour profile says of which kind of device it is."""


def presentation(study: Study, source: SourceFilm, makers: Makers) -> Dataset | None:
    """The boxes in force, each with its number, finding and what came of the check; None where nobody drew any."""
    drawn = [(number, one) for number, one in enumerate(study.corrections, start=1) if isinstance(one, BoxCorrection)]
    if not drawn:
        return None
    layers = {
        True: GraphicLayer("IS_HERE", 1, "A person says: it is here", CIELabColor(88.0, -70.0, 60.0)),
        False: GraphicLayer("IS_NOT_HERE", 2, "A person says: it is not here", CIELabColor(65.0, 50.0, 35.0)),
    }
    notice = GraphicLayer("NOTICE", 3, NOTICE)
    concepts = study.original.concepts
    annotations = [_annotation(box, number, layers[box.positive], concepts, source) for number, box in drawn]
    told = {
        "content_label": "BOXES",
        "content_description": NOTICE,
        "content_creator_name": makers.person,
        "graphic_annotations": [*annotations, _notice(notice, source)],
        "graphic_layers": [*layers.values(), notice],
        **makers.object_of(SERIES, "Boxes by medgrape"),
    }
    state = _in_colour(source, told) if source.in_colour else _in_greys(source, told)
    state.BodyPartExamined = "CHEST"  # has both sides; of any other part it would have to say which
    _turn(state, source)
    return state


def _annotation(
    drawn: BoxCorrection, number: int, layer: GraphicLayer, concepts: ConceptSet, source: SourceFilm
) -> GraphicAnnotation:
    """The box's outline and, at the corner that is the upper left one for people, what it says."""
    on_film = drawn.box.clipped(source.upright) or drawn.box
    anchor = source.turn.back.point(on_film.x1, on_film.y1, source.upright)
    units = AnnotationUnitsValues.PIXEL
    return GraphicAnnotation(
        [source.header],
        layer,
        graphic_objects=[GraphicObject(GraphicTypeValues.POLYLINE, outline(source.as_stored(drawn.box)), units)],
        text_objects=[
            TextObject(label(drawn, number, concepts), units, anchor_point=anchor, anchor_point_visible=False)
        ],
    )


def label(drawn: BoxCorrection, number: int, concepts: ConceptSet) -> str:
    """A box in a few words."""
    what = "Any finding" if drawn.concept is None else concepts[drawn.concept].title
    said = f"{number}: {what} {'is here' if drawn.positive else 'is not here'}"
    if drawn.check is None or not drawn.check.mismatch:
        return said
    return f"{said}; confirmed, though the model sees {concepts[drawn.check.dominant].title}"


def _notice(layer: GraphicLayer, source: SourceFilm) -> GraphicAnnotation:
    text = TextObject(NOTICE, AnnotationUnitsValues.DISPLAY, _CORNER, text_justification=TextJustificationValues.LEFT)
    return GraphicAnnotation([source.header], layer, text_objects=[text])


def _in_greys(source: SourceFilm, told: dict[str, Any]) -> Dataset:
    """With the film's own greys; a film that is stored inverted is shown inverted."""
    inverse = source.header.PhotometricInterpretation == "MONOCHROME1"
    shape = PresentationLUTShapeValues.INVERSE if inverse else PresentationLUTShapeValues.IDENTITY
    lut = PresentationLUTTransformation(presentation_lut_shape=shape)
    state = GrayscaleSoftcopyPresentationState([source.header], **told, presentation_lut_transformation=lut)
    state.update(deepcopy(source.greys))
    return state


def _in_colour(source: SourceFilm, told: dict[str, Any]) -> Dataset:
    """A film in colours of which nobody says what they are is taken to be sRGB; a palette counts as its colours."""
    film = deepcopy(source.header)
    film.SamplesPerPixel = 3
    screen = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    profile = screen[:_DEVICE_CLASS] + b"scnr" + screen[_DEVICE_CLASS + 4 :]  # DICOM wants that of what made the film
    return ColorSoftcopyPresentationState([film], **told, icc_profile=profile)


def _turn(state: Dataset, source: SourceFilm) -> None:
    """Show the film as the person saw it. The area's corners are those of the turned film, in stored pixels from 1."""
    area, upright = state.DisplayedAreaSelectionSequence[0], source.upright
    first, last = Box(0, 0, 1, 1), Box(upright.width - 1, upright.height - 1, upright.width, upright.height)
    for keyword, pixel in (("TopLeft", first), ("BottomRight", last)):
        stored = source.turn.back.box(pixel, upright)
        setattr(area, f"DisplayedArea{keyword}HandCorner", [int(stored.x1) + 1, int(stored.y1) + 1])
    if source.turn:
        state.ImageRotation = 90 * (source.turn.quarters % 4)
        state.ImageHorizontalFlip = "Y" if source.turn.flipped else "N"
