"""Login through an OpenID Connect provider, with valid and forged tokens."""

import json
import time
from types import SimpleNamespace
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from reading_room import reading_room
from starlette.testclient import TestClient

from medgrape.server.accounts import Role
from medgrape.server.errors import Problem
from medgrape.server.oidc import Oidc, OidcError
from medgrape.server.settings import OidcSettings

pytestmark = [  # the provider's own, raised in its threads
    pytest.mark.filterwarnings("ignore::authlib.deprecate.AuthlibDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:get_jwt_config:DeprecationWarning"),
]
CLIENT, SECRET, ISSUER = "reading-room", "not a real one", "https://login.example"
PEOPLE = {
    "1": {"preferred_username": "Ada Lovelace", "medgrape_role": "reader"},
    "2": {"preferred_username": "Rita", "medgrape_role": "admin"},
    "3": {"preferred_username": "bo"},
    "4": {"preferred_username": "cy", "medgrape_role": ["admin"]},
    "5": {"preferred_username": "di", "medgrape_role": "root"},
    "6": {"preferred_username": "local", "medgrape_role": "curator"},
    "7": {"preferred_username": "../..", "medgrape_role": "reader"},
}


@pytest.fixture(scope="module")
def provider():
    """The address of a login provider that knows a few people."""
    from oidc_provider_mock import User, run_server_in_thread

    known = [User(sub=subject, claims=claims) for subject, claims in PEOPLE.items()]
    with run_server_in_thread(user_claims=known) as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture(scope="module")
def room(tmp_path_factory, strict_run, provider):
    """A room whose people come through the provider."""
    oidc = {"issuer": provider, "client": CLIENT, "secret": SECRET}
    with reading_room(tmp_path_factory.mktemp("oidc") / "room", strict_run, oidc=oidc) as opened:
        yield opened


class Visitor:
    """Somebody with a browser on their way through the provider's form."""

    def __init__(self, room):
        self.client = TestClient(room.client.app, base_url="http://127.0.0.1", follow_redirects=False)

    def leave(self):
        """The address of the provider's form."""
        answer = self.client.get("/api/v1/oidc/login")
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def arrive(self, address):
        return self.client.get(address)

    def come_in(self, subject):
        return self.arrive(signed_in(self.leave(), subject))

    def me(self):
        answer = self.client.get("/api/v1/session/me").json()
        return answer["name"], answer["role"]


def signed_in(form, subject):
    """Fill in the provider's form; where it sends one back to."""
    page = httpx2.get(form)
    assert "Authorize" in page.text
    answer = httpx2.post(form, data={"sub": subject})
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


def changed(address, **parts):
    """An address with some parts of its query replaced."""
    split = urlsplit(address)
    asked = {name: values[0] for name, values in parse_qs(split.query).items()} | parts
    return urlunsplit(split._replace(query=urlencode(asked)))


