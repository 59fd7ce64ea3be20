"""A PACS that breaks the rules as real servers do, one habit at a time."""

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from pydicom import dcmread

from medgrape.hospital.pacs.servers import Server, ServerSettings

BOUNDARY = "a-boundary"


@dataclass
class OddPacs:
    """Films, and habits that change the responses."""

    films: list[Path] = field(default_factory=list)
    habits: set[str] = field(default_factory=set)
    requested: list[str] = field(default_factory=list)
    """The addresses of all requests."""
    authorizations: list[str | None] = field(default_factory=list)
    """The Authorization header of each request."""
    stow: tuple[int, object] = (200, None)
    retrieve: tuple[int, str, bytes] | None = None
    """Status, media type and body of every film; None: the film."""
    instead: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)
    """Responses to addresses that contain these words."""
    port: int = 0

    @property
    def server(self) -> Server:
        return Server("clinic", ServerSettings(url=f"http://127.0.0.1:{self.port}/web", page=2, timeout=5.0), Path())

    def answer(self, method: str, address: str) -> tuple[int, str, bytes]:
        self.requested.append(address)
        responses = [response for words, response in self.instead.items() if words in address]
        return responses[0] if responses else self.usual_answer(method, address)

    def usual_answer(self, method: str, address: str) -> tuple[int, str, bytes]:
        parts = urlsplit(address)
        path = parts.path.removeprefix("/web/").split("/")
        if "redirects" in self.habits:
            return 302, "http://127.0.0.1:9/elsewhere", b""
        if method == "POST":
            return self.stow[0], "application/dicom+json", json.dumps(self.stow[1]).encode()
        if len(path) == 6:
            return self.retrieved(path[-1])
        if path == ["series"] and "no relations" in self.habits:
            return 400, "text/plain", b"give me a study"
        return self.found(path, {key: one[0] for key, one in parse_qs(parts.query).items()})

    def retrieved(self, uid: str) -> tuple[int, str, bytes]:
        if self.retrieve is not None:
            return self.retrieve
        body = next(path.read_bytes() for path in self.films if dcmread(path).SOPInstanceUID == uid)
        if "bare films" in self.habits:
            return 200, "application/dicom", body
        framed = b"--%s\r\nContent-Type: application/dicom\r\n\r\n%s\r\n--%s--" % (
            BOUNDARY.encode(), body, BOUNDARY.encode(),
        )  # fmt: skip
        return 200, f'multipart/related; type="application/dicom"; boundary={BOUNDARY}', framed

    def found(self, path: list[str], query: dict[str, str]) -> tuple[int, str, bytes]:
        everything = [one for one in map(self.listed, self.films) if self.fits(one, path, query)]
        tag = {"studies": "0020000D", "series": "0020000E", "instances": "00080018"}[path[-1]]
        once = list({one[tag]["Value"][0]: one for one in everything}.values())
        first = 0 if "ignores offset" in self.habits else int(query.get("offset", 0))
        first = first % max(len(once), 1) if "wraps offset" in self.habits else first
        most = len(once) if "ignores limit" in self.habits else int(query["limit"])
        page = once[first : first + (1 if "small pages" in self.habits else most)]
        return (204, "", b"") if not page else (200, "application/dicom+json", json.dumps(page).encode())

    def fits(self, one: dict, path: list[str], query: dict[str, str]) -> bool:
        named = dict(zip(path[::2], path[1::2], strict=False))
        tags = {"studies": "0020000D", "series": "0020000E"}
        below = all(one[tags[level]]["Value"] == [uid] for level, uid in named.items())
        wanted = query.get("Modality")
        return below and ("ignores filters" in self.habits or wanted in (None, one["00080060"]["Value"][0]))

    def listed(self, path: Path) -> dict:
        header = dcmread(path, stop_before_pixels=True)
        values = {
            "0020000D": header.StudyInstanceUID, "0020000E": header.SeriesInstanceUID,
            "00080018": header.SOPInstanceUID, "00080060": header.Modality, "00080020": header.StudyDate,
        }  # fmt: skip
        return {tag: {"vr": "UI", "Value": [str(value)]} for tag, value in values.items()}


@contextmanager
def odd_pacs(*films: Path, habits: tuple[str, ...] = ()):
    """Run the PACS on a free port."""
    pacs = OddPacs(list(films), set(habits))

    class Handler(BaseHTTPRequestHandler):
        def reply(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            pacs.authorizations.append(self.headers.get("Authorization"))
            status, kind, body = pacs.answer(self.command, self.path)
            self.send_response(status)
            if status != 204:
                self.send_header("Location" if status == 302 else "Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = reply  # noqa: N815 (the library's names)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        pacs.port = httpd.server_port
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield pacs
        finally:
            httpd.shutdown()
            thread.join()
