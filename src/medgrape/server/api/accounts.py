"""Accounts: log in and out by password or OpenID Connect, users for admins, tokens for everybody."""

from typing import Annotated

from fastapi import Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BeforeValidator, Field
from sqlalchemy.orm import Session

from medgrape import __version__
from medgrape.explain.words import NOTICE
from medgrape.server import accounts
from medgrape.server.accounts import Role, csrf_token, digest, hash_password, verify_password
from medgrape.server.api.common import HASH, ID, LINE, Identifier, RequestModel, ResponseModel, When
from medgrape.server.errors import Problem, forbidden, not_found
from medgrape.server.middleware import cookie_name
from medgrape.server.oidc import MINUTES, Oidc, user_of
from medgrape.server.services import CurrentUser, Services, open_router, open_to_all, problem_responses, router
from medgrape.server.settings import API
from medgrape.server.storage.tables import TokenRow, UserRow, stamp


class LogIn(RequestModel, json_schema_extra={"examples": [{"name": "ada", "password": "correct horse battery"}]}):
    """A name and its password."""

    name: str = Field(min_length=1, max_length=64)
    password: str = Field(min_length=1, max_length=256)


class SessionResponse(ResponseModel):
    """The user that the server takes you for."""

    name: str = Field(examples=["ada"])
    role: Role
    login: bool = Field(description="False on a server that is for one person at this machine alone.")
    csrf: str | None = Field(description="Send it as X-CSRF-Token with every change.", examples=[HASH])
    notice: str = Field(examples=["Research software, not a medical device."])


class LoginMethods(ResponseModel):
    """How one logs in."""

    login: bool = Field(description="Whether anybody has to; else the server is for one person at its machine.")
    provider: bool = Field(description="Whether GET /oidc/login leads to a login provider.")
    version: str = Field(description="Of medgrape.", examples=["0.1.0"])
    notice: str = Field(examples=["Research software, not a medical device."])


class UserResponse(ResponseModel):
    """A user of the server."""

    name: str = Field(examples=["ada"])
    role: Role
    disabled: bool
    has_password: Annotated[bool, BeforeValidator(lambda password: password is not None)] = Field(
        validation_alias="password"
    )
    locked_until: When | None
    added_at: When


class AddUser(
    RequestModel,
    json_schema_extra={"examples": [{"name": "ada", "role": "reader", "password": "correct horse battery"}]},
):
    """A new user."""

    name: str = Field(min_length=1, max_length=63)
    role: Role
    password: str | None = Field(default=None, max_length=256)


class ChangeUser(RequestModel, json_schema_extra={"examples": [{"role": "curator"}]}):
    """What to change; what is left out stays as it is."""

    role: Role | None = None
    disabled: bool | None = None
    password: str | None = Field(default=None, max_length=256)


class TokenResponse(ResponseModel):
    """A bearer token, without its secret."""

    id: Identifier
    user: str = Field(examples=["pacs"])
    name: str = Field(examples=["orthanc"])
    role: Role
    created_at: When
    expires_at: When | None
    revoked_at: When | None


class CreateToken(RequestModel, json_schema_extra={"examples": [{"name": "orthanc", "role": "reader", "days": 90}]}):
    """A new token, for oneself or, by an admin, for somebody else."""

    name: str = Field(min_length=1, max_length=64, pattern=LINE)
    role: Role
    days: float | None = Field(default=90, gt=0, le=3650, description="null: it does not expire.")
    user: str | None = Field(default=None, min_length=1, max_length=64)


class NewToken(ResponseModel):
    """A token with its secret, which is shown this once."""

    token: str = Field(examples=["mg_5f2b8c0a9d3e4f17_..."])
    told: TokenResponse


def _token(row: TokenRow, user: str) -> TokenResponse:
    return TokenResponse(
        id=row.id, user=user, name=row.name, role=Role(row.role), created_at=stamp(row.created_at),
        expires_at=None if row.expires_at is None else stamp(row.expires_at),
        revoked_at=None if row.revoked_at is None else stamp(row.revoked_at),
    )  # fmt: skip


anybody, session_routes = open_router("session"), router("session", Role.READER)
routes, admin = router("people", Role.READER), router("people", Role.ADMIN)
OIDC_COOKIE = "medgrape-login"


@anybody.post("/session")
@open_to_all
def log_in(body: LogIn, services: Services, response: Response) -> SessionResponse:
    """Log in with a name and a password. The answer sets a cookie and has the CSRF token that goes with it."""
    room = services.room
    if not room.login:
        raise Problem(400, "no_login", "This server is for one person at this machine; nobody logs in.")
    with room.database.reading() as session:
        user = accounts.user_row(session, body.name.replace("\0", ""))
    right = verify_password(None if user is None else user.password, body.password)
    opened = None
    with room.database.writing() as session:
        user = None if user is None else session.get(UserRow, user.id, with_for_update=True)
        admitted = accounts.admitted(user, right=right)
        if user is not None and admitted:
            opened = _open_session(services, session, user, response)
        elif user is not None:
            room.store.record(session, user.name, "login.failed")
    if opened is None:
        raise Problem(401, "login_refused", "Name or password is wrong, or too many tries were; wait, then try again.")
    return opened


def _open_session(services: Services, session: Session, user: UserRow, response: Response) -> SessionResponse:
    room = services.room
    key = accounts.open_session(session, user, room.settings.session_hours)
    room.store.record(session, user.name, "login")
    secure = room.settings.is_secure
    response.set_cookie(
        cookie_name(secure=secure), key, max_age=round(room.settings.session_hours * 3600), path="/", secure=secure,
        httponly=True, samesite="strict",
    )  # fmt: skip
    csrf = csrf_token(room.key, digest(key))
    return SessionResponse(name=user.name, role=Role(user.role), login=True, csrf=csrf, notice=NOTICE)


