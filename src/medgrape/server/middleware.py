"""Middleware around the application: authentication, checks of host and origin, limits, security headers and metrics.

Routes require a login unless they are marked as open. Requests are checked before their body is read.
"""

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

import anyio.to_thread
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest, multiprocess
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from medgrape.server import accounts
from medgrape.server.accounts import User, constant_time_equal, csrf_token
from medgrape.server.errors import Problem, error_response
from medgrape.server.room import Room, logger
from medgrape.server.settings import API, LOOPBACK, METRICS_FOLDER

MAX_CALLERS = 10_000
FILMS, SESSION = f"{API}/films", f"{API}/session"
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
METHODS = SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"}  # metrics count all others as "other"
BODY_SECONDS = 120.0  # time limit for receiving a body
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_REQUESTS = Counter("medgrape_requests", "Responses sent.", ["method", "route", "status"])
_SECONDS = Histogram(
    "medgrape_request_seconds", "Time to answer.", ["method", "route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)  # fmt: skip


def metrics_text() -> bytes:
    """Return the metrics of all workers in the Prometheus format."""
    registry = REGISTRY
    if os.environ.get(METRICS_FOLDER):
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


class RateLimit:
    """A token bucket per caller; callers without recent requests are dropped."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._rate, self._burst = per_second, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str, now: float | None = None) -> float:
        """Return the seconds that the caller must wait. Called from the event loop's thread only."""
        now = time.monotonic() if now is None else now
        tokens, at = self._buckets.pop(caller, (self._burst, now))
        tokens = min(self._burst, tokens + (now - at) * self._rate)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._rate
        self._buckets[caller] = (tokens if wait else tokens - 1, now)
        while len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        return wait

    def check(self, caller: str) -> None:
        """Raise if the caller must wait."""
        wait = self.wait(caller)
        if wait:
            raise Problem(429, "too_many_requests", f"Too many requests; wait {wait:.1f} seconds.", retry_after=wait)


def cookie_name(*, secure: bool) -> str:
    """Return the name of the session's cookie; browsers accept the prefix __Host- from this host only."""
    return "__Host-medgrape" if secure else "medgrape"


class Gate:
    """ASGI middleware that checks and limits every request."""

    def __init__(self, app: ASGIApp, room: Room, open_paths: Collection[str]) -> None:
        self._app, self._room, self._open = app, room, frozenset(open_paths)
        rate = room.settings.rate
        self._requests = RateLimit(rate.per_second, rate.burst)
        self._logins = RateLimit(rate.logins_per_minute / 60, rate.logins_per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then pass it to the application or answer with an error."""
        if scope["type"] == "websocket":  # not used
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sender = _ResponseSender(scope, send, secure=self._room.settings.is_secure)
        try:
            await self._app(scope, await self._check(scope, receive), sender.send)
        except Exception as error:
            if sender.started:
                raise
            await error_response(error)(scope, receive, sender.send)
        sender.log()

    async def _check(self, scope: Scope, receive: Receive) -> Receive:
        """Check a request, set its user, and return its body with limits."""
        settings, headers = self._room.settings, Headers(scope=scope)
        address = scope["client"][0] if scope.get("client") else "unknown"
        self._check_host(headers)
        if scope["path"] == SESSION and scope["method"] == "POST":
            self._logins.check(address)
        user = await self._user(scope, headers, address)
        self._check_origin(scope, headers, user)
        scope.setdefault("state", {})["user"] = user
        is_film = scope["path"] == FILMS and scope["method"] == "POST"
        return _limited(receive, headers, settings.films.max_bytes + 2**16 if is_film else settings.body_bytes)

    async def _user(self, scope: Scope, headers: Headers, address: str) -> User | None:
        """Return the user of a request; None on open routes."""
        if scope["path"] in self._open:
            self._requests.check(address)
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        cookie = cookie_parser(headers.get("cookie", "")).get(cookie_name(secure=self._room.settings.is_secure), "")
        if self._room.login and not (cookie or token):
            self._requests.check(address)
            raise Problem(401, "login_needed", "Log in first, or send a bearer token.")
        user = await anyio.to_thread.run_sync(self._find_user, token, cookie)
        self._requests.check(address if user is None else f"person {user.id}")
        if user is None:
            raise Problem(401, "login_needed", "The session or token is unknown or has ended; log in again.")
        return user

    def _find_user(self, bearer: str, cookie: str) -> User | None:
        if not self._room.login:
            with self._room.database.reading() as session:
                local = accounts.user_row(session, accounts.LOCAL)
            if local is not None:
                return accounts.as_user(local)
            with self._room.database.writing() as session:
                return accounts.local_user(session)
        with self._room.database.reading() as session:
            return accounts.by_token(session, bearer) if bearer else accounts.by_cookie(session, cookie)

    def _check_host(self, headers: Headers) -> None:
        """Refuse other host names on loopback, against DNS rebinding."""
        settings = self._room.settings
        own = {settings.host, *(LOOPBACK if settings.is_local else ()), urlsplit(settings.public_url).hostname or ""}
        name = _split(f"//{headers.get('host', '')}").hostname or ""
        if (settings.is_local or settings.public_url) and name not in own - {""}:
            raise Problem(421, "wrong_host", "Not the server's host name; use the address printed at its start.")

    def _check_origin(self, scope: Scope, headers: Headers, user: User | None) -> None:
        """Refuse changes requested by a page of another site with the user's cookie."""
        by_token = self._room.login and user is not None and user.session is None
        if scope["method"] in SAFE_METHODS or by_token:
            return
        origin = headers.get("origin")
        own = {headers.get("host", ""), urlsplit(self._room.settings.public_url).netloc}
        foreign = origin is not None and _split(origin).netloc not in own - {""}
        if foreign or headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Problem(403, "foreign_page", "The request comes from a page of another site.")
        if user is not None and user.session is not None:
            expected = csrf_token(self._room.key, user.session)
            if not constant_time_equal(headers.get("x-csrf-token", ""), expected):
                detail = "Send the session's CSRF token as X-CSRF-Token; GET /api/v1/session/me returns it."
                raise Problem(403, "csrf", detail)


class _ResponseSender:
    """Sends the response to a request with security headers; adds metrics and a line in the log."""

    def __init__(self, scope: Scope, send: Send, *, secure: bool) -> None:
        self._scope, self._send, self._secure = scope, send, secure
        self._start, self._status = time.perf_counter(), 500
        self.started = False  # whether the response has begun, so that no other can be sent

    async def send(self, message: Message) -> None:
        """Send a message with the headers of every response."""
        if message["type"] == "http.response.start":
            self.started, self._status = True, message["status"]
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            if self._secure:
                headers["Strict-Transport-Security"] = "max-age=31536000"
            headers.setdefault("Cache-Control", "no-store")
        await self._send(message)

    def log(self) -> None:
        """Log the route, never the path or the query, which may contain input of users."""
        seconds, method = time.perf_counter() - self._start, self._scope["method"]
        method = method if method in METHODS else "other"
        route = getattr(self._scope.get("route"), "path", "unmatched")
        _REQUESTS.labels(method, route, self._status).inc()
        _SECONDS.labels(method, route).observe(seconds)
        name = getattr(self._scope.get("state", {}).get("user"), "name", "-")
        logger.info("%s %s %d %.0f ms %s", method, route, self._status, seconds * 1e3, name)


def _split(address: str) -> SplitResult:
    """Split an address from a header, which may be malformed."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def _limited(receive: Receive, headers: Headers, limit: int) -> Receive:
    """Return a receive function that limits size and duration of the body."""
    too_large = f"The request is larger than the {limit:,} bytes that are allowed here."
    declared = headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > limit:
        raise Problem(413, "too_large", too_large)
    size, deadline, ended = 0, time.monotonic() + BODY_SECONDS, False

    async def counted() -> Message:
        nonlocal size, ended
        if ended:  # only a disconnect can follow
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), max(deadline - time.monotonic(), 0.001))
        except TimeoutError:
            raise HTTPException(408, "The request took too long to arrive; send it again.") from None
        size += len(message.get("body", b""))
        ended = not message.get("more_body", False)
        if size > limit:
            raise HTTPException(413, too_large)
        return message

    return counted
