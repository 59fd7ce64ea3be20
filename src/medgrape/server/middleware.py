"""The gate: every request passes it before any of its body is read.

Closed unless a route says that it is open. Whoever comes through is known, did not come from another site's page, asks
no more often than allowed and sends no more than allowed.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from medgrape.server import metrics
from medgrape.server.error_responses import answer_to
from medgrape.server.problems import Problem
from medgrape.server.room import Room
from medgrape.server.room_folder import logger
from medgrape.server.security import accounts
from medgrape.server.security.credentials import constant_time_equal, csrf_token
from medgrape.server.security.roles import User
from medgrape.server.settings import API, LOOPBACK

_MOST_CALLERS = 10_000


@dataclass
class _Bucket:
    left: float
    at: float


class RateLimit:
    """A bucket for each caller; those who have not called for longest are forgotten."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._rate, self._burst = per_second, burst
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def wait(self, caller: str, now: float | None = None) -> float:
        """0 if the caller may go on, else in how many seconds. Called from one thread: the event loop's."""
        now = time.monotonic() if now is None else now
        bucket = self._buckets.pop(caller, None) or _Bucket(self._burst, now)
        bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        self._buckets[caller] = bucket
        while len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        if bucket.left < 1:
            return (1 - bucket.left) / self._rate
        bucket.left -= 1
        return 0.0


FILMS, SESSION = f"{API}/films", f"{API}/session"
SAFE = {"GET", "HEAD", "OPTIONS"}
METHODS = SAFE | {"POST", "PUT", "PATCH", "DELETE"}
"""Those that figures are kept of; a caller may invent others without end."""
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


def cookie_name(*, secure: bool) -> str:
    """Of the session; the prefix makes browsers refuse it from any other host."""
    return "__Host-medgrape" if secure else "medgrape"


