"""What made a DICOM reading: this software with one model, and perhaps a person in front of it."""

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from highdicom import UID, AlgorithmIdentificationSequence
from highdicom.coding_schemes import CodingSchemeIdentificationItem
from highdicom.sr import (
    AlgorithmIdentification,
    CodedConcept,
    DeviceObserverIdentifyingAttributes,
    ObservationContext,
    ObserverContext,
    PersonObserverIdentifyingAttributes,
)
from pydicom.sr.codedict import codes
from pydicom.uid import generate_uid

from medgrape.concepts import Concept
from medgrape.explain.words import NOTICE
from medgrape.hospital.source import UTF8

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


NAME, MANUFACTURER = "medgrape", "The medgrape authors"
VERSION = version(NAME)


@dataclass(frozen=True)
class Makers:
    """The device, always; the person, where one is named."""

    model: str
    """The model's fingerprint."""
    person: str | None
    corrected: bool = False
    """Whether anybody's corrections, named or not, had a part in it."""

    def observed(self) -> ObservationContext:
        """Who looked at the film; a device's UID is the same for the same model."""
        device = DeviceObserverIdentifyingAttributes(
            uid=generate_uid(entropy_srcs=["medgrape device", self.model]),
            name=NAME,
            manufacturer_name=MANUFACTURER,
            model_name=f"{NAME} {VERSION}",
            serial_number=self.model,
        )
        person = None if self.person is None else PersonObserverIdentifyingAttributes(name=self.person)
        return ObservationContext(
            observer_person_context=None if person is None else ObserverContext(codes.DCM.Person, person),
            observer_device_context=ObserverContext(codes.DCM.Device, device),
        )

    def algorithm(self) -> AlgorithmIdentification:
        """What computed a figure."""
        return AlgorithmIdentification(name=NAME, version=VERSION, parameters=[f"model {self.model}"])

    def segmenting(self) -> AlgorithmIdentificationSequence:
        """The same for a segment."""
        return AlgorithmIdentificationSequence(
            name=NAME,
            family=codes.DCM.ArtificialIntelligence,
            version=VERSION,
            parameters={"model": self.model},
        )

    def object_of(self, series: int, what: str) -> dict[str, Any]:
        """What every object says of itself: a series of its own, fresh UIDs, and the notice."""
        return {
            "series_instance_uid": UID(),
            "series_number": series,
            "sop_instance_uid": UID(),
            "instance_number": 1,
            "manufacturer": MANUFACTURER,
            "manufacturer_model_name": NAME,
            "software_versions": VERSION,
            "device_serial_number": self.model,
            "series_description": f"{what}. {NOTICE}",
            "specific_character_set": UTF8,
            "coding_schemes": [coding_scheme()],
        }
