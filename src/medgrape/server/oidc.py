"""Login through an OpenID Connect provider: authorization code with PKCE. Only the configured provider is contacted."""

import base64
import hashlib
import hmac
import json
import os
import re
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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

MINUTES = 10  # time limit of a login
_TIMEOUT = 10
_SIGNATURES = ["RS256", "PS256", "ES256", "EdDSA"]


class OidcError(UserError):
    """The settings of the login provider are invalid."""


@dataclass(frozen=True)
class Identity:
    """A user as described by the provider."""

    subject: str
    name: str
    role: Role | None


class Oidc:
    """The configured provider."""

    def __init__(self, settings: OidcSettings, key: bytes) -> None:
        self._settings, self._cookie_key = settings, hmac.digest(key, b"oidc", "sha256")
        _check_address(settings.issuer)

    def begin(self, callback: str) -> tuple[str, str]:
        """Begin a login; return the address at the provider, and a cookie that binds the login to the browser."""
        login = {"state": new_key(), "nonce": new_key(), "verifier": new_key()}
        challenge = base64.urlsafe_b64encode(hashlib.sha256(login["verifier"].encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code", "client_id": self._settings.client, "redirect_uri": callback,
            "scope": "openid profile", "state": login["state"], "nonce": login["nonce"],
            "code_challenge": challenge, "code_challenge_method": "S256",
        }  # fmt: skip
        expires = datetime.now(UTC) + timedelta(minutes=MINUTES)
        cookie = jwt.encode(login | {"exp": expires}, self._cookie_key, "HS256")
        return f"{self._endpoint('authorization_endpoint')}?{urlencode(query)}", cookie

    def finish(self, code: str, state: str, cookie: str, callback: str) -> Identity:
        """Finish a login and return the user, after all checks."""
        detail = "This login was not begun in this browser, or took too long; begin again."
        try:
            login = jwt.decode(cookie, self._cookie_key, ["HS256"], options={"require": ["exp", "state"]})
        except jwt.PyJWTError as error:
            raise Problem(400, "login_broken_off", detail) from error
        if not constant_time_equal(login["state"], state):
            raise Problem(400, "login_broken_off", detail)
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": callback,
            "client_id": self._settings.client, "code_verifier": login["verifier"],
        }  # fmt: skip
        secret = self._settings.secret or os.environ.get("MEDGRAPE_OIDC_SECRET", "")
        response = _fetch(self._endpoint("token_endpoint"), form | ({"client_secret": secret} if secret else {}))
        return self._identity(str(response.get("id_token", "")), login["nonce"])

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
        """Return the key that a token names; a provider with one key need not name it (OIDC Core, 10.1)."""
        keys = self._keys.get_signing_keys()
        if len(keys) == 1 and "kid" not in jwt.get_unverified_header(token):
            return keys[0]
        return self._keys.get_signing_key_from_jwt(token)

    @cached_property
    def _keys(self) -> jwt.PyJWKClient:
        return jwt.PyJWKClient(self._endpoint("jwks_uri"), timeout=_TIMEOUT)

    @cached_property
    def _provider(self) -> dict[str, Any]:
        configuration = _fetch(f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
        issuer = configuration.get("issuer")
        if issuer != self._settings.issuer:
            logger.error("the login provider calls itself %r; set oidc.issuer to exactly that", issuer)
            detail = "The login provider is not configured correctly; tell the administrator of the server."
            raise Problem(503, "login_provider", detail)
        return configuration

    def _endpoint(self, name: str) -> str:
        address = str(self._provider.get(name, ""))
        _check_address(address)
        return address


def user_of(session: Session, identity: Identity) -> UserRow:
    """Return the user of an identity, created at the first login, with the role that the provider gives."""
    if identity.role is None:
        raise Problem(403, "no_role", "The login provider gives you no role; ask its administrator.")
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
        raise OidcError(f"The address of a login provider must begin with https; {address!r} does not.")


def _fetch(address: str, form: dict[str, Any] | None = None) -> dict[str, Any]:
    """Fetch JSON from the provider. Its address was configured by an operator and checked by ``_check_address``."""
    data = None if form is None else urlencode(form).encode()
    request = urllib.request.Request(address, data, {"Accept": "application/json"})  # noqa: S310
    unavailable = Problem(503, "login_provider", "The login provider does not answer correctly; try again later.")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:  # noqa: S310
            return dict(json.loads(response.read(2**20)))
    except HTTPError as error:
        error.close()
        invalid_code = error.code == 400 and form is not None
        raise (_refused() if invalid_code else unavailable) from error
    except (OSError, HTTPException, ValueError, TypeError) as error:
        raise unavailable from error


def _refused() -> Problem:
    return Problem(401, "login_refused", "The response of the login provider is invalid; begin again.")
