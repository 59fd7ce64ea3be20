"""HTTP requests to one DICOMweb server, only to addresses below its configured URL; redirects are not followed."""

import json
import os
import ssl
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import urlencode

import httpx2

from medgrape.errors import UserError
from medgrape.hospital.pacs.servers import Server

_MAX_RESPONSE = 64 * 2**20  # bytes; a page of a hundred studies has some hundred thousand
_JSON = "application/dicom+json"


class PacsError(UserError):
    """A request to a server failed."""


class UnreachableError(PacsError):
    """The server does not answer, is overloaded or closed the connection; a later request may succeed."""


class AuthenticationError(PacsError):
    """The server denied access, or its certificate is not trusted; somebody has to change a setting."""


class NotFoundError(PacsError):
    """The server does not have the requested object."""


class ResponseError(PacsError):
    """The server refused the request, or its response cannot be used."""


class CredentialsError(UserError):
    """The password or token cannot be read; often its file is being replaced at this moment."""


def _status_error(name: str, status: int) -> PacsError:
    """Return the error for an HTTP status that is not 2xx."""
    if status in (401, 403):
        return AuthenticationError(
            f"{name} denied access (HTTP {status}); check the user, password or token that pacs.toml names."
        )
    if status in (404, 410):
        return NotFoundError(
            f"{name} does not have this object (HTTP {status}); check the url in pacs.toml if it is new."
        )
    if status in (408, 425, 429, 500, 502, 503, 504, 507):
        return UnreachableError(f"{name} failed or is overloaded (HTTP {status}); try again later, or see its log.")
    if 300 <= status < 400:
        return ResponseError(
            f"{name} redirects to another address (HTTP {status}), which is not followed; correct its url in pacs.toml."
        )
    return ResponseError(f"{name} refused the request (HTTP {status}); its log has the reason.")


def _authorization(server: Server) -> str:
    """Return the value of the Authorization header; empty if the server needs none."""
    settings = server.settings
    if settings.username:
        password = _read_secret(server, settings.password_env, settings.password_file)
        return "Basic " + b64encode(f"{settings.username}:{password}".encode()).decode()
    token = _read_secret(server, settings.token_env, settings.token_file)
    return f"Bearer {token}" if token else ""


def _read_secret(server: Server, variable: str, file: str) -> str:
    if variable:
        secret = os.environ.get(variable, "")
        if not secret:
            raise CredentialsError(f"{server.name}: the environment variable {variable} is not set.")
        return secret
    if not file:
        return ""
    try:
        secret = server.file(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise CredentialsError(f"{server.name}: the secret in {server.file(file)} cannot be read.") from None
    if not secret:
        raise CredentialsError(f"{server.name}: {server.file(file)} is empty.")
    return secret


def _ssl_context(server: Server) -> ssl.SSLContext:
    """Return a context with the trusted certificates and the client's own. Certificates are always verified."""
    settings = server.settings
    try:
        context = ssl.create_default_context(cafile=str(server.file(settings.ca_file)) if settings.ca_file else None)
        if settings.client_certificate:
            key = str(server.file(settings.client_key)) if settings.client_key else None
            context.load_cert_chain(str(server.file(settings.client_certificate)), key)
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"{server.name}: its certificates cannot be used ({error.strerror or 'not PEM'}).") from None
    return context


class Connection:
    """A client of one server. Films are streamed, so that none is held in memory."""

    def __init__(self, server: Server) -> None:
        self.server, self.name = server, server.name
        _authorization(server)  # report missing credentials before the first request
        self._client = httpx2.Client(
            auth=self._authorize,
            verify=_ssl_context(server),
            timeout=server.settings.timeout,
            follow_redirects=False,
            trust_env=False,  # no proxies or passwords from the environment
        )

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _authorize(self, request: httpx2.Request) -> httpx2.Request:
        """Add the credentials, read anew for each request: tokens are renewed while a watch runs."""
        authorization = _authorization(self.server)
        if authorization:
            request.headers["Authorization"] = authorization
        return request

    def search(self, path: Sequence[str], query: Sequence[tuple[str, str]]) -> object:
        """Return the parsed JSON of a search (QIDO-RS); None if nothing was found."""
        with self._request("GET", path, {"Accept": _JSON}, query=query) as response:
            body = self._read_body(response)
        try:
            return json.loads(body) if body.strip() else None
        except (ValueError, RecursionError):  # RecursionError: nested too deeply
            raise ResponseError(
                f"{self.name} sent something that is not DICOM JSON; check that its url in pacs.toml leads to DICOMweb."
            ) from None

    @contextmanager
    def retrieve(self, path: Sequence[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Yield the media type and the streamed bytes of an object (WADO-RS)."""
        accept = 'multipart/related; type="application/dicom"; transfer-syntax=*'
        with self._request("GET", path, {"Accept": accept, "Accept-Encoding": "identity"}) as response:
            yield response.headers.get("Content-Type", ""), response.iter_bytes()

    def store(self, body: Iterator[bytes], length: int, media_type: str) -> tuple[int, object]:
        """Send objects (STOW-RS). Return the status, which may say that they were refused, and the parsed JSON."""
        headers = {"Accept": _JSON, "Content-Type": media_type, "Content-Length": str(length)}
        allowed = (400, 409, 415, 422)
        with self._request("POST", ["studies"], headers, content=body, allowed=allowed) as response:
            payload = self._read_body(response)
        try:
            return response.status_code, json.loads(payload)
        except (ValueError, RecursionError):
            return response.status_code, None

    @contextmanager
    def _request(
        self,
        method: str,
        path: Sequence[str],
        headers: Mapping[str, str],
        *,
        query: Sequence[tuple[str, str]] = (),
        content: Iterator[bytes] | None = None,
        allowed: tuple[int, ...] = (),
    ) -> Iterator[httpx2.Response]:
        """Yield the response if its status is 2xx or ``allowed``. Errors omit httpx's text, which may hold URLs."""
        url = "/".join([self.server.settings.url.rstrip("/"), *path]) + ("?" + urlencode(query) if query else "")
        try:
            with self._client.stream(method, url, headers=dict(headers), content=content) as response:
                if not response.is_success and response.status_code not in allowed:
                    raise _status_error(self.name, response.status_code)
                yield response
        except httpx2.TimeoutException:
            seconds = self.server.settings.timeout
            raise UnreachableError(f"{self.name} did not answer within {seconds:g} s; check that it runs.") from None
        except httpx2.ConnectError as error:
            if _is_certificate_error(error):
                raise AuthenticationError(
                    f"{self.name} has a certificate that is not trusted; set the right ca_file in pacs.toml."
                ) from None
            raise UnreachableError(
                f"{self.name} does not answer; check that it runs and that its url in pacs.toml is right."
            ) from None
        except httpx2.TransportError:
            raise UnreachableError(f"{self.name} closed the connection; try again.") from None
        except (httpx2.InvalidURL, httpx2.DecodingError):
            raise ResponseError(f"{self.name} sent something that is not DICOMweb.") from None

    def _read_body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > _MAX_RESPONSE:
                raise ResponseError(
                    f"{self.name} sent more than {_MAX_RESPONSE:,} bytes; set a smaller page in pacs.toml."
                )
        return bytes(body)


def _is_certificate_error(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None
