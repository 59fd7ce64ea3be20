"""The files of the page: addresses, compression and caching."""

import gzip
import json
import runpy
from pathlib import Path

from medgrape.server.app import PAGE_FOLDER, page_files

ROOT = Path(__file__).resolve().parents[2]
MOST = 600 * 1024
"""Bytes of everything that a browser may have to fetch, packed."""


def test_the_page_was_built():
    assert (PAGE_FOLDER / "index.html").is_file(), "build it: make ui"


def test_everything_that_a_browser_fetches_fits_into_600_kilobytes():
    packed = [file.gzipped for address, file in page_files().items() if not address.endswith(".md")]
    assert 10_000 < sum(map(len, packed)) < MOST


def test_the_page_is_sent_compressed_to_browsers_that_accept_it(shared_room):
    packed = shared_room.client.get("/", headers={"Accept-Encoding": "gzip"})
    plain = shared_room.client.get("/", headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.text == plain.text == (PAGE_FOLDER / "index.html").read_text("utf-8")
    assert plain.headers["cache-control"] == "no-cache"
    assert plain.headers["content-type"].startswith("text/html")


def test_assets_are_cached_for_good_because_their_names_change_with_them(shared_room):
    scripts = [address for address in page_files() if address.endswith(".js")]
    assert scripts
    for address in scripts:
        answer = shared_room.client.get(address)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"].startswith("text/javascript")
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_page_includes_the_licences_of_its_parts(shared_room):
    text = shared_room.client.get("/assets/licences.md").text
    for name in ("react", "konva", "@tanstack/react-query", "openapi-fetch", "wouter"):
        assert name in text


def test_no_address_leads_outside_the_page_folder(shared_room):
    for address in ("/assets/", "/assets/../index.html", "/assets/%2e%2e/index.html", "/index.html", "/assets/none.js"):
        answer = shared_room.client.get(address)
        assert answer.status_code in (401, 404), address


def test_a_page_that_was_not_built_says_so(tmp_path):
    (only,) = page_files(tmp_path).values()
    assert b"make ui" in only.content
    assert gzip.decompress(only.gzipped) == only.content


def test_the_types_of_the_page_are_those_of_this_server():
    describe = runpy.run_path(str(ROOT / "tools" / "openapi.py"))["describe"]
    kept = (ROOT / "ui" / "openapi.json").read_text("utf-8")
    assert json.loads(kept) == json.loads(describe()), "update it: make ui-types"
