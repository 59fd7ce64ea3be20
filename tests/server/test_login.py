"""Login by password: cookies, CSRF tokens, and locks after wrong passwords."""

import re
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from reading_room import PASSWORD, reading_room
from sqlalchemy import inspect, select, text
from starlette.testclient import TestClient

from medgrape.server.accounts import FREE_ATTEMPTS, LOCAL, MAX_LOCK, Role, add_user, user_named
from medgrape.server.process import ServeError, prepare
from medgrape.server.room import RoomFolder, RoomStore
from medgrape.server.settings import ServerSettings
from medgrape.server.storage.database import migrate
from medgrape.server.storage.tables import EventRow, SessionRow, UserRow

ELSEWHERE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://["},
    {"Origin": "http://127.0.0.1.evil.example"},
    {"Origin": "http://127.0.0.1:9999"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


class Browser:
    """Somebody's browser, which keeps cookies and sends them along."""

    def __init__(self, room, base="http://127.0.0.1"):
        self._client = TestClient(room.client.app, base_url=base, raise_server_exceptions=False)

    def ask(self, method, path, **more):
        return self._client.request(method, f"/api/v1{path}", **more)

    def log_in(self, name="rita", password=PASSWORD, **more):
        return self.ask("POST", "/session", json={"name": name, "password": password}, **more)

    def is_known(self):
        return self.ask("GET", "/session/me").status_code == 200


@pytest.fixture
def browser(shared_room):
    return Browser(shared_room)


def test_the_cookie_is_hidden_from_scripts_and_other_sites(browser):
    answer = browser.log_in()
    assert answer.status_code == 200
    assert (answer.json()["name"], answer.json()["role"], answer.json()["login"]) == ("rita", "reader", True)
    name, kept, said = _cookie(answer)
    assert (name, len(kept)) == ("medgrape", 43)
    assert said == {"httponly", "max-age=43200", "path=/", "samesite=strict"}
    assert browser.is_known()


def test_over_https_the_cookie_is_secure_and_bound_to_the_host(tmp_path, strict_run):
    with reading_room(tmp_path / "room", strict_run, public_url="https://reading.example.org") as room:
        browser = Browser(room, "https://reading.example.org")
        answer = browser.log_in(headers={"Origin": "https://reading.example.org"})
        name, _, said = _cookie(answer)
        assert name == "__Host-medgrape"
        assert {"secure", "httponly", "samesite=strict", "path=/"} <= said
        assert not any(part.startswith("domain") for part in said)
        assert answer.headers["strict-transport-security"].startswith("max-age=")
        assert browser.is_known()
        assert browser.log_in(headers={"Host": "evil.example"}).status_code == 421


def test_with_a_cookie_every_change_needs_the_csrf_token(browser, shared_room):
    csrf = browser.log_in().json()["csrf"]
    asked = {"name": "x", "role": "reader"}
    for wrong in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": csrf[:-1] + "x"}, {"Authorization": "Bearer "}):
        refused = browser.ask("POST", "/tokens", json=asked, headers=wrong)
        assert (refused.status_code, refused.json()["code"]) == (403, "csrf")
    assert browser.ask("GET", "/session/me").json()["csrf"] == csrf
    assert browser.ask("POST", "/tokens", json=asked, headers={"X-CSRF-Token": csrf}).status_code == 201
    others = Browser(shared_room).log_in().json()["csrf"]
    assert browser.ask("POST", "/tokens", json=asked, headers={"X-CSRF-Token": others}).status_code == 403


def test_a_bearer_token_needs_no_csrf_token(shared_room):
    assert shared_room.get("rita", "/session/me").json()["csrf"] is None
    assert shared_room.post("rita", "/tokens", json={"name": "x", "role": "reader"}).status_code == 201


def test_cookies_of_other_servers_on_this_machine_are_ignored(shared_room):
    browser = Browser(shared_room)
    _, key, _ = _cookie(browser.log_in())
    cookie = f'theirs={{"a": "b, c"}}; @odd[]; medgrape={key}; last="'
    assert shared_room.get(None, "/session/me", headers={"Cookie": cookie}).status_code == 200


def test_a_wrong_password_and_an_unknown_name_get_the_same_answer(browser):
    wrong, unknown = browser.log_in("rolf", "wrong horse battery"), browser.log_in("nobody")
    empty = browser.log_in("\0")
    assert wrong.status_code == unknown.status_code == empty.status_code == 401
    assert wrong.content == unknown.content == empty.content
    assert "set-cookie" not in wrong.headers
    assert not browser.is_known()


def test_after_several_wrong_passwords_the_right_one_must_wait(room):
    browser = Browser(room)
    wrong = [browser.log_in("rolf", f"wrong horse {number}") for number in range(FREE_ATTEMPTS)]
    locked = browser.log_in("rolf")
    assert locked.status_code == 401
    assert {answer.content for answer in wrong} == {locked.content}
    assert browser.log_in("rita").status_code == 200
    _unlock(room, "rolf")
    assert browser.log_in("rolf").status_code == 200
    with room.room.database.reading() as session:
        assert (user_named(session, "rolf").failures, user_named(session, "rolf").locked_until) == (0, None)
        failed = select(EventRow.actor).where(EventRow.kind == "login.failed")
        assert session.scalars(failed).all() == ["rolf"] * (FREE_ATTEMPTS + 1)


def test_every_further_wrong_password_locks_longer_up_to_a_maximum(shared_room):
    browser, waits = Browser(shared_room), []
    for number in range(FREE_ATTEMPTS + 2):
        browser.log_in("cora", f"wrong horse {number}")
        waits.append(_unlock(shared_room, "cora"))
    assert waits[: FREE_ATTEMPTS - 1] == [None] * (FREE_ATTEMPTS - 1)
    assert waits[FREE_ATTEMPTS - 1 :] == pytest.approx([2, 4, 8], abs=1)
    with shared_room.room.database.writing() as session:
        user_named(session, "cora").failures = 10_000
    browser.log_in("cora", "wrong horse")
    assert _unlock(shared_room, "cora") == pytest.approx(MAX_LOCK.total_seconds(), abs=2)
    assert browser.log_in("cora").status_code == 200


def test_after_logout_a_copy_of_the_cookie_is_refused(browser, shared_room):
    answer = browser.log_in()
    _, key, _ = _cookie(answer)
    assert browser.ask("POST", "/session/end").status_code == 403
    ended = browser.ask("POST", "/session/end", headers={"X-CSRF-Token": answer.json()["csrf"]})
    assert ended.status_code == 204
    assert not browser.is_known()
    assert shared_room.get(None, "/session/me", headers={"Cookie": f"medgrape={key}"}).status_code == 401


def test_a_session_expires(browser, shared_room):
    browser.log_in()
    with shared_room.room.database.writing() as session:
        for row in session.scalars(select(SessionRow)):
            row.expires_at = datetime.now(UTC) - timedelta(seconds=1)
    assert not browser.is_known()


@pytest.mark.parametrize("change", [{"role": "curator"}, {"password": "another horse battery"}, {"disabled": True}])
def test_a_changed_user_is_logged_out_everywhere(tmp_path, strict_run, change):
    with reading_room(tmp_path / "room", strict_run) as room:
        browsers = [Browser(room), Browser(room)]
        assert [browser.log_in("rita").status_code for browser in browsers] == [200, 200]
        assert room.ask("alma", "PATCH", "/users/rita", json=change).status_code == 200
        assert not any(browser.is_known() for browser in browsers)
        again = browsers[0].log_in("rita", change.get("password", PASSWORD)).status_code
        assert again == (401 if change.get("disabled") else 200)


def test_a_disabled_user_gets_the_same_answer_as_an_unknown_one(room):
    room.ask("alma", "PATCH", "/users/rolf", json={"disabled": True})
    refused, unknown = Browser(room).log_in("rolf"), Browser(room).log_in("nobody")
    assert (refused.status_code, refused.content) == (401, unknown.content)
    assert room.get("rolf", "/session/me").status_code == 401
    room.ask("alma", "PATCH", "/users/rolf", json={"disabled": False})
    assert Browser(room).log_in("rolf").status_code == 200


@pytest.mark.parametrize("change", [{"role": "reader"}, {"disabled": True}])
def test_the_last_admin_cannot_be_removed(room, change):
    with room.room.database.writing() as session:
        add_user(session, LOCAL, Role.ADMIN, None)  # cannot log in, so does not count
    refused = room.ask("alma", "PATCH", "/users/alma", json=change)
    assert (refused.status_code, refused.json()["code"]) == (409, "last_admin")
    assert room.get("alma", "/users").status_code == 200
    assert room.ask("alma", "PATCH", "/users/cora", json={"role": "admin"}).status_code == 200
    assert room.ask("alma", "PATCH", "/users/alma", json=change).status_code == 200


def test_too_many_logins_from_one_address_must_wait(tmp_path, strict_run):
    rate = {"per_second": 1000.0, "burst": 1000, "logins_per_minute": 3}
    with reading_room(tmp_path / "room", strict_run, rate=rate) as room:
        browser = Browser(room)
        assert [browser.log_in(f"nobody{number}").status_code for number in range(3)] == [401] * 3
        refused = browser.log_in()
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
        assert 1 <= int(refused.headers["retry-after"]) <= 20
        assert room.get("rita", "/session/me").status_code == 200


@pytest.mark.parametrize("password", ["short", "aaaaaaaaaaaaaaaa", ""])
def test_a_password_that_is_easy_to_guess_is_refused_and_not_repeated(shared_room, password):
    asked = {"name": "eva", "role": "reader", "password": password}
    for method, path, body in (("POST", "/users", asked), ("PATCH", "/users/rita", {"password": password})):
        refused = shared_room.ask("alma", method, path, json=body)
        assert refused.status_code == 422
        assert not password or password not in refused.text


def test_the_content_of_the_database_is_no_login(room):
    _, key, _ = _cookie(Browser(room).log_in())
    made = room.post("alma", "/tokens", json={"name": "orthanc", "role": "admin"}).json()["token"]
    for twin in ("ines", "olga"):
        room.post("alma", "/users", json={"name": twin, "role": "reader", "password": PASSWORD})
    with room.room.database.reading() as session:
        hashes = session.scalars(select(UserRow.password).where(UserRow.name.in_(("ines", "olga")))).all()
        tables = inspect(session.connection()).get_table_names()
        kept = "\n".join(str(row) for table in tables for row in session.execute(text(f'SELECT * FROM "{table}"')))
    assert all(one.startswith("$argon2id$") for one in hashes)
    assert len(set(hashes)) == 2
    secrets = [PASSWORD, key, *(token.split("_", 2)[2] for token in (made, *room.tokens.values()))]
    assert [secret for secret in secrets if secret in kept] == []


@pytest.mark.parametrize("headers", ELSEWHERE, ids=str)
def test_a_page_of_another_site_changes_nothing(shared_room, headers):
    browser = Browser(shared_room)
    csrf = {"X-CSRF-Token": browser.log_in().json()["csrf"]}
    refused = browser.ask("POST", "/tokens", json={"name": "x", "role": "reader"}, headers=headers | csrf)
    assert (refused.status_code, refused.json()["code"]) == (403, "foreign_page")
    assert Browser(shared_room).log_in(headers=headers).json()["code"] == "foreign_page"
    own = {"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin"} | csrf
    assert browser.ask("POST", "/tokens", json={"name": "x", "role": "reader"}, headers=own).status_code == 201


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "", "[", "[::1"])
def test_on_loopback_a_foreign_host_name_is_refused(shared_room, host):
    for path in ("/health", "/session/me"):
        refused = shared_room.get("rita", path, headers={"Host": host})
        assert (refused.status_code, refused.json()["code"]) == (421, "wrong_host")


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"])
def test_on_loopback_the_local_host_names_are_accepted(shared_room, host):
    assert shared_room.get("rita", "/session/me", headers={"Host": host}).status_code == 200


