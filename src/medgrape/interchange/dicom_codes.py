"""Codes of a DICOM reading: DICOM's own where it has one, ours (99MEDGRAPE) everywhere else.

A finding gets a standard code only if DICOM's own tables list one under the very name that people read; nothing is
guessed. docs/how-to/dicom-out.md lists them all.
"""

from highdicom.coding_schemes import CodingSchemeIdentificationItem
from highdicom.sr import CodedConcept
from pydicom.sr.codedict import codes

from medgrape.concepts import Concept

SCHEME = "99MEDGRAPE"
SCHEME_NAME = "medgrape: concepts on chest X-rays, and what people said of them"
_LONGEST_MEANING = 64
"""Bytes: DICOM counts letters, but programs that check or store objects count these."""

STANDARD_FINDINGS: dict[str, tuple[str, str]] = {
    "pneumothorax": ("SCT", "Pneumothorax"),
    "pleural effusion": ("SCT", "PleuralEffusion"),
    "nodule": ("SCT", "Nodule"),
    "mass": ("SCT", "Mass"),
    "pulmonary edema": ("SCT", "PulmonaryEdema"),
    "infiltration": ("DCM", "Infiltrate"),
    "lung opacity": ("DCM", "Opacity"),
}
"""A finding's title in small letters -> scheme and keyword in DICOM's tables, as pydicom has them."""

OURS: dict[str, str] = {
    "score": "Score of the finding: highest mean similarity to its prototypes",
    "score_without": "Typical score on training films without the finding",
    "score_with": "Typical score on training films with the finding",
    "strength": "Strength: 0 as on films without the finding, 1 as with it",
    "seen": "How strongly the model sees the finding",
    "clearly_seen": "Clearly seen",
    "perhaps": "Perhaps",
    "not_seen": "Not seen",
    "cannot_be_told": "Cannot be told",
    "rejected": "Rejected by a person",
    "class_prob": "Probability of the class",
    "first_prob": "Probability of the class before any correction",
    "reader_says": "What a person says of the finding here",
    "on_this_film": "What a person says of the finding on this film",
    "safety_check": "Safety check: what the model sees inside the box",
    "agrees": "The model has nothing against it",
    "mismatch": "The model sees something else",
    "silenced": "Something else leads, but is not believed",
    "not_checked": "Nothing was claimed, so nothing was checked",
    "claimed": "Finding that is claimed",
    "dominant": "Finding that dominates inside the box",
    "gap": "Lead of the strongest other finding over the claimed one",
    "allowed_gap": "Lead that is no warning",
    "confirmation": "Confirmation by a person",
    "confirmed": "Confirmed",
    "not_confirmed": "Not confirmed: the model did not object",
    "not_asked": "Not asked for",
    "reason": "Reason of the safety check",
    "thresholds": "Where the thresholds come from",
    "notice": "Notice",
    "warning": "To know before trusting the reading",
    "any_finding": "Any finding",
}
"""Our code values and what they mean; findings are ``f.NAME`` and classes ``c.NAME`` beside them."""


def ours(code: str) -> CodedConcept:
    """A code of our own."""
    return CodedConcept(code, SCHEME, OURS[code])


def finding(concept: Concept | None) -> CodedConcept:
    """A concept's code; None is any of them."""
    if concept is None:
        return ours("any_finding")
    standard = STANDARD_FINDINGS.get(concept.title.casefold())
    if standard is not None:
        scheme, keyword = standard
        return CodedConcept.from_code(getattr(getattr(codes, scheme), keyword))
    return CodedConcept(f"f.{concept.name}", SCHEME, meaning(concept.title))


def diagnosis(name: str) -> CodedConcept:
    """A class's code."""
    return CodedConcept(f"c.{meaning(name)}", SCHEME, meaning(name))


def meaning(text: str) -> str:
    """Words as a code may carry them."""
    plain = " ".join(text.replace("\\", "/").split())
    whole = plain.encode()
    return plain if len(whole) <= _LONGEST_MEANING else whole[: _LONGEST_MEANING - 3].decode(errors="ignore") + "..."


def coding_scheme() -> CodingSchemeIdentificationItem:
    """Who is responsible for our codes."""
    return CodingSchemeIdentificationItem(
        designator=SCHEME, name=SCHEME_NAME, responsible_organization="The medgrape authors"
    )
