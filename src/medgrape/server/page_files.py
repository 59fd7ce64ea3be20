"""The page that people see: files that were built from ui/, each at an address of its own and open to anybody."""

import gzip
import mimetypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI, Request, Response

from medgrape import __version__
from medgrape.explain.words import NOTICE
from medgrape.server.services import open_to_all
from medgrape.server.settings import API

FOLDER = Path(__file__).with_name("page")
FOR_GOOD = "public, max-age=31536000, immutable"
"""Names of assets change with what is in them."""
UNBUILT = (
    "<!doctype html><html lang='en'><meta charset='utf-8'><title>medgrape</title>"
    f"<h1>medgrape {__version__}</h1><p>The reading room's server is running. <strong>{NOTICE}</strong></p>"
    "<p>Its page was not built: whoever runs the server builds it with <code>make ui</code>, then starts it again.</p>"
    f"<p>Programs find it under <code>{API}</code>; <a href='{API}/openapi.json'>openapi.json</a> describes every "
    "address with examples.</p></html>"
)


@dataclass(frozen=True)
class PageFile:
    """A file of the page, held in memory: all of them together are about a megabyte."""

    content: bytes
    packed: bytes
    media: str
    keeps: str

    def answer(self, request: Request) -> Response:
        """The file, packed for whoever can unpack it."""
        headers = {"Cache-Control": self.keeps, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, media_type=self.media, headers=headers | {"Content-Encoding": "gzip"})
        return Response(self.content, media_type=self.media, headers=headers)


def page_files(folder: Path = FOLDER) -> dict[str, PageFile]:
    """Every file of the page by its address; where none was built, a page that says so."""
    found = {
        f"/{path.relative_to(folder).as_posix()}": _file(path.read_bytes(), path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    front = found.pop("/index.html", None) or _file(UNBUILT.encode(), Path("index.html"))
    return {"/": front, **found}


def install(app: FastAPI) -> None:
    """Give every file its route."""
    for address, file in page_files().items():
        app.add_api_route(address, _route(file), include_in_schema=False, methods=["GET"], name=address)


def _route(file: PageFile) -> Callable[[Request], Response]:
    @open_to_all
    def page_file(request: Request) -> Response:
        return file.answer(request)

    return page_file


def _file(content: bytes, path: Path) -> PageFile:
    kind = mimetypes.guess_type(path.name)[0] or "text/plain"
    media = "text/javascript" if path.suffix == ".js" else kind
    return PageFile(content, gzip.compress(content), media, FOR_GOOD if path.parent.name == "assets" else "no-cache")
