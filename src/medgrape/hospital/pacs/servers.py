"""Which servers may be asked: one TOML file. What is not in it cannot be reached, whatever somebody types."""

import os
import tomllib
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, model_validator

from medgrape.config import ConfigError, Settings
from medgrape.errors import nearest

DEFAULT_FILE = Path("pacs.toml")
FILE_VARIABLE = "MEDGRAPE_PACS"
"""Environment variable that names the file where no option does."""


class ServerSettings(Settings):
    """One server. Secrets stand in the environment or in files of their own, never here."""

    url: Annotated[str, Field(min_length=1)]
    """Where its DICOMweb services begin: https://pacs.example.org/dicom-web."""
    username: str = ""
    """For a password (HTTP basic authentication)."""
    password_env: str = ""
    """Environment variable that holds the password."""
    password_file: str = ""
    """File that holds the password, and nothing else."""
    token_env: str = ""
    """Environment variable that holds a bearer token, instead of user and password."""
    token_file: str = ""
    """File that holds the token; it is read again for each request."""
    ca_file: str = ""
    """Certificates (PEM) that the server's must come from; empty: those that this machine trusts."""
    client_certificate: str = ""
    """Certificate (PEM) with which we show who we are."""
    client_key: str = ""
    """Its key (PEM), where it is not in the same file."""
    timeout: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Seconds of silence after which the server counts as gone."""
    page: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Studies or films to ask for at once."""
    max_bytes: Annotated[int, Field(gt=0)] = 256 * 2**20
    """Largest film that is fetched."""
    allow_http: bool = False
    """Speak unencrypted with a server that is not this machine: names and films can be read by others on the way."""

    @model_validator(mode="after")
    def _is_safe(self) -> Self:
        """Told without what was written: a URL may hold a password."""
        _check_url(self.url, allow_http=self.allow_http)
        if len([one for one in (self.password_env, self.password_file) if one]) > 1:
            raise ValueError("take one of password_env and password_file")
        if len([one for one in (self.token_env, self.token_file, self.username) if one]) > 1:
            raise ValueError("take one of token_env, token_file and username")
        if bool(self.username) != bool(self.password_env or self.password_file):
            raise ValueError("username needs password_env or password_file, and these need it")
        if self.client_key and not self.client_certificate:
            raise ValueError("client_key needs client_certificate")
        return self


def _check_url(url: str, *, allow_http: bool) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("url is no address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("url must begin with https:// and name a host")
    if parts.username or parts.password:
        raise ValueError("url must not hold a user or password; see username and password_env")
    if parts.query or parts.fragment:
        raise ValueError("url must end with its path, without ? or #")
    if parts.scheme == "http" and not (allow_http or _is_this_machine(host)):
        raise ValueError("url must be https; allow_http = true lets names and films travel unencrypted")


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Server:
    """A server under the name that people call it by."""

    name: str
    settings: ServerSettings
    folder: Path
    """Where its settings stand: what they name as a file lies there, unless the path is a full one."""

    def file(self, named: str) -> Path:
        """A file that the settings name."""
        return self.folder / Path(named).expanduser()


def configured_server(name: str, file: Path | None = None) -> Server:
    """The server called ``name`` in the file given, in the environment's, or in ``pacs.toml``."""
    path = file or Path(os.environ.get(FILE_VARIABLE) or DEFAULT_FILE)
    tables = _tables(path)
    if name not in tables:
        how = "; servers are called by name, not by address" if "/" in name or ":" in name else ""
        raise ConfigError(f"{path} has no server {name!r}{nearest(name, tables)}{how}.")
    try:
        return Server(name, ServerSettings.model_validate(tables[name]), path.resolve().parent)
    except ValidationError as error:
        raise ConfigError(f"{path}, servers.{name}: {_complaint(error)}.") from None


def _complaint(error: ValidationError) -> str:
    """A mistyped key first; what was written is never repeated, for it may be a password in the wrong place."""
    found = sorted(error.errors(include_input=False), key=lambda one: one["type"] != "extra_forbidden")[0]
    key = ".".join(str(part) for part in found["loc"])
    if found["type"] == "extra_forbidden":
        return f"there is no key {key!r}{nearest(key, ServerSettings.model_fields)}"
    said = found["msg"].removeprefix("Value error, ")
    return f"{key}: {said}" if key else said


def _tables(path: Path) -> dict[str, Any]:
    try:
        told = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"{path} is not there: write one that names your servers (docs/how-to/pacs.md), or name it by --servers."
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    for key in told:
        if key != "servers":
            raise ConfigError(f"{path}: there is no key {key!r}{nearest(key, ['servers'])}.")
    servers = told.get("servers", {})
    if not isinstance(servers, dict) or not all(isinstance(one, dict) for one in servers.values()) or not servers:
        raise ConfigError(f"{path} names no server: write a table such as [servers.hospital] with a url.")
    return servers
