"""A reading as DICOM files in one zip, about the film as the server keeps it: without any patient."""

import io
import tempfile
import zipfile
from pathlib import Path

from medgrape.interchange.dicom_reading import write_objects
from medgrape.server.problems import Problem
from medgrape.server.room import Room
from medgrape.server.studies import Sitting

_DICOM = ".dcm"


def dicom_zip(room: Room, sitting: Sitting) -> bytes:
    """Report, maps, boxes and the film that they are about; a film that came as a picture is refused."""
    film = sitting.film
    if film.suffix != _DICOM:
        raise Problem(
            422, "no_dicom_film", "The film came as a picture, and a DICOM reading is about a DICOM film: upload that."
        )
    kept, out = room.folder.film(film.id, film.suffix), io.BytesIO()
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        written = write_objects(sitting.study, kept, Path(place) / "reading", sitting.reader, room.settings.films)
        for path in written:
            packed.write(path, path.name)
    return out.getvalue()
