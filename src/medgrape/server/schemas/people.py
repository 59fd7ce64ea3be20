"""People, sessions and tokens."""

from pydantic import ConfigDict, Field

from medgrape.server.schemas.common import HASH, LINE, Asked, Identifier, Told, When
from medgrape.server.security.roles import Role


class LogIn(Asked):
    """Who one is."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "ada", "password": "correct horse battery"}]}
    )

    name: str = Field(min_length=1, max_length=64)
    password: str = Field(min_length=1, max_length=256)


class SessionTold(Told):
    """Who the server takes you for."""

    name: str = Field(examples=["ada"])
    role: Role
    login: bool = Field(description="False on a server that is for one person at this machine alone.")
    csrf: str | None = Field(
        description="Send it as X-CSRF-Token with everything that changes something.", examples=[HASH]
    )
    notice: str = Field(examples=["Research software, not a medical device."])


class WaysTold(Told):
    """How one logs in, and nothing else about the server."""

    login: bool = Field(description="Whether anybody has to; else the server is for one person at its machine.")
    provider: bool = Field(description="Whether GET /oidc/login leads to a login provider.")
    version: str = Field(description="Of medgrape.", examples=["0.1.0"])
    notice: str = Field(examples=["Research software, not a medical device."])


class UserTold(Told):
    """Somebody who may use the server."""

    name: str = Field(examples=["ada"])
    role: Role
    disabled: bool
    has_password: bool
    locked_until: When | None
    added_at: When


class AddUser(Asked):
    """A new user."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"name": "ada", "role": "reader", "password": "correct horse battery"}]},
    )

    name: str = Field(min_length=1, max_length=63)
    role: Role
    password: str | None = Field(default=None, max_length=256)


class ChangeUser(Asked):
    """What is to be another way; what is left out stays."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"role": "curator"}]})

    role: Role | None = None
    disabled: bool | None = None
    password: str | None = Field(default=None, max_length=256)


class TokenTold(Told):
    """A key for a machine."""

    id: Identifier
    user: str = Field(examples=["pacs"])
    name: str = Field(examples=["orthanc"])
    role: Role
    created_at: When
    expires_at: When | None
    revoked_at: When | None


class CreateToken(Asked):
    """A new key, for oneself or, by an admin, for somebody else."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "orthanc", "role": "reader", "days": 90}]}
    )

    name: str = Field(min_length=1, max_length=64, pattern=LINE)
    role: Role
    days: float | None = Field(default=90, gt=0, le=3650, description="null: it never ends by itself.")
    user: str | None = Field(default=None, min_length=1, max_length=64)


class TokenCreated(Told):
    """A key that is shown this once."""

    token: str = Field(examples=["mg_5f2b8c0a9d3e4f17_..."])
    told: TokenTold
