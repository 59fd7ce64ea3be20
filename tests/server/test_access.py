"""Access: every route requires its role, except the few that are open."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.routing import APIRoute
from reading_room import corners, drawn

from medgrape.server.accounts import BearerToken, Role, add_user, create_token, new_id, revoke, user_named
from medgrape.server.app import ROUTERS, all_routes, open_paths, page_files
from medgrape.server.jobs import DONE, RUNNING
from medgrape.server.services import RequireRole
from medgrape.server.storage.tables import JobRow, TokenRow

PAGE = set(page_files())
OPEN = {
    *PAGE,
    "/api/v1/openapi.json",
    "/api/v1/health",
    "/api/v1/ready",
    "/api/v1/session",
    "/api/v1/session/ways",
    "/api/v1/oidc/login",
    "/api/v1/oidc/callback",
}
BELOW = {Role.CURATOR: "rita", Role.ADMIN: "cora"}
LEFT = corners((5, 5, 40, 80))
CHANGES = [
    ("boxes", {"box": LEFT, "concept": None}),
    ("rejections", {"concept": "active_tb"}),
    ("corrections/0/withdraw", {}),
    ("corrections/0/redraw", {"box": LEFT, "concept": None}),
    ("undo", {}),
    ("redo", {}),
]


def doors(app):
    """Every method of every route, and the role that it takes."""
    for route in all_routes(app):
        for method in route.methods:
            yield method, route.path, {one.dependency.role for one in route.dependencies if _is_guard(one)}


def address(path):
    """A route's path with something that could be there in every gap."""
    return re.sub(
        r"\{(\w+)\}", lambda gap: {"concept": "active_tb", "exemplar": "0", "number": "0"}.get(gap[1], "0" * 16), path
    )


def test_every_route_is_checked(shared_room):
    app = shared_room.client.app
    walked = {(method.lower(), path) for method, path, _ in doors(app)}
    described = {(method, path) for path, methods in app.openapi()["paths"].items() for method in methods}
    assert walked - described == {*(("get", file) for file in PAGE), ("get", "/api/v1/openapi.json")}
    assert described <= walked
    assert len([route for route in app.routes if not isinstance(route, APIRoute)]) == len(ROUTERS)


def test_only_the_listed_routes_are_open(shared_room):
    app = shared_room.client.app
    assert open_paths(app) == OPEN
    assert {path for _, path, roles in doors(app) if not roles} == OPEN


def test_every_closed_route_answers_401_without_login(shared_room):
    for method, path, _ in doors(shared_room.client.app):
        answer = shared_room.client.request(method, address(path), follow_redirects=False)
        assert (answer.status_code == 401) == (path not in OPEN), f"{method} {path}"


def test_a_role_below_the_required_one_is_refused(shared_room):
    guarded = [(method, path, max(roles, key=list(Role).index)) for method, path, roles in _closed(shared_room)]
    higher = [(method, path, BELOW[role]) for method, path, role in guarded if role in BELOW]
    assert len(higher) >= 10
    for method, path, who in higher:
        answer = shared_room.client.request(
            method, address(path), headers={"Authorization": f"Bearer {shared_room.tokens[who]}"}
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), f"{method} {path}"


def test_an_unknown_path_answers_404_only_after_login(shared_room):
    for path in ("/nowhere", "/films/", "/films/x/y/z"):
        assert shared_room.get(None, path).status_code == 401
        assert shared_room.get("rita", path).status_code == 404
    assert shared_room.client.get("/../etc/passwd").status_code == 401


def test_a_reader_does_not_find_a_study_of_another_user(room):
    hers = room.study("rita")
    for path in ("", "/explanation", "/history", "/evidence.png", "/maps/active_tb.png", "/maps/active_tb.npy",
                 "/reading.json", "/reading.pdf", "/reading.dcm.zip"):  # fmt: skip
        assert room.get("rolf", f"/studies/{hers['id']}{path}").status_code == 404
    for path, body in [*CHANGES, ("check", {"box": LEFT, "concept": "active_tb"})]:
        assert room.post("rolf", f"/studies/{hers['id']}/{path}", json=body).status_code == 404
    assert room.get("rolf", "/studies").json() == []
    assert room.get("rita", f"/studies/{hers['id']}").json() == hers


@pytest.mark.parametrize("who", ["cora", "alma"])
def test_no_role_may_change_a_study_of_another_user(shared_room, who):
    hers = shared_room.study("rita")
    for path, body in CHANGES:
        assert shared_room.post(who, f"/studies/{hers['id']}/{path}", json=body).status_code == 403
    assert shared_room.get("rita", f"/studies/{hers['id']}").json() == hers


def test_a_reader_does_not_find_a_job_of_another_user(room):
    hers = _job(room, "rita", RUNNING)
    assert room.get("rolf", "/jobs").json() == []
    for method, path in (("GET", ""), ("GET", "/news"), ("POST", "/cancel")):
        assert room.ask("rolf", method, f"/jobs/{hers}{path}").status_code == 404
    assert room.get("cora", f"/jobs/{hers}").status_code == 200
    assert room.post("cora", f"/jobs/{hers}/cancel").status_code == 403
    assert room.get("rita", f"/jobs/{hers}").json()["state"] == RUNNING
    assert room.post("rita", f"/jobs/{hers}/cancel").status_code == 200
    assert room.post("rita", f"/jobs/{_job(room, 'rita', DONE)}/cancel").json()["code"] == "job_ended"