class Gate:
    """Wraps the whole application."""

    def __init__(self, app: ASGIApp, room: Room, open_paths: Collection[str]) -> None:
        self._app, self._room, self._open = app, room, frozenset(open_paths)
        rate = room.settings.rate
        self._asking = RateLimit(rate.per_second, rate.burst)
        self._logins = RateLimit(rate.logins_per_minute / 60, rate.logins_per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let through, or answer."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":  # there are none
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self._app(scope, receive, send)
            return
        passage = _Passage(scope, send, secure=self._room.settings.is_secure)
        try:
            limited = await self._admitted(scope, receive)
            await self._app(scope, limited, passage.send)
        except Exception as error:
            if passage.answered:
                raise
            await answer_to(error)(scope, receive, passage.send)
        passage.note()

    async def _admitted(self, scope: Scope, receive: Receive) -> Receive:
        headers = Headers(scope=scope)
        address = scope["client"][0] if scope.get("client") else "unknown"
        self._check_host(headers)
        if scope["path"] == SESSION and scope["method"] == "POST":
            _check_rate(self._logins, address)
        user = await self._known(scope, headers, address)
        self._check_origin(scope, headers, user)
        scope.setdefault("state", {})["user"] = user
        is_film = scope["path"] == FILMS and scope["method"] == "POST"
        settings = self._room.settings
        return _limited(receive, headers, settings.films.max_bytes + 2**16 if is_film else settings.body_bytes)

    async def _known(self, scope: Scope, headers: Headers, address: str) -> User | None:
        """Who is asking; nobody has to be known for open routes, and then nobody is looked up."""
        if scope["path"] in self._open:
            _check_rate(self._asking, address)
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        cookie = self._cookie(headers)
        if self._room.login and not cookie and scheme.lower() != "bearer":
            _check_rate(self._asking, address)
            raise Problem(401, "login_needed", "Log in first, or send a bearer token.")
        bearer = token.strip() if scheme.lower() == "bearer" else ""
        user = await anyio.to_thread.run_sync(self._looked_up, bearer, cookie)
        _check_rate(self._asking, address if user is None else f"person {user.id}")
        if user is None:
            raise Problem(401, "login_needed", "The session or token has ended, or never was; log in again.")
        return user

    def _looked_up(self, bearer: str, cookie: str) -> User | None:
        if not self._room.login:
            return self._local()
        with self._room.database.reading() as session:
            return accounts.by_token(session, bearer) if bearer else accounts.by_cookie(session, cookie)

    def _local(self) -> User:
        with self._room.database.reading() as session:
            known = accounts.user_row(session, accounts.LOCAL)
        if known is not None:
            return accounts.as_user(known)
        with self._room.database.writing() as session:
            return accounts.local_user(session)

    def _cookie(self, headers: Headers) -> str:
        name = cookie_name(secure=self._room.settings.is_secure)
        return cookie_parser(headers.get("cookie", "")).get(name, "")

    def _check_host(self, headers: Headers) -> None:
        """On loopback, a name that leads here by somebody else's DNS is refused: that is how pages rebind."""
        settings = self._room.settings
        own = {settings.host, *(LOOPBACK if settings.is_local else ()), urlsplit(settings.public_url).hostname or ""}
        name = _split(f"//{headers.get('host', '')}").hostname or ""
        if (settings.is_local or settings.public_url) and name not in own - {""}:
            raise Problem(421, "wrong_host", "This server is not called so; use the address that it was started with.")

    def _check_origin(self, scope: Scope, headers: Headers, user: User | None) -> None:
        """No other site's page may change anything in the name of whoever looks at it."""
        by_token = self._room.login and user is not None and user.session is None
        if scope["method"] in SAFE or by_token:
            return
        origin = headers.get("origin")
        own = {headers.get("host", ""), urlsplit(self._room.settings.public_url).netloc}
        if origin is not None and _split(origin).netloc not in own - {""}:
            raise Problem(403, "foreign_page", "The request comes from another site's page.")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Problem(403, "foreign_page", "The request comes from another site's page.")
        if user is not None and user.session is not None:
            expected = csrf_token(self._room.key, user.session)
            if not constant_time_equal(headers.get("x-csrf-token", ""), expected):
                raise Problem(
                    403, "csrf", "Send the session's CSRF token as X-CSRF-Token; GET /api/v1/session/me has it."
                )


class _Passage:
    """One request on its way through: headers for its answer, figures and a line in the journal."""

    def __init__(self, scope: Scope, send: Send, *, secure: bool) -> None:
        self._scope, self._send, self._secure = scope, send, secure
        self._begun, self._status = time.perf_counter(), 500
        self.answered = False
        """Whether the answer has begun, so that there can be no other."""

    async def send(self, message: Message) -> None:
        """Pass the answer on with what every answer carries."""
        if message["type"] == "http.response.start":
            self.answered, self._status = True, message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if self._secure:
                headers["Strict-Transport-Security"] = "max-age=31536000"
            headers.setdefault("Cache-Control", "no-store")
        await self._send(message)

    def note(self) -> None:
        """The route and never the path or what was asked with it: those may hold what somebody typed."""
        taken, asked = time.perf_counter() - self._begun, self._scope["method"]
        method = asked if asked in METHODS else "other"
        route = getattr(self._scope.get("route"), "path", "unmatched")
        metrics.REQUESTS.labels(method, route, self._status).inc()
        metrics.SECONDS.labels(method, route).observe(taken)
        user = self._scope.get("state", {}).get("user")
        name = "-" if user is None else user.name
        logger.info("%s %s %d %.0f ms %s", method, route, self._status, taken * 1e3, name)


def _split(address: str) -> SplitResult:
    """An address that a caller sent, which may be none at all."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def _check_rate(limit: RateLimit, caller: str) -> None:
    wait = limit.wait(caller)
    if wait:
        raise Problem(429, "too_many_requests", f"Too many requests; wait {wait:.1f} seconds.", retry_after=wait)


def _limited(receive: Receive, headers: Headers, most: int) -> Receive:
    """The body, as long as it stays within its limits of size and time."""
    declared = headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > most:
        raise _too_large(most)
    count, ends_at, ended = 0, time.monotonic() + BODY_SECONDS, False

    async def counted() -> Message:
        nonlocal count, ended
        if ended:  # what follows is only the news that the caller hung up
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), max(ends_at - time.monotonic(), 0.001))
        except TimeoutError:
            raise HTTPException(408, "The request took too long to arrive; send it again.") from None
        count += len(message.get("body", b""))
        ended = not message.get("more_body", False)
        if count > most:
            raise HTTPException(413, _too_large(most).detail)
        return message

    return counted


def _too_large(most: int) -> Problem:
    return Problem(413, "too_large", f"The request is larger than the {most:,} bytes that are allowed here.")
