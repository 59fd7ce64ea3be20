"""Login through an OpenID Connect provider: authorization code with PKCE. Only the configured provider is contacted."""

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
from medgrape.server.accounts import LOCAL, SERVER, Role, add_user, constant_time_equal, new_key
from medgrape.server.errors import Problem
from medgrape.server.room import logger
from medgrape.server.settings import LOOPBACK, OidcSettings
from medgrape.server.storage.tables import UserRow

MINUTES = 10
"""Time that a user has for the provider's page."""
_TIMEOUT = 10
_SIGNATURES = ["RS256", "PS256", "ES256", "EdDSA"]


class OidcError(UserError):
    """A provider that cannot be used as configured."""


@dataclass(frozen=True)
class Departure:
    """A redirect to the provider."""

    address: str
    cookie: str
    """Proves, when the user comes back, that this browser began the login."""


@dataclass(frozen=True)
class Identity:
    """A user as the provider describes them."""

    subject: str
    name: str
    role: Role | None


class Oidc:
    """The configured provider."""

    def __init__(self, settings: OidcSettings, key: bytes) -> None:
        self._settings, self._key = settings, key
        _check_address(settings.issuer)

    def leave(self, back_to: str) -> Departure:
        """Begin a login."""
        login = {"state": new_key(), "nonce": new_key(), "verifier": new_key(), "until": time.time() + MINUTES * 60}
        query = {
            "response_type": "code", "client_id": self._settings.client, "redirect_uri": back_to,
            "scope": "openid profile", "state": login["state"], "nonce": login["nonce"],
            "code_challenge": _base64(hashlib.sha256(str(login["verifier"]).encode()).digest()),
            "code_challenge_method": "S256",
        }  # fmt: skip
        body = _base64(json.dumps(login).encode())
        address = f"{self._endpoint('authorization_endpoint')}?{urlencode(query)}"
        return Departure(address, f"{body}.{self._signature(body)}")

    def arrive(self, code: str, state: str, cookie: str, back_to: str) -> Identity:
        """End a login; returns the user after all checks."""
        login = self._login(cookie)
        if login is None or not constant_time_equal(str(login["state"]), state):
            raise Problem(400, "login_broken_off", "This login was not begun here, or took too long; begin again.")
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": back_to,
            "client_id": self._settings.client, "code_verifier": login["verifier"],
        }  # fmt: skip
        secret = self._settings.secret or os.environ.get("MEDGRAPE_OIDC_SECRET", "")
        answer = _fetched(self._endpoint("token_endpoint"), form | ({"client_secret": secret} if secret else {}))
        return self._identity(str(answer.get("id_token", "")), str(login["nonce"]))

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
        claim = claims.get(self._settings.role_claim) or self._settings.default_role
        roles = [role for role in Role if role in (claim if isinstance(claim, list) else [claim])]
        name = str(claims.get("preferred_username") or claims.get("name") or "")
        highest = roles[-1] if roles else None
        return Identity(f"{claims['iss']} {claims['sub']}"[:512], name, highest)

    def _key_of(self, token: str) -> jwt.PyJWK:
        """The key that a token names; a provider with only one need not name it (OIDC Core, 10.1)."""
        known = self._keys.get_signing_keys()
        if len(known) == 1 and "kid" not in jwt.get_unverified_header(token):
            return known[0]
        return self._keys.get_signing_key_from_jwt(token)

    @cached_property
    def _keys(self) -> jwt.PyJWKClient:
        return jwt.PyJWKClient(self._endpoint("jwks_uri"), timeout=_TIMEOUT)

    @cached_property
    def _provider(self) -> dict[str, Any]:
        answer = _fetched(f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
        if answer.get("issuer") != self._settings.issuer:
            logger.error("the login provider calls itself %r; set oidc.issuer to exactly that", answer.get("issuer"))
            detail = "The login provider is not set up rightly; tell whoever runs the server."
            raise Problem(503, "login_provider", detail)
        return answer

    def _endpoint(self, name: str) -> str:
        address = str(self._provider.get(name, ""))
        _check_address(address)
        return address

    def _login(self, cookie: str) -> dict[str, Any] | None:
        """The login that a cookie of ours describes; None if it was changed or has expired."""
        body, _, signature = cookie.partition(".")
        if not constant_time_equal(self._signature(body), signature):
            return None
        login = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return dict(login) if login["until"] > time.time() else None

    def _signature(self, body: str) -> str:
        return hmac.new(self._key, b"oidc " + body.encode(), hashlib.sha256).hexdigest()


def user_of(session: Session, identity: Identity) -> UserRow:
    """The user of an identity, created at the first login; their role is what the provider gives each time."""
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
    taken = {*session.scalars(select(UserRow.name)), SERVER, LOCAL}
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in range(1, 10**6))
    return next(name for name in names if name not in taken)


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise OidcError(f"A login provider is reached by https; {address!r} is not.")


def _fetched(address: str, form: dict[str, Any] | None = None) -> dict[str, Any]:
    """JSON from the provider, whose address was configured by an operator and checked by ``_check_address``."""
    data = None if form is None else urlencode(form).encode()
    request = urllib.request.Request(address, data, {"Accept": "application/json"})  # noqa: S310
    unavailable = Problem(503, "login_provider", "The login provider does not answer as it should; try later.")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
            return dict(json.loads(answer.read(2**20)))
    except HTTPError as error:
        error.close()
        used = error.code == 400 and form is not None  # a code that was used before, or never given
        raise (_refused() if used else unavailable) from error
    except (OSError, HTTPException, ValueError, TypeError) as error:
        raise unavailable from error


def _refused() -> Problem:
    return Problem(401, "login_refused", "What the login provider said cannot be trusted; begin again.")


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
