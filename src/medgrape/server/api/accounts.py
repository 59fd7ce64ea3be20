"""Login by password or OpenID Connect, users, and bearer tokens."""

from typing import Annotated

from fastapi import Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BeforeValidator, Field
from sqlalchemy import delete
from sqlalchemy.orm import Session

from medgrape import __version__
from medgrape.explain.words import NOTICE
from medgrape.server import accounts
from medgrape.server.accounts import Role, csrf_token, digest, hash_password, verify_password
from medgrape.server.api.common import HASH, ID, LINE, Identifier, RequestModel, ResponseModel, When
from medgrape.server.errors import Problem, forbidden, not_found
from medgrape.server.middleware import cookie_name
from medgrape.server.oidc import MINUTES, Oidc, user_of
from medgrape.server.services import CurrentUser, Services, open_to_all, problem_responses, router
from medgrape.server.settings import API
from medgrape.server.storage.tables import SessionRow, TokenRow, UserRow


class LogIn(RequestModel, json_schema_extra={"examples": [{"name": "ada", "password": "correct horse battery"}]}):
    """Name and password."""

    name: str = Field(min_length=1, max_length=64)
    password: str = Field(min_length=1, max_length=256)


class SessionResponse(ResponseModel):
    """The user of this session or token."""

    name: str = Field(examples=["ada"])
    role: Role
    login: bool = Field(description="False on a server without login.")
    csrf: str | None = Field(description="To send as X-CSRF-Token with every change.", examples=[HASH])
    notice: str = Field(examples=["Research software, not a medical device."])


class LoginMethods(ResponseModel):
    """The ways to log in."""

    login: bool = Field(description="False on a server without login.")
    provider: bool = Field(description="Whether GET /oidc/login redirects to a login provider.")
    version: str = Field(description="Version of medgrape.", examples=["0.1.0"])
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


_ADA = {"name": "ada", "role": "reader", "password": "correct horse battery"}


class AddUser(RequestModel, json_schema_extra={"examples": [_ADA]}):
    """A new user."""

    name: str = Field(min_length=1, max_length=63)
    role: Role
    password: str | None = Field(default=None, max_length=256)


class ChangeUser(RequestModel, json_schema_extra={"examples": [{"role": "curator"}]}):
    """New role, state or password; absent fields stay as they are."""

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
    """A new token, for yourself or, by an admin, for another user."""

    name: str = Field(min_length=1, max_length=64, pattern=LINE)
    role: Role
    days: float | None = Field(default=90, gt=0, le=3650, description="Lifetime in days; null: no end.")
    user: str | None = Field(default=None, min_length=1, max_length=64)


class NewToken(ResponseModel):
    """A token with its secret, which is shown only once."""

    token: str = Field(examples=["mg_5f2b8c0a9d3e4f17_..."])
    told: TokenResponse


anybody, session_routes = router("session", None), router("session", Role.READER)
routes, admin = router("people", Role.READER), router("people", Role.ADMIN)
OIDC_COOKIE = "medgrape-login"


@anybody.post("/session")
@open_to_all
def log_in(body: LogIn, services: Services, response: Response) -> SessionResponse:
    """Log in with name and password. The response sets a cookie and has its CSRF token."""
    room = services.room
    if not room.login:
        raise Problem(400, "no_login", "This server has no login; use it without.")
    with room.database.reading() as session:
        user = accounts.user_row(session, body.name)
    correct = verify_password(None if user is None else user.password, body.password)
    with room.database.writing() as session:
        user = None if user is None else session.get(UserRow, user.id, with_for_update=True)
        if user is not None:
            if accounts.admit(user, correct=correct):
                return _open_session(services, session, user, response)
            room.store.record(session, user.name, "login.failed")
    raise Problem(401, "login_refused", "Name or password is wrong, or too many attempts; wait, then try again.")


def _open_session(services: Services, session: Session, user: UserRow, response: Response) -> SessionResponse:
    room, secure, hours = services.room, services.room.settings.is_secure, services.room.settings.session_hours
    key = accounts.open_session(session, user, hours)
    room.store.record(session, user.name, "login")
    response.set_cookie(
        cookie_name(secure=secure), key, round(hours * 3600), path="/", secure=secure, httponly=True, samesite="strict"
    )
    csrf = csrf_token(room.key, digest(key))
    return SessionResponse(name=user.name, role=Role(user.role), login=True, csrf=csrf, notice=NOTICE)


@anybody.get("/session/ways")
@open_to_all
async def ways_in(services: Services) -> LoginMethods:
    """Get the ways to log in."""
    return LoginMethods(
        login=services.room.login, provider=services.oidc is not None, version=__version__, notice=NOTICE
    )


@session_routes.get("/session/me")
def who_am_i(services: Services, user: CurrentUser) -> SessionResponse:
    """Get the user of this session or token, and the CSRF token of a session."""
    csrf = None if user.session is None else csrf_token(services.room.key, user.session)
    return SessionResponse(name=user.name, role=user.role, login=services.room.login, csrf=csrf, notice=NOTICE)


