"""What made a DICOM reading: this software with one model, and perhaps a person in front of it."""

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from highdicom import UID, AlgorithmIdentificationSequence
from highdicom.sr import (
    AlgorithmIdentification,
    DeviceObserverIdentifyingAttributes,
    ObservationContext,
    ObserverContext,
    PersonObserverIdentifyingAttributes,
)
from pydicom.sr.codedict import codes
from pydicom.uid import generate_uid

from medgrape.explain.words import NOTICE
from medgrape.interchange.dicom_codes import coding_scheme
from medgrape.interchange.dicom_source import UTF8

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
