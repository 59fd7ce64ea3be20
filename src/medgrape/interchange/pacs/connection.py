"""Talking to one server. Only addresses below its configured one are asked, and no redirect is followed."""

import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import urlencode

import httpx2

from medgrape.interchange.pacs.credentials import authorization, trust
from medgrape.interchange.pacs.failures import AwayError, BarredError, RefusalError, refusal
from medgrape.interchange.pacs.servers import Server

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