@session_routes.post("/session/end", status_code=204)
def log_out(services: Services, user: CurrentUser, response: Response) -> None:
    """Log out. A bearer token stays valid until it is revoked."""
    if user.session is None:
        return
    with services.room.database.writing() as session:
        session.execute(delete(SessionRow).where(SessionRow.key == user.session))
        services.room.store.record(session, user, "logout")
    response.delete_cookie(cookie_name(secure=services.room.settings.is_secure), path="/")


@anybody.get("/oidc/login", response_class=RedirectResponse, status_code=303)
@open_to_all
def go_to_provider(services: Services, request: Request) -> RedirectResponse:
    """Redirect to the page of the login provider."""
    address, cookie = _provider(services).begin(_callback(services, request))
    response = RedirectResponse(address, 303)
    response.set_cookie(
        OIDC_COOKIE, cookie, max_age=MINUTES * 60, path=f"{API}/oidc",
        secure=services.room.settings.is_secure, httponly=True, samesite="lax",
    )  # fmt: skip
    return response


@anybody.get("/oidc/callback", response_class=RedirectResponse, status_code=303)
@open_to_all
def come_back(
    services: Services, request: Request,
    code: Annotated[str | None, Query(min_length=1, max_length=4096, examples=["SplxlOBeZQQYbYS6WxSbIA"])] = None,
    state: Annotated[str, Query(max_length=256, examples=["af0ifjsldkj"])] = "",
) -> RedirectResponse:  # fmt: skip
    """Finish the login after the redirect from the login provider; without a code, the provider refused it."""
    provider = _provider(services)
    if code is None:
        raise Problem(401, "login_refused", "The login provider refused the login; begin again.")
    identity = provider.finish(code, state, request.cookies.get(OIDC_COOKIE, ""), _callback(services, request))
    response = RedirectResponse("/", 303)
    with services.room.database.writing() as session:
        _open_session(services, session, user_of(session, identity), response)
    response.delete_cookie(OIDC_COOKIE, path=f"{API}/oidc")
    return response


def _provider(services: Services) -> Oidc:
    if services.oidc is None:
        raise Problem(404, "no_provider", "This server has no login provider; log in with a password.")
    return services.oidc


def _callback(services: Services, request: Request) -> str:
    base = services.room.settings.public_url.rstrip("/") or str(request.base_url).rstrip("/")
    return f"{base}{API}/oidc/callback"


@admin.get("/users")
def list_users(services: Services) -> tuple[UserResponse, ...]:
    """List all users."""
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
    body: ChangeUser, services: Services, caller: CurrentUser,
) -> UserResponse:  # fmt: skip
    """Change a user's role or password, or disable the account. The user is logged out everywhere."""
    password = None if body.password is None else hash_password(body.password)
    with services.room.database.writing() as session:
        row = accounts.user_row(session, user)
        if row is None:
            raise not_found("user", user)
        changed = accounts.change(session, row, body.role, body.disabled, password)
        services.room.store.record(session, caller, "user.changed", **changed)
        # Checked while the log is locked, so that two admins cannot demote each other at the same moment.
        if not accounts.has_admin(session, login=services.room.login):
            raise Problem(409, "last_admin", "This would leave the server without an admin.")
        return UserResponse.model_validate(row)


@routes.get("/tokens")
def list_tokens(
    services: Services, user: CurrentUser, everybody: bool = Query(False, description="List all tokens (admins only).")
) -> tuple[TokenResponse, ...]:
    """List your tokens, without their secrets."""
    if everybody and not user.role.covers(Role.ADMIN):
        raise forbidden("Only admins may list all tokens.")
    with services.room.database.reading() as session:
        own = None if everybody else session.get_one(UserRow, user.id)
        return tuple(TokenResponse(**row.columns(), user=name) for row, name in accounts.tokens(session, own))


@routes.post("/tokens", status_code=201)
def create_token(body: CreateToken, services: Services, user: CurrentUser) -> NewToken:
    """Create a token for a program. It is shown only once; the server stores a hash of it."""
    if body.user not in (None, user.name) and not user.role.covers(Role.ADMIN):
        raise forbidden("Only admins may create tokens for other users.")
    if not user.role.covers(body.role):
        raise forbidden(f"Your role is {user.role}, so your token cannot have the role {body.role}.")
    name = body.user or user.name
    with services.room.database.writing() as session:
        owner = accounts.user_row(session, name)
        if owner is None:
            raise not_found("user", name)
        token = accounts.create_token(session, owner, body.name, body.role, body.days)
        session.flush()
        row = session.get_one(TokenRow, token.id)
        services.room.store.record(session, user, "token.created", token=row.id, user=owner.name, role=row.role)
        return NewToken(token=str(token), told=TokenResponse(**row.columns(), user=owner.name))


@routes.delete("/tokens/{token}", status_code=204)
def revoke_token(
    token: Annotated[str, Path(pattern="^[0-9a-f]{16}$", examples=[ID], description="A token's id.")],
    services: Services, user: CurrentUser,
) -> None:  # fmt: skip
    """Revoke a token."""
    with services.room.database.writing() as session:
        row = session.get(TokenRow, token)
        if row is None or not (row.user_id == user.id or user.role.covers(Role.ADMIN)):
            raise not_found("token", token)
        accounts.revoke(session, token)
        services.room.store.record(session, user, "token.revoked", token=token)
