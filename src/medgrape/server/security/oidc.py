"""Login through an OpenID Connect provider: authorization code with PKCE. Only the configured one is ever asked."""

import base64
import hashlib
import hmac
import json
import os
import re
import time
import urllib.request
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit

import jwt
from sqlalchemy import select
from sqlalchemy.orm import Session

from medgrape.errors import UserError
from medgrape.server.problems import Problem
from medgrape.server.room_folder import logger
from medgrape.server.security.accounts import add_user
from medgrape.server.security.credentials import constant_time_equal, new_key
from medgrape.server.security.roles import Role
from medgrape.server.settings import LOOPBACK, OidcSettings
from medgrape.server.storage.tables import UserRow

MINUTES = 10
"""How long somebody may take at the provider's page."""
_SECONDS = 10
_SIGNATURES = ["RS256", "PS256", "ES256", "EdDSA"]


class OidcError(UserError):
    """A provider that cannot be used as it was configured."""


@dataclass(frozen=True)
class Departure:
    """Somebody on their way to the provider."""

    address: str
    """Where to send them."""
    cookie: str
    """What proves, when they come back, that it is they."""


@dataclass(frozen=True)
class Identity:
    """Who the provider says somebody is."""

    subject: str
    name: str
    role: Role | None


class Oidc:
    """The provider."""

    def __init__(self, settings: OidcSettings, key: bytes) -> None:
        self._settings, self._key = settings, key
        _check_address(settings.issuer)

    def leave(self, back_to: str) -> Departure:
        """Begin to log in."""
        journey = {"state": new_key(), "nonce": new_key(), "verifier": new_key(), "until": time.time() + MINUTES * 60}
        challenge = _base64(hashlib.sha256(str(journey["verifier"]).encode()).digest())
        asked = {
            "response_type": "code", "client_id": self._settings.client, "redirect_uri": back_to,
            "scope": "openid profile", "state": journey["state"], "nonce": journey["nonce"],
            "code_challenge": challenge, "code_challenge_method": "S256",
        }  # fmt: skip
        return Departure(f"{self._endpoint('authorization_endpoint')}?{urlencode(asked)}", self._signed(journey))

    def arrive(self, code: str, state: str, cookie: str, back_to: str) -> Identity:
        """Who came back, after everything was checked."""
        journey = self._journey(cookie)
        if journey is None or not constant_time_equal(str(journey["state"]), state):
            raise Problem(400, "login_broken_off", "This login was not begun here, or took too long; begin again.")
        asked = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": back_to,
            "client_id": self._settings.client, "code_verifier": journey["verifier"],
        }  # fmt: skip
        secret = self._settings.secret or os.environ.get("MEDGRAPE_OIDC_SECRET", "")
        answer = _fetched(self._endpoint("token_endpoint"), asked | ({"client_secret": secret} if secret else {}))
        return self._identity(str(answer.get("id_token", "")), str(journey["nonce"]))

    def _identity(self, token: str, nonce: str) -> Identity:
        try:
            claims = jwt.decode(
                token, self._key_of(token), algorithms=_SIGNATURES, audience=self._settings.client,
                issuer=self._settings.issuer, leeway=30, options={"require": ["exp", "iat", "sub"]},
            )  # fmt: skip
        except jwt.PyJWTError as error:
            raise _refused() from error
        if not constant_time_equal(str(claims.get("nonce", "")), nonce):
            raise _refused()
        said = claims.get(self._settings.role_claim) or self._settings.default_role
        given = [role for role in Role if role in (said if isinstance(said, list) else [said])]
        role = given[-1] if given else None  # of several, the one that may do most
        name = str(claims.get("preferred_username") or claims.get("name") or "")
        return Identity(f"{claims['iss']} {claims['sub']}"[:512], name, role)

    def _key_of(self, token: str) -> jwt.PyJWK:
        """The key a token says it is signed with; a provider that has only one need not name it (OIDC Core, 10.1)."""
        known = self._keys.get_signing_keys()
        if len(known) == 1 and "kid" not in jwt.get_unverified_header(token):
            return known[0]
        return self._keys.get_signing_key_from_jwt(token)

    @cached_property
    def _keys(self) -> jwt.PyJWKClient:
        return jwt.PyJWKClient(self._endpoint("jwks_uri"), timeout=_SECONDS)

    @cached_property
    def _provider(self) -> dict[str, Any]:
        told = _fetched(f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
        if told.get("issuer") != self._settings.issuer:
            logger.error("the login provider calls itself %r; set oidc.issuer to exactly that", told.get("issuer"))
            raise Problem(
                503, "login_provider", "The login provider is not set up rightly; tell whoever runs the server."
            )
        return told

    def _endpoint(self, name: str) -> str:
        address = str(self._provider.get(name, ""))
        _check_address(address)
        return address

    def _signed(self, journey: dict[str, Any]) -> str:
        body = _base64(json.dumps(journey).encode())
        return f"{body}.{self._signature(body)}"

    def _journey(self, cookie: str) -> dict[str, Any] | None:
        body, _, signature = cookie.partition(".")
        if not constant_time_equal(self._signature(body), signature):
            return None
        journey = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return dict(journey) if journey["until"] > time.time() else None

    def _signature(self, body: str) -> str:
        return hmac.new(self._key, b"oidc " + body.encode(), hashlib.sha256).hexdigest()


def user_of(session: Session, identity: Identity) -> UserRow:
    """The user behind an identity, made at the first login; their role is what the provider says each time."""
    if identity.role is None:
        raise Problem(403, "no_role", "The login provider gives you no role here; ask whoever keeps it.")
    user = session.scalar(select(UserRow).where(UserRow.subject == identity.subject))
    if user is None:
        return add_user(session, _free_name(session, identity), identity.role, None, identity.subject)
    if user.disabled:
        raise Problem(403, "disabled", "Your account was disabled; ask an admin.")
    user.role = identity.role
    return user


def _free_name(session: Session, identity: Identity) -> str:
    wanted = re.sub(r"[^a-z0-9._@-]+", "-", identity.name.lower()).strip("-._@")[:40] or "person"
    taken = set(session.scalars(select(UserRow.name)))
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in range(1, 10**6))
    return next(name for name in names if name not in taken | {"server", "local"})


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise OidcError(f"A login provider is reached by https; {address!r} is not.")


def _fetched(address: str, form: dict[str, Any] | None = None) -> dict[str, Any]:
    """JSON from the provider, whose address an operator configured and ``_check_address`` has looked at."""
    data = None if form is None else urlencode(form).encode()
    request = urllib.request.Request(address, data, {"Accept": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            return dict(json.loads(answer.read(2**20)))
    except HTTPError as refusal:
        refusal.close()
        if refusal.code == 400 and form is not None:  # a code that was used before, or never given
            raise _refused() from refusal
        raise _unavailable() from refusal
    except (OSError, HTTPException, ValueError, TypeError) as error:
        raise _unavailable() from error


def _refused() -> Problem:
    return Problem(401, "login_refused", "What the login provider said cannot be trusted; begin again.")


def _unavailable() -> Problem:
    return Problem(503, "login_provider", "The login provider does not answer as it should; try later.")


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
