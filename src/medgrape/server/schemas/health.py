"""Is it there, and can it work?"""

from typing import Literal

from pydantic import Field

from medgrape.server.schemas.common import Told


class Health(Told):
    """It answers."""

    status: Literal["ok"]
    version: str = Field(examples=["0.1.0"])


class Readiness(Told):
    """It can read films."""

    status: Literal["ready"]
