"""Settings of a server, from one TOML file."""

import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from medgrape.config import ConfigError, FilmLimits, Settings
from medgrape.config.settings import Listed, first_complaint

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # environment variable of prometheus_client
API = "/api/v1"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class OidcSettings(Settings):
    """Login through an OpenID Connect provider; off while ``issuer`` is empty."""

    issuer: str = ""  # address of the provider, which must offer ``.well-known/openid-configuration``
    client: str = ""  # client id of this server at the provider
    secret: str = ""  # client secret; empty: the environment variable MEDGRAPE_OIDC_SECRET, or no secret
    role_claim: str = "medgrape_role"
    """Claim of the provider's token that names the role; users without it get ``default_role``."""
    default_role: Annotated[str, Field(pattern="^(reader|curator|admin|)$")] = ""
    """Role of users whose token names none; empty: they are refused."""


class RateSettings(Settings):
    """Limits of requests for each user, or for each address without login."""

    per_second: Annotated[float, Field(gt=0)] = 100.0  # requests per second in the long run
    burst: Annotated[int, Field(gt=0)] = 200  # requests that may come at once
    logins_per_minute: Annotated[int, Field(gt=0)] = 20  # login attempts per minute for each address


class ServerSettings(Settings):
    """All settings of a server except its models and its folder."""

    host: str = "127.0.0.1"  # address to listen on; any but loopback requires users who log in
    port: Annotated[int, Field(ge=0, le=65535)] = 8000  # 0: any free port
    workers: Annotated[int, Field(ge=1, le=64)] = 2  # worker processes; each holds its own copy of the models
    database: str = ""  # URL of a PostgreSQL or SQLite database; empty: SQLite in the room's folder
    data: str = ""  # prepared data set to measure models on, usually the one that they were trained on; empty: none
    public_url: str = ""  # address that users open, if a proxy stands before the server: https://reading.example.org
    proxies: Annotated[tuple[str, ...], Listed] = ()  # addresses of proxies whose X-Forwarded headers are trusted
    tls_certificate: str = ""  # PEM file; with it the server itself uses HTTPS
    tls_key: str = ""  # PEM file
    session_hours: Annotated[float, Field(gt=0, le=168)] = 12.0  # lifetime of a login in hours
    body_bytes: Annotated[int, Field(gt=0)] = 2**20  # largest body of a request, except films
    film_seconds: Annotated[float, Field(gt=0)] = 30.0  # time limit of decoding a film
    decoders: Annotated[int, Field(ge=1, le=64)] = 2  # processes that decode films
    models_in_memory: Annotated[int, Field(ge=1)] = 3  # models kept loaded: the most recently used ones
    films: FilmLimits = FilmLimits()
    rate: RateSettings = RateSettings()
    oidc: OidcSettings = OidcSettings()

    @property
    def is_local(self) -> bool:
        """True if only this machine can reach the server."""
        return self.host in LOOPBACK

    @property
    def is_shared(self) -> bool:
        """True if other machines can reach the server, directly or through a proxy."""
        return not self.is_local or bool(self.public_url or self.proxies)

    @property
    def is_secure(self) -> bool:
        """True if browsers use HTTPS."""
        return bool(self.tls_certificate) or self.public_url.startswith("https://")


def load_server_settings(file: Path | None) -> ServerSettings:
    """Load the settings from a file; without a file, return the defaults."""
    if file is None:
        return ServerSettings()
    try:
        return ServerSettings.model_validate(tomllib.loads(file.read_text("utf-8")))
    except FileNotFoundError:
        raise ConfigError(f"{file} is not there.") from None
    except ValidationError as error:
        raise ConfigError(f"{file}: {first_complaint(error, ServerSettings)}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}.") from error
