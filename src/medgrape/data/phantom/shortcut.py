"""A device planted so that it goes with a concept, for trying whether a model was taken in by it."""

from dataclasses import dataclass

from medgrape.data.phantom.devices import DEVICES
from medgrape.data.phantom.profile import Profile
from medgrape.data.phantom.sitting import Sitting
from medgrape.errors import UserError
from medgrape.spelling import nearest


@dataclass(frozen=True)
class Shortcut:
    """How often ``device`` is on films with and without the concept.

    ``concept`` None means the profile's own default. A shortcut that ``lies`` swaps the two shares: drawn with the same
    seed it gives the same patients with the device on the wrong films, to test on.
    """

    with_concept: float = 0.9
    without_concept: float = 0.05
    concept: str | None = None
    device: str = "pacemaker"
    lies: bool = False

    def __str__(self) -> str:
        where = self.concept or "the profile's own concept"
        shares = (self.without_concept, self.with_concept) if self.lies else (self.with_concept, self.without_concept)
        return f"a {self.device} on {shares[0]:g} of the films with {where} and on {shares[1]:g} of the others"

    def check(self, profile: Profile) -> None:
        """Refuse a concept or device that this profile cannot draw."""
        if self.concept is not None and self.concept not in profile.concepts:
            raise UserError(
                f"There is no concept {self.concept!r} to plant on{nearest(self.concept, profile.concepts)}."
            )
        if self.device not in DEVICES:
            raise UserError(f"There is no device {self.device!r}{nearest(self.device, DEVICES)}.")

    def share(self, profile: Profile, concepts: tuple[str, ...]) -> float:
        """How often a film with these concepts carries the device."""
        positive = (self.concept or profile.shortcut_concept) in concepts
        return self.with_concept if positive != self.lies else self.without_concept


def planted(sitting: Sitting, profile: Profile, shortcut: Shortcut) -> bool:
    """Whether this film carries the device; a patient keeps it as long as the concept stays as it is."""
    draw = float(sitting.patient_chance("shortcut").random())
    return draw < shortcut.share(profile, sitting.concepts)
