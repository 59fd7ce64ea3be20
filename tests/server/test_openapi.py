"""The OpenAPI document is complete, and responses follow it."""

from collections import Counter

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from reading_room import corners, drawn
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.python.asgi import ASGIClient
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

# The server's own threads draw random numbers while requests are generated, for which a strategy is then blamed.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
TELLING = {"examples", "default", "enum", "const", "pattern", "$ref", "contentMediaType"}


@pytest.fixture(scope="module")
def described(shared_room):
    """The OpenAPI document, as anybody gets it."""
    answer = shared_room.get(None, "/openapi.json")
    assert answer.status_code == 200
    return answer.json()


def test_every_operation_says_what_it_does_and_what_may_go_wrong(described):
    for name, operation in operations(described):
        assert operation["summary"], name
        assert operation["description"].endswith((".", "?")), name
        assert len(operation["tags"]) == 1, name
        statuses = set(operation["responses"])
        assert statuses & {"200", "201", "202", "204", "303"}, name
        assert {"401", "403", "404", "413", "422", "429", "503"} <= statuses, name
        for status in statuses:
            assert operation["responses"][status]["description"], name
            content = operation["responses"][status].get("content", {})
            assert (list(content) == ["application/problem+json"]) == (status >= "400"), f"{name} {status}"


def test_every_operation_has_a_unique_name(described):
    names = Counter(operation["operationId"] for _, operation in operations(described))
    assert names.most_common(1)[0][1] == 1


def test_every_request_body_has_an_example_that_fits(described):
    bodies = [(name, body) for name, operation in operations(described) for body in json_bodies(operation)]
    assert len(bodies) >= 12
    for name, body in bodies:
        schema = resolved(described, body)
        fits = jsonschema_rs.validator_for(body | {"components": described["components"]})
        assert schema["examples"], name
        assert [example for example in schema["examples"] if not fits.is_valid(example)] == [], name


def test_every_parameter_has_an_example_or_enum(described):
    for name, operation in operations(described):
        for parameter in operation.get("parameters", []):
            assert is_telling(parameter["schema"]), f"{name}: {parameter['name']}"


def test_every_property_of_a_response_has_an_example_or_type(described):
    for name, schema in described["components"]["schemas"].items():
        for part, subschema in schema.get("properties", {}).items():
            assert "examples" in schema or is_telling(subschema), f"{name}.{part}"


def test_the_document_lists_login_schemes_and_open_routes(described):
    assert set(described["components"]["securitySchemes"]) == {"token", "session"}
    assert described["security"] == [{"token": []}, {"session": []}]
    free = {name for name, operation in operations(described) if operation.get("security") == []}
    assert {name.split(" ")[1].removeprefix("/api/v1") for name in free} == {
        "/session", "/session/ways", "/oidc/login", "/oidc/callback", "/health", "/ready",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("database", "times", "least"),
    [
        ("sqlite", 1, 100),
        pytest.param("postgresql", 3, 300, marks=pytest.mark.slow),
        pytest.param("sqlite", 17, 2000, marks=pytest.mark.slow),
    ],
    indirect=["database"],
)
def test_thousands_of_random_requests_are_answered_as_documented(room, times, least, monkeypatch):
    monkeypatch.setattr("medgrape.server.api.concepts.teach", lambda *_: {})  # a lesson would outlast the test
    load_all_checks()
    asker = Asker(room, times)
    for found in schemathesis.openapi.from_dict(room.client.app.openapi()).get_all_operations():
        asker.ask_all(found.ok())
    assert asker.statuses.total() >= least
    assert max(asker.statuses) < 500
    assert min(asker.statuses[status] for status in (200, 404, 422)) >= least / 10
    assert {201, 204, 400, 401, 409} <= set(asker.statuses)


def test_the_same_curation_twice_gives_the_same_model(room):
    address = f"/models/{room.model_in_use()}/concepts/active_tb/discard"
    first, second = (room.post("cora", address, json={"prototypes": [0]}) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    version = first.json()["version"]
    assert room.ask("cora", "DELETE", f"/models/{version}").status_code == 204
    assert room.post("cora", address, json={"prototypes": [0]}).json()["version"] == version
    assert room.get("cora", f"/models/{version}/concepts").status_code == 200
    assert len(list(room.room.folder.models.iterdir())) == 1


class Asker:
    """An admin who asks whatever the description allows, and whatever it does not."""

    def __init__(self, room, times):
        self._room, self._times = room, times
        self._session = ASGIClient(room.client.app, "http://127.0.0.1")
        self._headers = {"Authorization": f"Bearer {room.tokens['alma']}"}
        study = room.study("alma")
        self._known = {
            "film": study["film"], "study": study["id"], "model": study["model"], "one": study["model"],
            "other": study["model"], "concept": "active_tb", "exemplar": 0, "user": "rolf", "file": drawn(1),
            "box": corners((5, 5, 40, 80)), "number": 0,
        }  # fmt: skip
        self.statuses = Counter()

    def ask_all(self, operation):
        """Ask one operation of things that are nowhere, of things that are there, and wrongly."""
        takes = [*operation.path_parameters, *operation.query, *operation.body]
        known = {name: value for name, value in self._known.items() if name in operation.path_parameters}
        if operation.method == "delete" and "film" in known:
            known["film"] = self._room.film("alma", seed=2)
        self._ask_often(operation.as_strategy(GenerationMode.POSITIVE), self._times if takes else 2)
        if takes:
            there = operation.as_strategy(GenerationMode.POSITIVE, path_parameters=known or None)
            self._ask_often(st.one_of(there, there.map(self._about_known)), self._times)
            self._ask_often(operation.as_strategy(GenerationMode.NEGATIVE), self._times)

    def _about_known(self, case):
        """The same request, but about what is really there."""
        case.query = self._with_known(case.query)
        case.body = self._with_known(case.body)
        return case

    def _with_known(self, asked):
        if not isinstance(asked, dict):
            return asked
        return {name: self._known.get(name, self._with_known(value)) for name, value in asked.items()}

    def _ask_often(self, cases, times):
        @settings(
            max_examples=times, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=cases)
        def asked(case):
            answer = case.call_and_validate(
                base_url="http://127.0.0.1", session=self._session, headers=self._headers, app=self._room.client.app,
                checks=CHECKS, allow_redirects=False,
            )  # fmt: skip
            self.statuses[answer.status_code] += 1

        asked()


def operations(described):
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def json_bodies(operation):
    content = operation.get("requestBody", {}).get("content", {})
    return [body["schema"] for media, body in content.items() if media == "application/json"]


def resolved(described, schema):
    return described["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]


def is_telling(schema):
    """Whether a schema shows what to expect: by an example or a choice, or in each of its parts."""
    if TELLING & set(schema) or schema.get("type") in ("boolean", "null"):
        return True
    parts = [
        *schema.get("anyOf", []),
        *schema.get("prefixItems", []),
        *([schema["items"]] if "items" in schema else []),
    ]
    return bool(parts) and all(is_telling(part) for part in parts)
