"""Write docs/pictures/dicom-boxes.png: a film as stored, and as viewers show it with boxes.dcm.

python tools/dicom_picture.py RUN. Greys, rotation and flip are rendered by dcmp2pgm of dcmtk, boxes drawn on top.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from pydicom import Dataset, dcmread

from medgrape.films.dicom.writer import Person, write_dicom
from medgrape.geometry import Box, FilmSize, Turn
from medgrape.hospital.objects import write_dicom_reading
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import PhantomFilm, draw
from medgrape.reader import load

PLACE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "dicom-boxes.png"
SIDE, GAP = 480, 20
COLOURS = {"IS_HERE": "#56B4E9", "IS_NOT_HERE": "#E69F00"}


def picture(run: Path) -> Image.Image:
    """Draw both films side by side."""
    with tempfile.TemporaryDirectory() as place:
        film, shown = Path(place) / "film.dcm", Path(place) / "shown.pgm"
        turn = Turn(1, True)
        drawn, box = _film_with_tuberculosis()
        write_dicom(film, turn.back.pixels(drawn.pixels), Person("invented", "F", 44), "stored on its side", "PA")
        dataset = dcmread(film)
        dataset.PatientOrientation = ["F", "L"]
        dataset.save_as(film)
        study = load(run).open(film).apply(box, "active_tb", confirmed=True)
        study = study.rule_out(Box(80, 330, 180, 420), "obsolete_tb")
        boxes = dcmread(write_dicom_reading(study, film, Path(place) / "out")[-1])
        subprocess.run(["dcmp2pgm", "-p", Path(place) / "out" / "boxes.dcm", film, shown], check=True)  # noqa: S603, S607
        stored = Image.fromarray((dataset.pixel_array >> 4).astype(np.uint8))
        by_viewer = Turn(int(boxes.ImageRotation) // 90, boxes.ImageHorizontalFlip == "Y")
        return _beside(_marked(stored, boxes, Turn()), _marked(Image.open(shown), boxes, by_viewer))


def _film_with_tuberculosis() -> tuple[PhantomFilm, Box]:
    """Return the first drawn film with active tuberculosis on its left side, and the box around it."""
    for drawn in (draw(sitting, SIDE) for sitting in plan("tb", 60, seed=4)):
        boxes = [lesion.box for lesion in drawn.lesions if lesion.concept == "active_tb"]
        if boxes and boxes[0].x1 < SIDE / 2:
            return drawn, boxes[0]
    raise SystemExit("No drawn film has active tuberculosis on its left side.")


def _marked(film: Image.Image, boxes: Dataset, turn: Turn) -> Image.Image:
    marked = film.convert("RGB")
    pen, font = ImageDraw.Draw(marked), ImageFont.load_default(size=15)
    for annotation in boxes.GraphicAnnotationSequence:
        if annotation.GraphicLayer in COLOURS:
            points = np.array(annotation.GraphicObjectSequence[0].GraphicData).reshape(-1, 2)
            line = [turn.point(x, y, FilmSize(SIDE, SIDE)) for x, y in points]
            pen.line(line, COLOURS[annotation.GraphicLayer], 3)
            text = annotation.TextObjectSequence[0]
            x, y = turn.point(*text.AnchorPoint, FilmSize(SIDE, SIDE))
            if turn:
                pen.text((x, y - 20), text.UnformattedTextValue, COLOURS[annotation.GraphicLayer], font)
    return marked


def _beside(left: Image.Image, right: Image.Image) -> Image.Image:
    sheet = Image.new("RGB", (2 * SIDE + GAP, SIDE), "white")
    sheet.paste(left, (0, 0))
    sheet.paste(right, (SIDE + GAP, 0))
    return sheet


if __name__ == "__main__":
    picture(Path(sys.argv[1])).save(PLACE)
    sys.stderr.write(f"{PLACE}\n")
