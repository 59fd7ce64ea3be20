"""Security headers, limits of requests, and what error responses reveal."""

import os
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from reading_room import corners, drawn, reading_room

from medgrape.server.api import films, health
from medgrape.server.middleware import HEADERS, RateLimit

ID = "0" * 16
SECRET = "Mrs-Erika-Mustermann"  # noqa: S105
ANSWERS = {
    200: ("rita", "GET", "/films"),
    401: (None, "GET", "/films"),
    403: ("rita", "GET", "/users"),
    404: ("rita", "GET", "/nowhere"),
    405: ("rita", "PUT", "/films"),
    422: ("rita", "GET", "/films?page=x"),
}


@pytest.mark.parametrize("status", ANSWERS)
def test_every_response_has_the_security_headers(shared_room, status):
    answer = shared_room.ask(*ANSWERS[status])
    assert answer.status_code == status
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers


def test_an_internal_error_has_the_security_headers_and_no_details(shared_room, monkeypatch):
    monkeypatch.setattr(films.films, "list_films", _faulty)
    answer = shared_room.get("rita", "/films")
    assert (answer.status_code, answer.json()["code"]) == (500, "fault")
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert SECRET not in answer.text


def test_scripts_and_styles_are_allowed_from_the_server_only():
    policy = dict(part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
    assert not re.search(r"unsafe|\*|data:|https?:", HEADERS["Content-Security-Policy"])
    assert (HEADERS["X-Content-Type-Options"], HEADERS["X-Frame-Options"]) == ("nosniff", "DENY")


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "POST"])
def test_no_response_allows_another_origin(shared_room, method):
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for who in (None, "rita"):
        for path in ("/films", "/health", "/session"):
            answer = shared_room.ask(who, method, path, headers=headers)
            assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_page_needs_nothing_that_its_content_policy_forbids(shared_room):
    page = shared_room.client.get("/")
    assert page.status_code == 200
    assert "not a medical device" in page.text
    assert not re.search(r"<script(?![^>]* src=)|<style|style=|onload=", page.text)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory, strict_run):
    """A room that takes only small requests and small films."""
    limits = {"body_bytes": 2000, "films": {"max_bytes": 20_000}}
    with reading_room(tmp_path_factory.mktemp("narrow") / "room", strict_run, **limits) as opened:
        yield opened


def test_a_body_with_a_too_large_content_length_is_not_read(narrow):
    answer = narrow.post("rita", "/studies", content=_never_read(), headers={"Content-Length": "2001"})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert "2,000 bytes" in answer.json()["detail"]


def test_a_body_without_content_length_is_counted(narrow):
    answer = narrow.post("rita", "/studies", content=(b"x" * 100 for _ in range(21)))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert narrow.post("rita", "/studies", content=(b"x" * 100 for _ in range(20))).status_code == 422


def test_a_request_without_login_is_refused_before_its_body_is_read(narrow):
    assert narrow.post(None, "/films", content=_never_read()).status_code == 401


def test_a_too_large_film_is_refused_and_leaves_no_file(narrow):
    narrow.study("rita", narrow.upload("rita", drawn()).json()["film"]["id"])  # nothing is left to be done with it
    before = _files(narrow)
    for size, status, code in ((20_001, 422, "film_refused"), (120_000, 413, "too_large")):
        answer = narrow.upload("rita", drawn().ljust(size, b"\0"))
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert narrow.post("rita", "/films", content=_endless(), headers=_form()).status_code == 413
    assert _files(narrow) == before


def test_a_caller_above_the_rate_limit_waits_and_others_do_not(tmp_path, strict_run):
    rate = {"per_second": 0.1, "burst": 5, "logins_per_minute": 100}
    with reading_room(tmp_path / "room", strict_run, rate=rate) as room:
        assert [room.get("rita", "/session/me").status_code for _ in range(6)] == [200] * 5 + [429]
        refused = room.get("rita", "/films")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
        assert 1 <= int(refused.headers["retry-after"]) <= 10
        assert room.get("rolf", "/session/me").status_code == 200
        assert [room.get(None, "/films").status_code for _ in range(6)] == [401] * 5 + [429]
        assert room.get(None, "/health").status_code == 429
        assert room.get("cora", "/session/me").status_code == 200