def test_a_new_user_has_the_role_that_the_provider_gives(room):
    visitor = Visitor(room)
    answer = visitor.come_in("1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert visitor.me() == ("ada-lovelace", "reader")
    cookie = next(one for one in answer.headers.get_list("set-cookie") if one.startswith("medgrape="))
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    (row,) = [one for one in room.get("alma", "/users").json() if one["name"] == "ada-lovelace"]
    assert (row["role"], row["has_password"]) == ("reader", False)


def test_a_known_user_gets_the_present_role_of_the_provider(room, provider):
    first, second = Visitor(room), Visitor(room)
    first.come_in("1")
    before = room.get("alma", "/users").json()
    httpx2.put(f"{provider}/users/1", json=PEOPLE["1"] | {"medgrape_role": "curator", "preferred_username": "else"})
    second.come_in("1")
    assert second.me() == ("ada-lovelace", "curator")
    assert len(room.get("alma", "/users").json()) == len(before)
    httpx2.put(f"{provider}/users/1", json=PEOPLE["1"])


def test_an_identity_with_the_name_of_a_user_gets_another_account(room):
    namesake, called_local, nameless = Visitor(room), Visitor(room), Visitor(room)
    for visitor, subject in ((namesake, "2"), (called_local, "6"), (nameless, "7")):
        visitor.come_in(subject)
    assert namesake.me() == ("rita-2", "admin")
    assert called_local.me() == ("local-2", "curator")
    assert nameless.me() == ("person", "reader")
    assert room.get("rita", "/session/me").json()["role"] == "reader"


@pytest.mark.parametrize("subject", ["3", "5"], ids=["none", "unknown"])
def test_without_a_known_role_the_login_is_refused(room, subject):
    before = room.get("alma", "/users").json()
    answer = Visitor(room).come_in(subject)
    assert (answer.status_code, answer.json()["code"]) == (403, "no_role")
    assert "medgrape=" not in str(answer.headers.get_list("set-cookie"))
    assert room.get("alma", "/users").json() == before


def test_of_several_roles_the_highest_counts(room):
    visitor = Visitor(room)
    visitor.come_in("4")
    assert visitor.me()[1] == "admin"


def test_a_refusal_of_the_provider_is_reported(room):
    answer = room.get(None, "/oidc/callback?error=access_denied&state=x")
    assert (answer.status_code, answer.json()["code"]) == (401, "login_refused")


def test_a_disabled_user_cannot_log_in_by_the_provider(room):
    Visitor(room).come_in("7")
    room.ask("alma", "PATCH", "/users/person", json={"disabled": True})
    answer = Visitor(room).come_in("7")
    assert (answer.status_code, answer.json()["code"]) == (403, "disabled")
    room.ask("alma", "PATCH", "/users/person", json={"disabled": False})


def test_the_default_role_is_given_without_a_role_claim(tmp_path, strict_run, provider):
    oidc = {"issuer": provider, "client": CLIENT, "secret": SECRET, "default_role": "reader"}
    with reading_room(tmp_path / "room", strict_run, oidc=oidc) as room:
        visitor = Visitor(room)
        visitor.come_in("3")
        assert visitor.me() == ("bo", "reader")


def test_a_login_that_was_not_begun_in_this_browser_is_refused(room):
    visitor, thief = Visitor(room), Visitor(room)
    back = signed_in(visitor.leave(), "1")
    for altered in (changed(back, state="x"), changed(back, state="é")):
        assert visitor.arrive(altered).json()["code"] == "login_broken_off"
    assert thief.arrive(back).json()["code"] == "login_broken_off"
    thief.leave()
    assert thief.arrive(back).json()["code"] == "login_broken_off"
    assert visitor.arrive(back).status_code == 303


@pytest.mark.parametrize("cookie", ["", ".", "x", "e30.00", "é.é", "{whole}x", "x{whole}"])
def test_a_changed_cookie_is_refused(room, cookie):
    visitor = Visitor(room)
    back = signed_in(visitor.leave(), "1")
    whole = visitor.client.cookies["medgrape-login"]
    visitor.client.cookies.clear()
    headers = {"Cookie": f"medgrape-login={cookie.format(whole=whole)}".encode()}
    answer = visitor.client.get(back, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "login_broken_off")


def test_a_login_that_took_too_long_is_refused(room, monkeypatch):
    monkeypatch.setattr("medgrape.server.oidc.MINUTES", -1)  # the login has expired when it begins
    visitor = Visitor(room)
    back = signed_in(visitor.leave(), "1")
    assert visitor.arrive(back).json()["code"] == "login_broken_off"


def test_a_nonce_of_another_login_is_refused(room):
    visitor = Visitor(room)
    answer = visitor.arrive(signed_in(changed(visitor.leave(), nonce="another"), "1"))
    assert (answer.status_code, answer.json()["code"]) == (401, "login_refused")


def test_a_code_is_valid_once_and_an_invented_one_never(room):
    visitor = Visitor(room)
    back = signed_in(visitor.leave(), "1")
    journey = visitor.client.cookies["medgrape-login"]
    assert visitor.arrive(changed(back, code="invented")).json()["code"] == "login_refused"
    assert visitor.arrive(back).status_code == 303
    again = Visitor(room)
    again.client.cookies.set("medgrape-login", journey)
    answer = again.arrive(back)
    assert (answer.status_code, answer.json()["code"]) == (401, "login_refused")


def test_every_login_has_its_own_state_nonce_and_challenge(room):
    one, two = (parse_qs(urlsplit(Visitor(room).leave()).query) for _ in range(2))
    assert (one["response_type"], one["code_challenge_method"], one["client_id"]) == (["code"], ["S256"], [CLIENT])
    assert one["redirect_uri"] == ["http://127.0.0.1/api/v1/oidc/callback"]
    assert all(one[part] != two[part] for part in ("state", "nonce", "code_challenge"))
    assert SECRET not in json.dumps(one)


def test_a_token_for_another_client_or_of_another_issuer_is_refused(provider):
    oidc = Oidc(OidcSettings(issuer=provider, client=CLIENT), b"key")
    assert oidc._identity(issued(provider, CLIENT), "n").role is Role.READER
    elsewhere = provider.replace("localhost", "127.0.0.1")
    for token in (issued(provider, "another"), issued(elsewhere, CLIENT)):
        with pytest.raises(Problem, match="is invalid") as refusal:
            oidc._identity(token, "n")
        assert refusal.value.status == 401


def test_a_token_with_a_foreign_signature_is_refused(provider, key):
    oidc = Oidc(OidcSettings(issuer=provider, client=CLIENT), b"key")
    genuine = issued(provider, CLIENT)
    claims = jwt.decode(genuine, options={"verify_signature": False})
    head, body, signature = genuine.split(".")
    forged = [
        "", "a.b.c", "é", f"{head}.{body}.", f"{head}.{body}.{signature[:-8]}AAAAAAAA",
        jwt.encode(claims, None, "none"),
        jwt.encode(claims, key, "RS256"),
        jwt.encode(claims, key, "RS256", headers={"kid": "unknown"}),
        jwt.encode(claims, "0" * 64, "HS256"),
    ]  # fmt: skip
    for token in forged:
        with pytest.raises(Problem, match="is invalid"):
            oidc._identity(token, "n")


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "another"},
        {"aud": None},
        {"exp": 1},
        {"exp": None},
        {"iat": None},
        {"iat": 2**40},
        {"sub": None},
        {"nonce": "another"},
        {"nonce": None},
    ],
    ids=str,
)
def test_a_token_with_wrong_claims_is_refused(own_provider, key, claims):
    with pytest.raises(Problem, match="is invalid"):
        own_provider._identity(told_by(key, **claims), "n")
    assert own_provider._identity(told_by(key), "n").subject == f"{ISSUER} 1"


