"""From when on a box that somebody draws is doubted."""

from typing import Annotated, Literal

from pydantic import Field

from medgrape.config.base import Settings


class SafetySettings(Settings):
    """The paper's check, and whether training goes on to learn better thresholds from validation boxes."""

    calibrate: Literal["none", "bounded", "balanced"] = "none"
    """What training ends with, as ``medgrape calibrate`` would: ``bounded`` promises few false alarms, ``balanced``
    parts right from wrong claims best; ``none`` leaves the lead and gate below."""

    lead: Annotated[float, Field(ge=0)] = 0.05
    """eta: by how much another concept must lead inside the box."""
    gate: Annotated[float, Field(ge=0)] = 2e-4
    """theta_V: highest variance of the leading concept's prototypes inside the box at which it is believed; inf always
    believes it. The paper's value suits prototypes that have become one vector; where they differ, it silences all."""
