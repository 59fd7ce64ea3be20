"""The gate: what every request passes before its body is read.

Routes are closed unless they say that they are open. The gate finds out who the caller is, refuses requests from pages
of other sites, and limits the rate, size and duration of requests.
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
METHODS = SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
"""Methods that metrics name; a caller may invent others without end."""
BODY_SECONDS = 120.0
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
_REQUESTS = Counter("medgrape_requests", "Requests answered.", ["method", "route", "status"])
_SECONDS = Histogram(
    "medgrape_request_seconds", "Time to answer.", ["method", "route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)  # fmt: skip


def metrics_text() -> bytes:
    """The metrics of all workers in the Prometheus format."""
    if not os.environ.get(METRICS_FOLDER):
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


class RateLimit:
    """A token bucket for each caller; the callers not seen for longest are forgotten."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._rate, self._burst = per_second, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str, now: float | None = None) -> float:
        """0 if the caller may go on, else the seconds to wait. Called from the event loop's thread only."""
        now = time.monotonic() if now is None else now
        left, at = self._buckets.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        wait = 0.0 if left >= 1 else (1 - left) / self._rate
        self._buckets[caller] = (left if wait else left - 1, now)
        while len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        return wait

    def check(self, caller: str) -> None:
        """Raise if the caller must wait."""
        wait = self.wait(caller)
        if wait:
            raise Problem(429, "too_many_requests", f"Too many requests; wait {wait:.1f} seconds.", retry_after=wait)


def cookie_name(*, secure: bool) -> str:
    """Name of the session's cookie; browsers accept the prefix from this host only."""
    return "__Host-medgrape" if secure else "medgrape"


class Gate:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, room: Room, open_paths: Collection[str]) -> None:
        self._app, self._room, self._open = app, room, frozenset(open_paths)
        rate = room.settings.rate
        self._requests = RateLimit(rate.per_second, rate.burst)
        self._logins = RateLimit(rate.logins_per_minute / 60, rate.logins_per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] == "websocket":  # there are none
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(scope, send, secure=self._room.settings.is_secure)
        try:
            limited = await self._admitted(scope, receive)
            await self._app(scope, limited, answer.send)
        except Exception as error:
            if answer.begun:
                raise
            await error_response(error)(scope, receive, answer.send)
        answer.log()

    async def _admitted(self, scope: Scope, receive: Receive) -> Receive:
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
        """The caller; None on open routes, where nobody is looked up."""
        if scope["path"] in self._open:
            self._requests.check(address)
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        is_bearer = scheme.lower() == "bearer"
        cookie = cookie_parser(headers.get("cookie", "")).get(cookie_name(secure=self._room.settings.is_secure), "")
        if self._room.login and not cookie and not is_bearer:
            self._requests.check(address)
            raise Problem(401, "login_needed", "Log in first, or send a bearer token.")
        user = await anyio.to_thread.run_sync(self._looked_up, token.strip() if is_bearer else "", cookie)
        self._requests.check(address if user is None else f"person {user.id}")
        if user is None:
            raise Problem(401, "login_needed", "The session or token has ended, or never was; log in again.")
        return user

    def _looked_up(self, bearer: str, cookie: str) -> User | None:
        with self._room.database.reading() as session:
            if self._room.login:
                return accounts.by_token(session, bearer) if bearer else accounts.by_cookie(session, cookie)
            local = accounts.user_row(session, accounts.LOCAL)
        if local is not None:
            return accounts.as_user(local)
        with self._room.database.writing() as session:
            return accounts.local_user(session)

    def _check_host(self, headers: Headers) -> None:
        """Refuse foreign host names on loopback, against DNS rebinding."""
        settings = self._room.settings
        own = {settings.host, *(LOOPBACK if settings.is_local else ()), urlsplit(settings.public_url).hostname or ""}
        name = _split(f"//{headers.get('host', '')}").hostname or ""
        if (settings.is_local or settings.public_url) and name not in own - {""}:
            raise Problem(421, "wrong_host", "This server is not called so; use the address that it was started with.")

    def _check_origin(self, scope: Scope, headers: Headers, user: User | None) -> None:
        """Refuse changes that a page of another site requests with the user's cookie."""
        by_token = self._room.login and user is not None and user.session is None
        if scope["method"] in SAFE_METHODS or by_token:
            return
        origin = headers.get("origin")
        own = {headers.get("host", ""), urlsplit(self._room.settings.public_url).netloc}
        foreign = origin is not None and _split(origin).netloc not in own - {""}
        if foreign or headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Problem(403, "foreign_page", "The request comes from another site's page.")
        if user is not None and user.session is not None:
            expected = csrf_token(self._room.key, user.session)
            if not constant_time_equal(headers.get("x-csrf-token", ""), expected):
                detail = "Send the session's CSRF token as X-CSRF-Token; GET /api/v1/session/me has it."
                raise Problem(403, "csrf", detail)


class _Answer:
    """The answer to one request: adds headers, metrics and a line in the log."""

    def __init__(self, scope: Scope, send: Send, *, secure: bool) -> None:
        self._scope, self._send, self._secure = scope, send, secure
        self._started, self._status = time.perf_counter(), 500
        self.begun = False
        """Whether the answer has begun, so that there can be no other."""

    async def send(self, message: Message) -> None:
        """Send a message with the headers of every answer."""
        if message["type"] == "http.response.start":
            self.begun, self._status = True, message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if self._secure:
                headers["Strict-Transport-Security"] = "max-age=31536000"
            headers.setdefault("Cache-Control", "no-store")
        await self._send(message)

    def log(self) -> None:
        """Log the route, never the path or the query: those may hold what a user typed."""
        seconds, method = time.perf_counter() - self._started, self._scope["method"]
        method = method if method in METHODS else "other"
        route = getattr(self._scope.get("route"), "path", "unmatched")
        _REQUESTS.labels(method, route, self._status).inc()
        _SECONDS.labels(method, route).observe(seconds)
        user = self._scope.get("state", {}).get("user")
        name = "-" if user is None else user.name
        logger.info("%s %s %d %.0f ms %s", method, route, self._status, seconds * 1e3, name)


def _split(address: str) -> SplitResult:
    """A caller's address, which may be malformed."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def _limited(receive: Receive, headers: Headers, limit: int) -> Receive:
    """The body, within its limits of size and time."""
    too_large = f"The request is larger than the {limit:,} bytes that are allowed here."
    declared = headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > limit:
        raise Problem(413, "too_large", too_large)
    size, deadline, ended = 0, time.monotonic() + BODY_SECONDS, False

    async def counted() -> Message:
        nonlocal size, ended
        if ended:  # what follows only says that the caller disconnected
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
