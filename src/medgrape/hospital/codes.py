"""Codes of findings and statements in DICOM objects, and the software, model and person that made an object."""

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

NAME, MANUFACTURER = "medgrape", "The medgrape authors"
VERSION = version(NAME)
SCHEME = "99MEDGRAPE"
SCHEME_NAME = "medgrape: concepts on chest X-rays, and what people said of them"
_MAX_MEANING = 64  # bytes: DICOM counts characters, but programs that check or store objects count bytes
STANDARD_FINDINGS: dict[str, tuple[str, str]] = {
    "pneumothorax": ("SCT", "Pneumothorax"),
    "pleural effusion": ("SCT", "PleuralEffusion"),
    "nodule": ("SCT", "Nodule"),
    "mass": ("SCT", "Mass"),
    "pulmonary edema": ("SCT", "PulmonaryEdema"),
    "infiltration": ("DCM", "Infiltrate"),
    "lung opacity": ("DCM", "Opacity"),
}
"""Title in lower case -> scheme and keyword in pydicom's tables."""
PRIVATE_CODES: dict[str, str] = {
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
"""Value -> meaning in our scheme, besides ``f.NAME`` for findings and ``c.NAME`` for classes."""


def private_code(value: str) -> CodedConcept:
    """Return a code of our scheme."""
    return CodedConcept(value, SCHEME, PRIVATE_CODES[value])


def finding_code(concept: Concept | None) -> CodedConcept:
    """Return the code of a concept, a standard one if there is one; of any finding for None."""
    if concept is None:
        return private_code("any_finding")
    standard = STANDARD_FINDINGS.get(concept.title.casefold())
    if standard is not None:
        scheme, keyword = standard
        return CodedConcept.from_code(getattr(getattr(codes, scheme), keyword))
    return CodedConcept(f"f.{concept.name}", SCHEME, code_meaning(concept.title))


def class_code(name: str) -> CodedConcept:
    """Return the code of a class."""
    meaning = code_meaning(name)
    return CodedConcept(f"c.{meaning}", SCHEME, meaning)


def code_meaning(text: str) -> str:
    """Return the text as DICOM allows it in a code: one line without backslashes, cut to 64 bytes."""
    line = " ".join(text.replace("\\", "/").split())
    content = line.encode()
    return line if len(content) <= _MAX_MEANING else content[: _MAX_MEANING - 3].decode(errors="ignore") + "..."


@dataclass(frozen=True)
class Provenance:
    """What made an object: this software with a model, and perhaps a person."""

    model: str  # fingerprint of the model
    person: str | None
    corrected: bool = False  # whether corrections, by whomever, changed the result

    def observation_context(self) -> ObservationContext:
        """Return device and person as observers; the device's UID depends on the model only."""
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

    def measuring_algorithm(self) -> AlgorithmIdentification:
        """Return the algorithm of a measurement."""
        return AlgorithmIdentification(name=NAME, version=VERSION, parameters=[f"model {self.model}"])

    def segmenting_algorithm(self) -> AlgorithmIdentificationSequence:
        """Return the algorithm of a segment."""
        family = codes.DCM.ArtificialIntelligence
        return AlgorithmIdentificationSequence(NAME, family, VERSION, parameters={"model": self.model})

    def object_attributes(self, series_number: int, description: str) -> dict[str, Any]:
        """Return the attributes of every object: new UIDs in a series of its own, the device and the notice."""
        return {
            "series_instance_uid": UID(),
            "series_number": series_number,
            "sop_instance_uid": UID(),
            "instance_number": 1,
            "manufacturer": MANUFACTURER,
            "manufacturer_model_name": NAME,
            "software_versions": VERSION,
            "device_serial_number": self.model,
            "series_description": f"{description}. {NOTICE}",
            "specific_character_set": UTF8,
            "coding_schemes": [
                CodingSchemeIdentificationItem(SCHEME, SCHEME_NAME, responsible_organization=MANUFACTURER)
            ],
        }