@pytest.mark.parametrize("issuer", ["http://login.example", "ftp://localhost", "login.example", "file:///etc/passwd"])
def test_a_provider_without_https_is_refused(issuer):
    with pytest.raises(OidcError, match="must begin with https"):
        Oidc(OidcSettings(issuer=issuer, client=CLIENT), b"key")


def test_a_provider_with_another_issuer_is_refused(provider):
    oidc = Oidc(OidcSettings(issuer=provider.replace("localhost", "127.0.0.1") + "/", client=CLIENT), b"key")
    with pytest.raises(Problem, match="not configured correctly"):
        oidc.begin("http://127.0.0.1")


def test_a_provider_that_does_not_answer_is_reported_in_a_sentence(tmp_path, strict_run):
    oidc = {"issuer": "http://127.0.0.1:9", "client": CLIENT}
    with reading_room(tmp_path / "room", strict_run, oidc=oidc) as room:
        answer = room.get(None, "/oidc/login")
    assert (answer.status_code, answer.json()["code"]) == (503, "login_provider")
    assert answer.json()["detail"] == "The login provider does not answer correctly; try again later."


def test_without_a_provider_there_is_no_redirect(shared_room):
    for path in ("/oidc/login", "/oidc/callback?code=x&state=y"):
        assert shared_room.get(None, path, follow_redirects=False).json()["code"] == "no_provider"


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def own_provider(key):
    """A provider whose key is ours, so that it says what we like."""
    oidc = Oidc(OidcSettings(issuer=ISSUER, client=CLIENT), b"key")
    public = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    oidc.__dict__["_keys"] = SimpleNamespace(get_signing_keys=lambda: [jwt.PyJWK(public)])
    return oidc


def told_by(key, **claims):
    """A token with claims that differ from the right ones; those that are None are left out."""
    now = int(time.time())
    right = {"iss": ISSUER, "aud": CLIENT, "sub": "1", "iat": now, "exp": now + 60, "nonce": "n"}
    return jwt.encode({name: value for name, value in (right | claims).items() if value is not None}, key, "RS256")


def issued(provider, client):
    """A token that the provider really gave to a client."""
    there = {"client_id": client, "redirect_uri": "http://127.0.0.1/", "scope": "openid profile"}
    form = f"{provider}/oauth2/authorize?{urlencode(there | {'response_type': 'code', 'nonce': 'n'})}"
    (code,) = parse_qs(urlsplit(signed_in(form, "1")).query)["code"]
    asked = there | {"grant_type": "authorization_code", "code": code, "client_secret": SECRET}
    return httpx2.post(f"{provider}/oauth2/token", data=asked).json()["id_token"]
