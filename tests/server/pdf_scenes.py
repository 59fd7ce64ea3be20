"""Readings to print: films of any shape, many findings, many steps, and odd typed text."""

import numpy as np
from reading_room import corners

from medgrape.concepts import ConceptSet
from medgrape.explain.explanation import Explanation
from medgrape.explain.film_evidence import ConceptEvidence, Exemplar
from medgrape.explain.words import NOTICE
from medgrape.films.film import Film, FilmFacts
from medgrape.geometry import Box, FilmSize, PatchGrid
from medgrape.server.api.reading import ReadingResponse

NIH = ConceptSet.built_in("nih").concepts
WHEN = "2026-11-18T09:30:00.000000Z"
CHECK = {
    "claimed": "mass", "dominant": "nodule", "rival": "nodule", "gap": 0.23, "allowed": 0.05, "gate": None,
    "silenced": False, "mismatch": True, "calibrated": True, "origin": "Calibrated on 120 validation boxes.",
    "concepts": [], "reason": "Inside the box Nodule leads over Mass by 0.230, more than the 0.050 that correct boxes "
    "may show: look again before you confirm.",
}  # fmt: skip


def explanation(size, concepts=NIH, warnings=()):
    """A grey film on which each next finding is seen less."""
    grid, chance = PatchGrid(size, 12, 10), np.random.default_rng(0)
    classes = [*(one.name for one in concepts), "no_finding"]
    shares = {name: 0.6 * 0.4**rank for rank, name in enumerate(classes)}
    found = []
    for rank, concept in enumerate(concepts):
        mean = 0.1 + 0.05 * chance.random((12, 10))
        mean[2 + rank % 8, 1 + rank % 7] = 0.62 - 0.04 * rank
        picture = chance.integers(0, 255, (64, 64), np.uint8)
        like = tuple(Exemplar(f"film-{n}", n, 0.8, picture, Box(8, 8, 24, 24), n) for n in range(3))
        moves = {name: (0.3 - 0.04 * rank) * (1 if name == classes[0] else -0.1) for name in classes}
        found.append(ConceptEvidence(concept, float(mean.max()), 0.2, 0.6, mean, 0.01 * mean, like, moves=moves))
    across = np.linspace(30, 210, size.width).astype(np.uint8)
    film = Film(
        FilmFacts(format="DICOM", size=size, bits=12, photometric="MONOCHROME2"), np.tile(across, (size.height, 1))
    )
    return Explanation(film, grid, shares, tuple(found), None, tuple(classes[:-1]), tuple(warnings))


def correction(number=0, **changes):
    fields = {
        "kind": "box",
        "concept": "mass",
        "box": corners((310, 120 + number, 420, 260 + number)),
        "confirmed": True,
    }
    return fields | {"check": CHECK} | changes


def step(number, explained, reason=None, **changes):
    before = dict(explained.probabilities)
    after = before | {"mass": 0.9 * before["mass"], "no_finding": before["no_finding"] + 0.1 * before["mass"]}
    return {
        "step": number, "event": number + 10, "at": WHEN, "by": "ada", "kind": "corrected", "reason": reason,
        "about": "corrected", "correction": correction(number), "replaced": None, "before": before, "after": after,
    } | changes  # fmt: skip


def reading(explained, steps=(), **changes):
    """Everything that is known of it."""
    size, shares = explained.film, dict(explained.probabilities)
    facts = FilmFacts(
        format="DICOM", size=size, bits=12, photometric="MONOCHROME2", modality="DX", view="PA", spacing=(0.143, 0.143)
    ).to_json()
    study = {
        "id": "1" * 16, "film": "2" * 16, "model": "3" * 16, "reader": "ada", "opened_at": WHEN, "changed_at": WHEN,
        "revision": len(steps), "at": len(steps), "prediction": shares, "first_prediction": shares, "notice": NOTICE,
        "corrections": [one["correction"] for one in steps], "can_undo": True, "can_redo": False,
    } | changes  # fmt: skip
    return ReadingResponse.model_validate(
        {
            "notice": NOTICE, "software": "medgrape", "made_at": WHEN, "study": study, "history": list(steps),
            "film": {"id": "2" * 16, "arrived_at": WHEN, "facts": facts, "sex": "F", "age": 57},
            "model": {"name": "nih", "version": "3" * 16, "fingerprint": "9f86d081884c"},
            "explanation": explained.to_json(),
        }
    )  # fmt: skip


def tall():
    return FilmSize(600, 2400)


def wide():
    return FilmSize(2400, 500)


def usual():
    return FilmSize(2048, 2500)
