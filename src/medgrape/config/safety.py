"""From when on a box that somebody draws is doubted, in a run that nobody calibrated."""

from typing import Annotated

from pydantic import Field

from medgrape.config.base import Settings


class SafetySettings(Settings):
    """The paper's check; ``medgrape calibrate`` learns better thresholds from boxes."""

    lead: Annotated[float, Field(ge=0)] = 0.05
    """eta: by how much another concept must lead inside the box."""
    gate: Annotated[float, Field(ge=0)] = 2e-4
    """theta_V: highest variance of the leading concept's prototypes inside the box at which it is believed; inf always
    believes it. The paper's value suits prototypes that have become one vector; where they differ, it silences all."""