def test_a_bucket_is_emptied_at_once_and_fills_steadily():
    limit = RateLimit(per_second=2, burst=3)
    assert [limit.wait("ada", now=0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert limit.wait("ada", now=0.25) == 0.25
    assert limit.wait("ada", now=0.5) == 0
    assert limit.wait("ada", now=0.5) == 0.5
    assert [limit.wait("ada", now=1000) for _ in range(4)] == [0, 0, 0, 0.5]


def test_every_caller_has_a_separate_bucket():
    limit = RateLimit(per_second=1, burst=1)
    assert [limit.wait(who, now=0) for who in ("ada", "bo", "ada", "bo")] == [0, 0, 1, 1]


def test_the_number_of_buckets_is_limited():
    limit = RateLimit(per_second=1, burst=1)
    for number in range(10_050):
        limit.wait(f"caller {number}", now=0)
    assert len(limit._buckets) == 10_000
    assert limit.wait("caller 10049", now=0) == 1
    assert limit.wait("caller 0", now=0) == 0


def test_metrics_do_not_name_invented_methods(shared_room):
    for number in range(3):
        assert shared_room.ask("rita", f"INVENTED{number}", "/films").status_code == 405
    metrics = shared_room.get("alma", "/metrics").text
    assert "INVENTED" not in metrics
    assert 'method="other"' in metrics


MISTAKES = [
    ("rita", "POST", "/studies", {"json": {"film": SECRET}}),
    ("rita", "POST", "/studies", {"json": {"film": ID, SECRET: 1}}),
    ("rita", "POST", "/studies", {"json": {"film": ID, "model": [SECRET]}}),
    ("rita", "POST", "/studies", {"content": f'{{"{SECRET}'}),
    ("rita", "POST", "/studies", {"content": b'{"film": "0000000000000000", "\\ud800": 1}'}),
    ("rita", "POST", "/studies", {"content": SECRET, "headers": {"Content-Type": "text/plain"}}),
    ("rita", "POST", "/studies", {"json": [SECRET] * 100}),
    ("rita", "POST", "/films", {"files": {"file": (SECRET, b"no film")}}),
    ("rita", "POST", "/films", {"files": {SECRET: (SECRET, b"no film")}}),
    ("rita", "POST", "/films", {"content": SECRET, "headers": {"Content-Type": "multipart/form-data"}}),
    ("rita", "POST", "/films", {"content": SECRET, "headers": {"Content-Type": "multipart/form-data; boundary=x"}}),
    ("rita", "GET", f"/films/{SECRET}", {}),
    ("rita", "GET", f"/films?page={SECRET}", {}),
    ("rita", "GET", f"/studies/{ID}?at={SECRET}", {}),
    ("rita", "GET", f"/{SECRET}", {}),
    ("rita", "GET", f"/films/{ID}", {}),
    ("rita", "PUT", "/films", {}),
    ("rita", "GET", "/users", {}),
    (None, "GET", f"/{SECRET}", {}),
    (None, "POST", "/session", {"json": {"name": SECRET, "password": SECRET}}),
    (None, "GET", "/films", {"headers": {"Host": SECRET}}),
    (None, "GET", "/oidc/login", {}),
    ("alma", "POST", "/users", {"json": {"name": "eva", "role": SECRET}}),
    ("alma", "POST", "/users", {"json": {"name": "eva", "role": "reader", "password": "Erika"}}),
    ("alma", "PATCH", "/users/nobody", {"json": {"role": "reader"}}),
    ("rita", "POST", f"/studies/{ID}/boxes", {"json": {"box": corners((1, 2, 3, 4)) | {"x1": SECRET}}}),
    ("cora", "POST", "/concepts", {"json": {"name": "x", "description": "y", "examples": [{"film": SECRET}]}}),
]
"""Requests with something that nobody else should read, each a different way to go wrong."""


@pytest.mark.parametrize("asked", MISTAKES, ids=lambda asked: f"{asked[1]} {asked[2]}")
def test_an_invalid_request_is_answered_in_a_sentence_without_its_content(shared_room, asked):
    who, method, path, more = asked
    answer = shared_room.ask(who, method, path, **more)
    _check_problem(answer, shared_room)
    assert answer.status_code < 500


@pytest.mark.parametrize("odd", ["a\0b", "a\x1b[31mb", "a\nb"], ids=repr)
def test_a_name_with_control_characters_is_refused(room, odd):
    discard = f"/models/{room.model_in_use()}/concepts/active_tb/discard"
    for path, body in (("/tokens", {"role": "reader"}), (discard, {"prototypes": [0]}), ("/users", {"role": "reader"})):
        assert room.post("alma", path, json=body | {"name": odd}).status_code == 422
    for path in ("/films?search=", "/log?actor=", "/log?since=", "/users/"):
        method = "PATCH" if path == "/users/" else "GET"
        assert room.ask("alma", method, path + quote(odd), json={}).status_code in (200, 404)


def test_an_error_names_a_file_without_its_folder(shared_room, monkeypatch):
    film = shared_room.film("rita")
    monkeypatch.setattr(films.films, "film_row", _missing)
    answer = shared_room.get("rita", f"/films/{film}")
    assert (answer.status_code, answer.json()["code"]) == (503, "file_unavailable")
    assert "retry-after" in answer.headers
    _check_problem(answer, shared_room)


def test_a_busy_server_says_when_to_try_again(shared_room, monkeypatch):
    monkeypatch.setattr(health.models, "loaded", _slow)
    answer = shared_room.get(None, "/ready")
    assert (answer.status_code, answer.json()["code"]) == (503, "busy")
    _check_problem(answer, shared_room)


def test_a_405_response_lists_the_allowed_methods(shared_room):
    answer = shared_room.ask("rita", "PUT", "/films")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) <= {"GET", "POST"}


def _check_problem(answer, room):
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["status"] == answer.status_code >= 400
    assert re.fullmatch(r"[a-z_]+", problem["code"])
    assert re.fullmatch(r"[A-Z].*[^.]\.", problem["detail"], re.DOTALL)
    places = [str(room.room.folder.root), str(Path(films.__file__).parents[2]), os.sep + "tmp", "Traceback", 'File "']
    assert [given for given in (SECRET, *places, *room.tokens.values()) if given in answer.text] == []


def _faulty(*_):
    raise RuntimeError(SECRET)


def _missing(*_):
    raise PermissionError(13, "Permission denied", f"/tmp/{SECRET}")  # noqa: S108


def _slow(*_):
    raise TimeoutError


def _never_read():
    yield b"x"
    raise AssertionError("the body was read")


def _endless():
    yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n'
    for _ in range(200):
        yield b"\0" * 1000


def _form():
    return {"Content-Type": "multipart/form-data; boundary=x"}


def _files(room):
    return {path for path in room.room.folder.root.rglob("*") if "medgrape.db" not in path.name}
