"""Settings of DICOMweb servers, from a TOML file. Only servers in this file can be reached."""

import os
import tomllib
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, model_validator

from medgrape.config import ConfigError, Settings
from medgrape.config.settings import first_complaint
from medgrape.errors import nearest

DEFAULT_FILE = Path("pacs.toml")
FILE_VARIABLE = "MEDGRAPE_PACS"  # environment variable with the path of the file


class ServerSettings(Settings):
    """One server. Secrets are in environment variables or separate files, never here."""

    url: Annotated[str, Field(min_length=1)]  # root of its DICOMweb services: https://pacs.example.org/dicom-web
    username: str = ""  # for HTTP basic authentication
    password_env: str = ""  # environment variable with the password
    password_file: str = ""  # file with the password only
    token_env: str = ""  # environment variable with a bearer token, instead of user and password
    token_file: str = ""  # file with the token, read again for each request
    ca_file: str = ""  # trusted certificates (PEM); empty: those of this machine
    client_certificate: str = ""  # our own certificate (PEM)
    client_key: str = ""  # its key (PEM), if not in the same file
    timeout: Annotated[float, Field(gt=0, le=3600)] = 30.0  # seconds without an answer
    page: Annotated[int, Field(ge=1, le=10_000)] = 100  # studies or films per request
    max_bytes: Annotated[int, Field(gt=0)] = 256 * 2**20  # largest film to fetch
    allow_http: bool = False  # allow unencrypted connections to other machines: names and films can be read on the way

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Raise an error that does not repeat the values: a URL may hold a password."""
        _check_url(self.url, allow_http=self.allow_http)
        if self.password_env and self.password_file:
            raise ValueError("set only one of password_env and password_file")
        if [self.token_env, self.token_file, self.username].count("") < 2:
            raise ValueError("set only one of token_env, token_file and username")
        if bool(self.username) != bool(self.password_env or self.password_file):
            raise ValueError("username needs password_env or password_file, and these need username")
        if self.client_key and not self.client_certificate:
            raise ValueError("client_key needs client_certificate")
        return self


def _check_url(url: str, *, allow_http: bool) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("url is not a valid address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("url must begin with https:// and name a host")
    if parts.username or parts.password:
        raise ValueError("url must not hold a user or password; see username and password_env")
    if parts.query or parts.fragment:
        raise ValueError("url must end with its path, without ? or #")
    if parts.scheme == "http" and not (allow_http or _is_this_machine(host)):
        raise ValueError("url must be https; allow_http = true would send names and films unencrypted")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Server:
    """A configured server."""

    name: str
    settings: ServerSettings
    folder: Path  # folder of the settings file, from which relative paths start

    def file(self, path: str) -> Path:
        """Return a file that the settings name."""
        return self.folder / Path(path).expanduser()


def configured_server(name: str, file: Path | None = None) -> Server:
    """Return the server from the given file, else from the file named in the environment, else from ``pacs.toml``."""
    path = file or Path(os.environ.get(FILE_VARIABLE) or DEFAULT_FILE)
    tables = _read_tables(path)
    if name not in tables:
        hint = "; give a server's name, not an address" if "/" in name or ":" in name else ""
        raise ConfigError(f"{path} has no server {name!r}{nearest(name, tables)}{hint}.")
    try:
        return Server(name, ServerSettings.model_validate(tables[name]), path.resolve().parent)
    except ValidationError as error:
        complaint = first_complaint(error, ServerSettings, show_value=False)
        raise ConfigError(f"{path}, servers.{name}: {complaint}") from None


def _read_tables(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"{path} does not exist; list your servers in it (docs/how-to/pacs.md), or give another file by --servers."
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    unknown = next((key for key in content if key != "servers"), None)
    if unknown is not None:
        raise ConfigError(f"{path}: there is no key {unknown!r}{nearest(unknown, ['servers'])}.")
    servers = content.get("servers")
    if not servers or not isinstance(servers, dict) or not all(isinstance(table, dict) for table in servers.values()):
        raise ConfigError(f"{path} has no server; add a table such as [servers.hospital] with a url.")
    return servers
