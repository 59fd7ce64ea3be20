"""A study as pictures: the evidence on one sheet, a finding's map to lay over the film."""

import numpy as np

from medgrape.geometry import FilmSize
from medgrape.server.inference.decoder_pool import png
from medgrape.server.problems import not_found
from medgrape.server.room import Room
from medgrape.study import Study


def evidence_picture(room: Room, study: Study) -> bytes:
    """The evidence as one PNG, as medgrape read --save draws it."""
    from medgrape.explain.render import draw  # matplotlib and its fonts are slow to import

    explained = study.explain()
    with room.decoder_pool.render_slots:
        return png(np.asarray(draw(explained)))


def map_picture(room: Room, study: Study, concept: str, kind: str, side: int) -> bytes:
    """A finding's map as PNG, clear where nothing is seen."""
    from medgrape.explain.maps import map_overlay  # matplotlib is slow to import

    explained = study.explain()
    found = next((one for one in explained.concepts if one.concept.name == concept), None)
    if found is None:
        raise not_found("concept", concept)
    size = _sized(explained.film, side)
    with room.decoder_pool.render_slots:
        return png(map_overlay(found, size, kind, explained.concepts))


def _sized(film: FilmSize, side: int) -> FilmSize:
    scale = side / max(film.width, film.height)
    return FilmSize(max(round(film.width * scale), 1), max(round(film.height * scale), 1))