def test_only_an_admin_finds_a_token_of_another_user(room):
    made = room.post("rita", "/tokens", json={"name": "orthanc", "role": "reader"}).json()
    hers = made["told"]["id"]
    assert {one["user"] for one in room.get("rolf", "/tokens").json()} == {"rolf"}
    for who in ("rolf", "cora"):
        assert room.get(who, "/tokens?everybody=true").status_code == 403
        assert room.ask(who, "DELETE", f"/tokens/{hers}").status_code == 404
    assert _knows(room, made["token"])
    assert hers in [one["id"] for one in room.get("alma", "/tokens?everybody=true").json()]
    assert room.ask("alma", "DELETE", f"/tokens/{hers}").status_code == 204
    assert not _knows(room, made["token"])


def test_a_reader_cannot_create_tokens_for_others_or_with_a_higher_role(shared_room):
    for body in ({"role": "reader", "user": "rolf"}, {"role": "curator"}, {"role": "admin", "user": "alma"}):
        assert shared_room.post("rita", "/tokens", json={"name": "x"} | body).status_code == 403
    above = shared_room.post("alma", "/tokens", json={"name": "x", "role": "admin", "user": "rita"})
    assert (above.status_code, above.json()["code"]) == (422, "bad_input")


def test_a_reader_cannot_remove_a_film_of_another_user(shared_room):
    film = shared_room.upload("rolf", drawn(11)).json()["film"]["id"]
    assert shared_room.ask("rita", "DELETE", f"/films/{film}").status_code == 403
    assert shared_room.get("rita", f"/films/{film}").status_code == 200


def test_a_token_has_no_more_rights_than_its_role(shared_room):
    token = _token(shared_room, "alma", Role.READER)
    assert shared_room.get(None, "/session/me", headers=_bearer(token)).json()["role"] == "reader"
    for method, path in (("GET", "/users"), ("GET", "/log"), ("POST", "/log/export"), ("GET", "/metrics")):
        assert shared_room.ask(None, method, path, headers=_bearer(token)).status_code == 403
    asked = {"name": "more", "role": "admin"}
    assert shared_room.post(None, "/tokens", json=asked, headers=_bearer(token)).status_code == 403


def test_a_token_has_no_more_rights_than_its_user_has_now(room):
    token = _token(room, "cora", Role.CURATOR)
    assert room.ask("alma", "PATCH", "/users/cora", json={"role": "reader"}).status_code == 200
    assert room.get(None, "/session/me", headers=_bearer(token)).json()["role"] == "reader"


def test_a_revoked_or_expired_token_and_one_of_a_disabled_user_are_refused(room):
    with room.room.database.writing() as session:
        newcomer = add_user(session, "nora", Role.READER, None)
        revoked, expired, disabled, good = (create_token(session, newcomer, "x", Role.READER, 1) for _ in range(4))
        session.flush()
        revoke(session, revoked.id)
        session.get_one(TokenRow, expired.id).expires_at = datetime.now(UTC) - timedelta(seconds=1)
    assert [_knows(room, token) for token in (revoked, expired, disabled, good)] == [False, False, True, True]
    assert room.ask("alma", "PATCH", "/users/nora", json={"disabled": True}).status_code == 200
    assert not _knows(room, disabled)


def test_a_malformed_token_is_refused(shared_room):
    real = shared_room.tokens["rita"]
    number, secret = real.split("_", 2)[1:]
    forms = ["", "mg", "mg__", f"mg_{number}_", f"mg_{number}", f"xx_{number}_{secret}", real[:-1], real + "x", "\x00",
             f"mg_{number}_{'0' * 64}", str(BearerToken.new()), "é" * 20, f"mg_{number}_{secret.swapcase()}",
             f"mg_{number.upper()}' OR 1=1 --_x", "x" * 9000]  # fmt: skip
    for form in forms:
        assert not _knows(shared_room, form), form
    for scheme in ("Basic", "Token", ""):
        headers = {"Authorization": f"{scheme} {real}"}
        assert shared_room.get(None, "/session/me", headers=headers).status_code == 401
    assert shared_room.get(None, "/session/me", headers={"Authorization": f"bEARER  {real}"}).status_code == 200


def _is_guard(dependency):
    return isinstance(dependency.dependency, RequireRole)


def _closed(room):
    return [door for door in doors(room.client.app) if door[1] not in OPEN]


def _bearer(token):
    return {"Authorization": f"Bearer {token}".encode()}


def _knows(room, token):
    answer = room.get(None, "/session/me", headers=_bearer(token))
    assert answer.status_code in (200, 401)
    return answer.status_code == 200


def _token(room, who, role):
    with room.room.database.writing() as session:
        return create_token(session, user_named(session, who), "test", role, 1)


def _job(room, owner, state):
    now = datetime.now(UTC)
    with room.room.database.writing() as session:
        row = JobRow(
            id=new_id(), kind="concept.teach", owner_id=user_named(session, owner).id, state=state, progress=0.5,
            news="", result=None, created_at=now, beat_at=now, cancelled=False,
        )  # fmt: skip
        session.add(row)
    return row.id
