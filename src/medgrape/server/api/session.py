"""Logging in and out, by password or through an OIDC provider."""

from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ConfigDict, Field
from sqlalchemy.orm import Session

from medgrape import __version__
from medgrape.explain.words import NOTICE
from medgrape.server.api.common import HASH, Asked, Told
from medgrape.server.middleware import cookie_name
from medgrape.server.problems import Problem
from medgrape.server.security import accounts
from medgrape.server.security.credentials import csrf_token, digest, verify_password
from medgrape.server.security.oidc import MINUTES, Oidc, user_of
from medgrape.server.security.roles import Role
from medgrape.server.services import CurrentUser, ServiceContainer, Services, open_router, open_to_all, router
from medgrape.server.settings import API
from medgrape.server.storage.tables import UserRow


class LogIn(Asked):
    """Who one is."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "ada", "password": "correct horse battery"}]}
    )

    name: str = Field(min_length=1, max_length=64)
    password: str = Field(min_length=1, max_length=256)


class SessionTold(Told):
    """Who the server takes you for."""

    name: str = Field(examples=["ada"])
    role: Role
    login: bool = Field(description="False on a server that is for one person at this machine alone.")
    csrf: str | None = Field(
        description="Send it as X-CSRF-Token with everything that changes something.", examples=[HASH]
    )
    notice: str = Field(examples=["Research software, not a medical device."])


class WaysTold(Told):
    """How one logs in, and nothing else about the server."""

    login: bool = Field(description="Whether anybody has to; else the server is for one person at its machine.")
    provider: bool = Field(description="Whether GET /oidc/login leads to a login provider.")
    version: str = Field(description="Of medgrape.", examples=["0.1.0"])
    notice: str = Field(examples=["Research software, not a medical device."])


routes, anybody = router("session", Role.READER), open_router("session")
JOURNEY = "medgrape-login"


@anybody.post("/session")
@open_to_all
def log_in(asked: LogIn, services: Services, response: Response) -> SessionTold:
    """Log in with a name and a password: the answer sets a cookie and tells the CSRF token that goes with it."""
    room = services.room
    if not room.login:
        raise Problem(400, "no_login", "This server is for one person at this machine; nobody logs in.")
    with room.database.reading() as session:
        user = accounts.user_row(session, asked.name.replace("\0", ""))
    right = verify_password(None if user is None else user.password, asked.password)
    with room.database.writing() as session:
        user = None if user is None else session.get(UserRow, user.id, with_for_update=True)
        let_in = accounts.admitted(user, right=right)
        if user is not None and not let_in:
            room.store.record(session, user.name, "login.failed")
        told = _let_in(services, session, user, response) if user is not None and let_in else None
    if told is None:
        raise Problem(401, "login_refused", "Name or password is wrong, or too many tries were; wait, then try again.")
    return told


def _let_in(services: ServiceContainer, session: Session, user: UserRow, response: Response) -> SessionTold:
    room = services.room
    key = accounts.open_session(session, user, room.settings.session_hours)
    room.store.record(session, user.name, "login")
    secure = room.settings.is_secure
    response.set_cookie(
        cookie_name(secure=secure), key, max_age=round(room.settings.session_hours * 3600), path="/", secure=secure,
        httponly=True, samesite="strict",
    )  # fmt: skip
    csrf = csrf_token(room.key, digest(key))
    return SessionTold(name=user.name, role=Role(user.role), login=True, csrf=csrf, notice=NOTICE)


@anybody.get("/session/ways")
@open_to_all
async def ways_in(services: Services) -> WaysTold:
    """Tell how one logs in here, for whoever stands before the door."""
    return WaysTold(login=services.room.login, provider=services.oidc is not None, version=__version__, notice=NOTICE)


@routes.get("/session/me")
def who_am_i(services: Services, user: CurrentUser) -> SessionTold:
    """Tell who the server takes you for, and the CSRF token of a session."""
    csrf = None if user.session is None else csrf_token(services.room.key, user.session)
    return SessionTold(name=user.name, role=user.role, login=services.room.login, csrf=csrf, notice=NOTICE)


@routes.post("/session/end", status_code=204)
def log_out(services: Services, user: CurrentUser, response: Response) -> None:
    """Log out. A bearer token stays valid until it is revoked."""
    if user.session is None:
        return
    with services.room.database.writing() as session:
        accounts.close_session(session, user.session)
        services.room.store.record(session, user, "logout")
    response.delete_cookie(cookie_name(secure=services.room.settings.is_secure), path="/")


@anybody.get("/oidc/login", response_class=RedirectResponse, status_code=303)
@open_to_all
def go_to_provider(services: Services, request: Request) -> RedirectResponse:
    """Go to the login provider's page."""
    departure = _provider(services).leave(_back_to(services, request))
    answer = RedirectResponse(departure.address, 303)
    answer.set_cookie(
        JOURNEY, departure.cookie, max_age=MINUTES * 60, path=f"{API}/oidc", secure=services.room.settings.is_secure,
        httponly=True, samesite="lax",
    )  # fmt: skip
    return answer


@anybody.get("/oidc/callback", response_class=RedirectResponse, status_code=303)
@open_to_all
def come_back(
    services: Services,
    request: Request,
    code: Annotated[str | None, Query(min_length=1, max_length=4096, examples=["SplxlOBeZQQYbYS6WxSbIA"])] = None,
    state: Annotated[str, Query(max_length=256, examples=["af0ifjsldkj"])] = "",
) -> RedirectResponse:
    """Come back from the login provider's page; without a code, it let nobody in."""
    provider = _provider(services)
    if code is None:
        raise Problem(401, "login_refused", "The login provider did not let you in; begin again.")
    user = provider.arrive(code, state, request.cookies.get(JOURNEY, ""), _back_to(services, request))
    answer = RedirectResponse("/", 303)
    with services.room.database.writing() as session:
        _let_in(services, session, user_of(session, user), answer)
    answer.delete_cookie(JOURNEY, path=f"{API}/oidc")
    return answer


def _provider(services: ServiceContainer) -> Oidc:
    if services.oidc is None:
        raise Problem(404, "no_provider", "This server has no login provider; log in with a password.")
    return services.oidc


def _back_to(services: ServiceContainer, request: Request) -> str:
    base = services.room.settings.public_url.rstrip("/") or str(request.base_url).rstrip("/")
    return f"{base}{API}/oidc/callback"
