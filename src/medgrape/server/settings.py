"""How a server runs: one TOML file, typed and frozen, like the settings of a training."""

import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from medgrape.config import ConfigError, FilmLimits, Settings
from medgrape.config.base import Listed, first_complaint

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable that tells workers where they add their figures up; the name is Prometheus' own."""
API = "/api/v1"
"""Where programs find the server."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class OidcSettings(Settings):
    """Login through an OpenID Connect provider; off while ``issuer`` is empty."""

    issuer: str = ""
    """Address of the provider, which must offer ``.well-known/openid-configuration``."""
    client: str = ""
    """What the provider calls this server."""
    secret: str = ""
    """Its password there; empty: the environment's MEDGRAPE_OIDC_SECRET, or none at all."""
    role_claim: str = "medgrape_role"
    """Which claim of the provider's token names the role; without it, ``default_role`` counts."""
    default_role: Annotated[str, Field(pattern="^(reader|curator|admin|)$")] = ""
    """Role of those of whom the provider says nothing; empty: they are turned away."""


class RateSettings(Settings):
    """How much one person, or one address that nobody logged in from, may ask."""

    per_second: Annotated[float, Field(gt=0)] = 100.0
    """Lasting rate of requests."""
    burst: Annotated[int, Field(gt=0)] = 200
    """How many may come at once."""
    logins_per_minute: Annotated[int, Field(gt=0)] = 20
    """Attempts to log in, for each address."""


class ServerSettings(Settings):
    """Everything about a server but its models and its folder."""

    host: str = "127.0.0.1"
    """Address to listen on; any but this machine's own needs users who log in."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """0: any that is free."""
    workers: Annotated[int, Field(ge=1, le=64)] = 2
    """Processes that answer; each holds its own copy of the models."""
    database: str = ""
    """URL of a PostgreSQL or SQLite database; empty: SQLite in the room's folder."""
    data: str = ""
    """Folder of a prepared data set to measure models on, usually the one that they were trained on; empty: none."""
    public_url: str = ""
    """Where people find the server, when a proxy stands before it: https://reading.example.org."""
    proxies: Annotated[tuple[str, ...], Listed] = ()
    """Addresses of proxies whose word about the caller's address is believed."""
    tls_certificate: str = ""
    """PEM file; with it the server speaks HTTPS itself."""
    tls_key: str = ""
    """PEM file."""
    session_hours: Annotated[float, Field(gt=0, le=168)] = 12.0
    """How long somebody stays logged in."""
    body_bytes: Annotated[int, Field(gt=0)] = 2**20
    """Largest request but for films."""
    film_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Longest that decoding a film may take."""
    decoders: Annotated[int, Field(ge=1, le=64)] = 2
    """Processes that decode films."""
    models_in_memory: Annotated[int, Field(ge=1)] = 3
    """Models that are kept loaded, the last used ones."""
    films: FilmLimits = FilmLimits()
    rate: RateSettings = RateSettings()
    oidc: OidcSettings = OidcSettings()

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK

    @property
    def is_shared(self) -> bool:
        """Whether others can reach it, by themselves or through a proxy."""
        return not self.is_local or bool(self.public_url or self.proxies)

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by HTTPS."""
        return bool(self.tls_certificate) or self.public_url.startswith("https://")


def load_server_settings(file: Path | None) -> ServerSettings:
    """A file's settings, or the defaults."""
    if file is None:
        return ServerSettings()
    try:
        told = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file} is not there.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}.") from error
    try:
        return ServerSettings.model_validate(told)
    except ValidationError as error:
        raise ConfigError(f"{file}: {first_complaint(error, ServerSettings)}") from error
