"""Talking to one server. Only addresses below its configured one are asked, and no redirect is followed."""

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


class PacsError(UserError):
    """Something that a server did, or did not."""


class AwayError(PacsError):
    """It does not answer, or broke off: worth trying again later."""


class BarredError(PacsError):
    """It does not let us in: not worth trying again before somebody changed something."""


class MissingError(PacsError):
    """It does not have what it was asked for."""


class RefusalError(PacsError):
    """It answered with something that is of no use."""


class SecretError(UserError):
    """A password or a token that cannot be had; as a rule somebody is just writing its file anew."""


def refusal(name: str, status: int) -> PacsError:
    """What an answer's status says, where it is not 2xx."""
    if status in (401, 403):
        return BarredError(
            f"{name} does not let us in (HTTP {status}); check user, password or token that pacs.toml names."
        )
    if status in (404, 410):
        return MissingError(f"{name} does not have that (HTTP {status}); check the url in pacs.toml if it is new.")
    if status in (408, 425, 429, 500, 502, 503, 504, 507):
        return AwayError(f"{name} is in trouble or too busy (HTTP {status}); try again later, or see its own log.")
    if 300 <= status < 400:
        return RefusalError(
            f"{name} sends us to another address (HTTP {status}), which is not followed; put the right url into "
            "pacs.toml."
        )
    return RefusalError(f"{name} refuses to answer (HTTP {status}); its own log says why.")


def authorization(server: Server) -> str:
    """What the header of a request says of us; empty where the server wants nothing."""
    settings = server.settings
    if settings.username:
        secret = _secret(server, settings.password_env, settings.password_file)
        return "Basic " + b64encode(f"{settings.username}:{secret}".encode()).decode()
    token = _secret(server, settings.token_env, settings.token_file)
    return f"Bearer {token}" if token else ""


def _secret(server: Server, variable: str, file: str) -> str:
    if variable:
        found = os.environ.get(variable, "")
        if not found:
            raise SecretError(f"{server.name}: the environment variable {variable} is not set.")
        return found
    if not file:
        return ""
    try:
        found = server.file(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise SecretError(f"{server.name}: the secret in {server.file(file)} cannot be read.") from None
    if not found:
        raise SecretError(f"{server.name}: {server.file(file)} is empty.")
    return found


def trust(server: Server) -> ssl.SSLContext:
    """Whose certificates are believed, and our own. They are always checked."""
    settings = server.settings
    try:
        context = ssl.create_default_context(cafile=str(server.file(settings.ca_file)) if settings.ca_file else None)
        if settings.client_certificate:
            key = str(server.file(settings.client_key)) if settings.client_key else None
            context.load_cert_chain(str(server.file(settings.client_certificate)), key)
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"{server.name}: its certificates cannot be used ({error.strerror or 'not PEM'}).") from None
    return context


_LONGEST_ANSWER = 64 * 2**20
"""Bytes of a page of findings; a hundred studies have some hundred thousand."""
_JSON = "application/dicom+json"


class Connection:
    """A server at the other end; films and findings are streamed, so that none is held twice."""

    def __init__(self, server: Server) -> None:
        self.server = server
        authorization(server)  # a secret that is missing is told before anything is asked for
        self._client = httpx2.Client(
            auth=self._signed,
            verify=trust(server),
            timeout=server.settings.timeout,
            follow_redirects=False,
            trust_env=False,  # neither proxies nor passwords from elsewhere
        )

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _signed(self, request: httpx2.Request) -> httpx2.Request:
        """With what its file says now: tokens are renewed while a watch goes on."""
        shown = authorization(self.server)
        if shown:
            request.headers["Authorization"] = shown
        return request

    @property
    def name(self) -> str:
        """What people call it."""
        return self.server.name

    def search(self, path: Sequence[str], asked: Sequence[tuple[str, str]]) -> object:
        """What a search found: plain data, or None where it found nothing (HTTP 204)."""
        with self._answer("GET", path, {"Accept": _JSON}, asked=asked) as answer:
            if answer.status_code == 204:
                return None
            return self._understood(self._whole(answer))

    @contextmanager
    def retrieve(self, path: Sequence[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
        """An object's media type, and its bytes as they come."""
        wanted = 'multipart/related; type="application/dicom"; transfer-syntax=*'
        with self._answer("GET", path, {"Accept": wanted, "Accept-Encoding": "identity"}) as answer:
            yield answer.headers.get("Content-Type", ""), answer.iter_bytes()

    def store(self, body: Iterator[bytes], length: int, media_type: str) -> tuple[int, object]:
        """The status of the answer and what it says; a refusal of what was sent is an answer too."""
        headers = {"Accept": _JSON, "Content-Type": media_type, "Content-Length": str(length)}
        with self._answer("POST", ["studies"], headers, content=body, judged=(400, 409, 415, 422)) as answer:
            said = self._whole(answer)
            try:
                return answer.status_code, json.loads(said)
            except (ValueError, RecursionError):
                return answer.status_code, None

    @contextmanager
    def _answer(
        self,
        method: str,
        path: Sequence[str],
        headers: Mapping[str, str],
        *,
        asked: Sequence[tuple[str, str]] = (),
        content: Iterator[bytes] | None = None,
        judged: tuple[int, ...] = (),
    ) -> Iterator[httpx2.Response]:
        """An answer of 2xx, or of a status that the caller judges."""
        url = "/".join([self.server.settings.url.rstrip("/"), *path]) + ("?" + urlencode(asked) if asked else "")
        with (
            self._told_of_network(),
            self._client.stream(method, url, headers=dict(headers), content=content) as answer,
        ):
            if not answer.is_success and answer.status_code not in judged:
                raise refusal(self.name, answer.status_code)
            yield answer

    @contextmanager
    def _told_of_network(self) -> Iterator[None]:
        """The library's own messages may hold addresses; what helps a person is said here."""
        try:
            yield
        except httpx2.TimeoutException:
            raise AwayError(
                f"{self.name} is silent for {self.server.settings.timeout:g} seconds; is it well?"
            ) from None
        except httpx2.ConnectError as error:
            if _is_certificate(error):
                raise BarredError(
                    f"{self.name} shows a certificate that nobody here trusts; name the right ca_file in pacs.toml."
                ) from None
            raise AwayError(f"{self.name} does not answer; is it running, and its url in pacs.toml right?") from None
        except httpx2.TransportError:
            raise AwayError(f"{self.name} broke the connection off; try again.") from None
        except (httpx2.InvalidURL, httpx2.DecodingError):
            raise RefusalError(f"{self.name} answers with something that is no DICOMweb.") from None

    def _whole(self, answer: httpx2.Response) -> bytes:
        taken = bytearray()
        for chunk in answer.iter_bytes():
            taken += chunk
            if len(taken) > _LONGEST_ANSWER:
                raise RefusalError(f"{self.name} answers with more than a page can hold; ask for less (page).")
        return bytes(taken)

    def _understood(self, said: bytes) -> object:
        if not said.strip():
            return None
        try:
            return json.loads(said)
        except (ValueError, RecursionError):  # nested more deeply than anything in DICOM
            raise RefusalError(
                f"{self.name} answers with something that is no DICOM JSON; does its url in pacs.toml lead to DICOMweb?"
            ) from None


def _is_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