@pytest.fixture(scope="module")
def alone(tmp_path_factory, strict_run):
    """A room for one person at this machine."""
    with reading_room(tmp_path_factory.mktemp("alone") / "room", strict_run, login=False) as room:
        yield room


def test_a_server_without_users_on_loopback_needs_no_login(alone):
    me = alone.get(None, "/session/me").json()
    assert (me["name"], me["role"], me["login"], me["csrf"]) == (LOCAL, "admin", False, None)
    assert alone.study(None, alone.film(None))["reader"] == LOCAL
    assert Browser(alone).log_in().json()["code"] == "no_login"


@pytest.mark.parametrize("headers", ELSEWHERE, ids=str)
def test_without_login_pages_of_other_sites_change_nothing(alone, headers):
    for more in ({}, {"Authorization": "Bearer x"}):
        refused = alone.post(None, "/log/export", headers=headers | more)
        assert (refused.status_code, refused.json()["code"]) == (403, "foreign_page")
    assert alone.get(None, "/films", headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize(
    "reach",
    [
        {"host": "0.0.0.0"},  # noqa: S104
        {"host": "::"},
        {"public_url": "https://reading.example.org"},
        {"proxies": ("10.0.0.1",)},
    ],
    ids=str,
)
def test_a_shared_server_without_login_does_not_start(tmp_path, strict_run, reach):
    folder, settings = RoomFolder(tmp_path / "room"), ServerSettings(port=0, **reach)
    with pytest.raises(ServeError, match="add a user first"):
        prepare([strict_run], folder, settings)
    store = RoomStore.opened(folder, settings)
    with store.database.writing() as session:
        add_user(session, "alma", Role.ADMIN, PASSWORD)
    store.database.dispose()
    assert _login_of(prepare([strict_run], folder, settings))


def test_a_login_provider_counts_as_login(tmp_path, strict_run):
    settings = ServerSettings(host="0.0.0.0", port=0, oidc={"issuer": "https://login.example", "client": "x"})  # noqa: S104
    assert _login_of(prepare([strict_run], RoomFolder(tmp_path / "room"), settings))


def test_on_loopback_login_is_required_from_the_first_user_on(tmp_path, strict_run):
    folder, settings = RoomFolder(tmp_path / "room"), ServerSettings(port=0)
    store = RoomStore.opened(folder, settings)
    migrate(store.database)
    assert not _login_of(prepare([strict_run], folder, settings))
    with store.database.writing() as session:
        add_user(session, LOCAL, Role.ADMIN, None)
    assert not _login_of(prepare([strict_run], folder, settings))
    with store.database.writing() as session:
        add_user(session, "rita", Role.READER, PASSWORD)
    store.database.dispose()
    assert _login_of(prepare([strict_run], folder, settings))


def _cookie(answer):
    """Name, value and attributes."""
    (said,) = answer.headers.get_list("set-cookie")
    pair, *attributes = said.split("; ")
    name, value = re.fullmatch(r"([^=]+)=(.*)", pair).groups()
    return name, value, {one.lower() for one in attributes}


def _unlock(room, name):
    """End a lock; how many seconds it still had, or None where there was none."""
    with room.room.database.writing() as session:
        user = user_named(session, name)
        until, user.locked_until = user.locked_until, None
    return None if until is None else (until - datetime.now(UTC)).total_seconds()


def _login_of(ready):
    with closing(ready.listening):
        return ready.login
