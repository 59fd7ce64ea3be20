"""The boxes that people drew, as a DICOM presentation state: a viewer shows the film upright with the boxes on it."""

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
from medgrape.hospital.codes import Provenance
from medgrape.hospital.report import outline
from medgrape.hospital.source import SourceFilm
from medgrape.study import Study

_SERIES_NUMBER = 9903
_NOTICE_AREA = (0.0, 0.97, 0.6, 1.0)  # as fractions of the displayed area
_DEVICE_CLASS = 12  # offset of the device class in an ICC profile


def build_presentation_state(study: Study, source: SourceFilm, provenance: Provenance) -> Dataset | None:
    """Return the boxes in force, each with its number, finding and result of the check; None if there are none."""
    boxes = [(number, box) for number, box in enumerate(study.corrections, start=1) if isinstance(box, BoxCorrection)]
    if not boxes:
        return None
    layers = {
        True: GraphicLayer("IS_HERE", 1, "A person says: it is here", CIELabColor(88.0, -70.0, 60.0)),
        False: GraphicLayer("IS_NOT_HERE", 2, "A person says: it is not here", CIELabColor(65.0, 50.0, 35.0)),
    }
    notice_layer = GraphicLayer("NOTICE", 3, NOTICE)
    notice = TextObject(
        NOTICE, AnnotationUnitsValues.DISPLAY, _NOTICE_AREA, text_justification=TextJustificationValues.LEFT
    )
    concepts = study.original.concepts
    content = {
        "content_label": "BOXES",
        "content_description": NOTICE,
        "content_creator_name": provenance.person,
        "graphic_annotations": [
            *(_annotate(box, number, layers[box.positive], concepts, source) for number, box in boxes),
            GraphicAnnotation([source.header], notice_layer, text_objects=[notice]),
        ],
        "graphic_layers": [*layers.values(), notice_layer],
        **provenance.object_attributes(_SERIES_NUMBER, "Boxes by medgrape"),
    }
    state = _colour_state(source, content) if source.in_colour else _grey_state(source, content)
    state.BodyPartExamined = "CHEST"  # a body part with a left and a right side would need a laterality
    _show_upright(state, source)
    return state


def _annotate(
    box: BoxCorrection, number: int, layer: GraphicLayer, concepts: ConceptSet, source: SourceFilm
) -> GraphicAnnotation:
    """Return the box's outline, and its label at the corner that is the upper left one on the upright film."""
    on_film = box.box.clipped(source.upright) or box.box
    anchor = source.turn.back.point(on_film.x1, on_film.y1, source.upright)
    label = f"{number}: {'Any finding' if box.concept is None else concepts[box.concept].title}"
    label += " is here" if box.positive else " is not here"
    if box.check is not None and box.check.mismatch:
        label += f"; confirmed, though the model sees {concepts[box.check.dominant].title}"
    units = AnnotationUnitsValues.PIXEL
    return GraphicAnnotation(
        [source.header],
        layer,
        graphic_objects=[GraphicObject(GraphicTypeValues.POLYLINE, outline(source.as_stored(box.box)), units)],
        text_objects=[TextObject(label, units, anchor_point=anchor, anchor_point_visible=False)],
    )


def _grey_state(source: SourceFilm, content: dict[str, Any]) -> Dataset:
    """Show the film with its own window or table; invert a film that is stored inverted."""
    inverse = source.header.PhotometricInterpretation == "MONOCHROME1"
    shape = PresentationLUTShapeValues.INVERSE if inverse else PresentationLUTShapeValues.IDENTITY
    lut = PresentationLUTTransformation(presentation_lut_shape=shape)
    state = GrayscaleSoftcopyPresentationState([source.header], **content, presentation_lut_transformation=lut)
    state.update(deepcopy(source.greys))
    return state


def _colour_state(source: SourceFilm, content: dict[str, Any]) -> Dataset:
    """Take the colours as sRGB, and a palette as the colours in it."""
    film = deepcopy(source.header)
    film.SamplesPerPixel = 3
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    profile = srgb[:_DEVICE_CLASS] + b"scnr" + srgb[_DEVICE_CLASS + 4 :]  # DICOM requires an input device's profile
    return ColorSoftcopyPresentationState([film], **content, icc_profile=profile)


def _show_upright(state: Dataset, source: SourceFilm) -> None:
    """Set the turn, and the displayed area: its corners on the upright film, in stored pixels counted from 1."""
    area, upright = state.DisplayedAreaSelectionSequence[0], source.upright
    first, last = Box(0, 0, 1, 1), Box(upright.width - 1, upright.height - 1, upright.width, upright.height)
    for keyword, pixel in (("TopLeft", first), ("BottomRight", last)):
        stored = source.turn.back.box(pixel, upright)
        setattr(area, f"DisplayedArea{keyword}HandCorner", [int(stored.x1) + 1, int(stored.y1) + 1])
    if source.turn:
        state.ImageRotation = 90 * (source.turn.quarters % 4)
        state.ImageHorizontalFlip = "Y" if source.turn.flipped else "N"