@anybody.get("/session/ways")
@open_to_all
async def ways_in(services: Services) -> LoginMethods:
    """Say how one logs in, for whoever has not yet."""
    return LoginMethods(
        login=services.room.login, provider=services.oidc is not None, version=__version__, notice=NOTICE
    )


@session_routes.get("/session/me")
def who_am_i(services: Services, user: CurrentUser) -> SessionResponse:
    """Say who the server takes you for, with the CSRF token of a session."""
    csrf = None if user.session is None else csrf_token(services.room.key, user.session)
    return SessionResponse(name=user.name, role=user.role, login=services.room.login, csrf=csrf, notice=NOTICE)


@session_routes.post("/session/end", status_code=204)
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
    departure = _provider(services).leave(_callback(services, request))
    answer = RedirectResponse(departure.address, 303)
    answer.set_cookie(
        OIDC_COOKIE, departure.cookie, max_age=MINUTES * 60, path=f"{API}/oidc",
        secure=services.room.settings.is_secure, httponly=True, samesite="lax",
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
    identity = provider.arrive(code, state, request.cookies.get(OIDC_COOKIE, ""), _callback(services, request))
    answer = RedirectResponse("/", 303)
    with services.room.database.writing() as session:
        _open_session(services, session, user_of(session, identity), answer)
    answer.delete_cookie(OIDC_COOKIE, path=f"{API}/oidc")
    return answer


def _provider(services: Services) -> Oidc:
    if services.oidc is None:
        raise Problem(404, "no_provider", "This server has no login provider; log in with a password.")
    return services.oidc


def _callback(services: Services, request: Request) -> str:
    base = services.room.settings.public_url.rstrip("/") or str(request.base_url).rstrip("/")
    return f"{base}{API}/oidc/callback"


@admin.get("/users")
def list_users(services: Services) -> tuple[UserResponse, ...]:
    """List everybody."""
    with services.room.database.reading() as session:
        return tuple(UserResponse.model_validate(row) for row in accounts.users(session))


@admin.post("/users", status_code=201)
def add_user(body: AddUser, services: Services, user: CurrentUser) -> UserResponse:
    """Add a user."""
    with services.room.database.writing() as session:
        row = accounts.add_user(session, body.name, body.role, body.password)
        services.room.store.record(session, user, "user.added", user=row.name, role=row.role)
        return UserResponse.model_validate(row)


@admin.patch("/users/{user}", responses=problem_responses(409))
def change_user(
    user: Annotated[str, Path(min_length=1, max_length=64, examples=["ada"], description="A user's name.")],
    body: ChangeUser,
    services: Services,
    caller: CurrentUser,
) -> UserResponse:
    """Change a user's role or password, or disable the account. The user is logged out everywhere."""
    password = None if body.password is None else hash_password(body.password)
    with services.room.database.writing() as session:
        row = accounts.user_row(session, user.replace("\0", ""))
        if row is None:
            raise not_found("user", user)
        changed = accounts.change(session, row, body.role, body.disabled, password)
        services.room.store.record(session, caller, "user.changed", **changed)
        # Checked while the log's end is locked: two admins who demote each other at the same moment take turns.
        if not accounts.keeps_an_admin(session, login=services.room.login):
            raise Problem(409, "last_admin", "That would leave nobody who may let others in.")
        return UserResponse.model_validate(row)


@routes.get("/tokens")
def list_tokens(
    services: Services, user: CurrentUser, everybody: bool = Query(False, description="For admins.")
) -> tuple[TokenResponse, ...]:
    """List one's tokens, without their secrets."""
    if everybody and not user.role.covers(Role.ADMIN):
        raise forbidden("Only an admin sees everybody's tokens.")
    with services.room.database.reading() as session:
        own = None if everybody else session.get_one(UserRow, user.id)
        return tuple(_token(row, name) for row, name in accounts.tokens(session, own))


@routes.post("/tokens", status_code=201)
def create_token(body: CreateToken, services: Services, user: CurrentUser) -> NewToken:
    """Make a token for a machine. It is shown this once; the server keeps only a hash of it."""
    if body.user not in (None, user.name) and not user.role.covers(Role.ADMIN):
        raise forbidden("Only an admin makes tokens for others.")
    if not user.role.covers(body.role):
        raise forbidden(f"You come as {user.role}, so your token cannot be {body.role}.")
    name = body.user or user.name
    with services.room.database.writing() as session:
        owner = accounts.user_row(session, name.replace("\0", ""))
        if owner is None:
            raise not_found("user", name)
        token = accounts.create_token(session, owner, body.name, body.role, body.days)
        session.flush()
        row = session.get_one(TokenRow, token.id)
        services.room.store.record(session, user, "token.created", token=row.id, user=owner.name, role=row.role)
        return NewToken(token=str(token), told=_token(row, owner.name))


@routes.delete("/tokens/{token}", status_code=204)
def revoke_token(
    token: Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=[ID], description="A token's id.")],
    services: Services,
    user: CurrentUser,
) -> None:
    """Revoke a token."""
    with services.room.database.writing() as session:
        row = session.get(TokenRow, token)
        if row is None or not (row.user_id == user.id or user.role.covers(Role.ADMIN)):
            raise not_found("token", token)
        accounts.revoke(session, token)
        services.room.store.record(session, user, "token.revoked", token=token)
