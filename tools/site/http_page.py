"""Generates the page of HTTP addresses from the OpenAPI document of the server."""

import json
from collections import defaultdict
from typing import Any

from links import ROOT

SOURCE = ROOT / "ui" / "openapi.json"
PREFIX, PAGE, DESCRIPTION = "/api/v1", "reference/http.md", "reference/openapi.json"
Node = dict[str, Any]
"""A part of the OpenAPI document."""

HEAD = """# HTTP addresses

Generated from [the OpenAPI document of the server](openapi.json) (OpenAPI {openapi}, medgrape {version}). [The
server](server.md) describes settings, roles and error codes. The [reading room](../how-to/reading-room.md) uses only
these addresses.

All addresses begin with `{prefix}`.

{description}
"""


def pages() -> dict[str, str]:
    """Return the Markdown of the page: addresses by tag, then the schemas."""
    document = json.loads(SOURCE.read_text("utf-8"))
    by_tag: defaultdict[str, list[str]] = defaultdict(list)
    for address, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag[(operation.get("tags") or ["others"])[0]].append(_operation(method, address, operation))
    head = HEAD.format(openapi=document["openapi"], prefix=PREFIX, **document["info"])
    sections = [f"## {tag.capitalize()}\n\n" + "\n\n".join(operations) for tag, operations in by_tag.items()]
    schemas = [_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    return {PAGE: "\n\n".join([head, *sections, "## Requests and responses", *schemas]) + "\n"}


def _operation(method: str, address: str, operation: Node) -> str:
    parameters = [_field(p["name"], p, p["schema"], p.get("required", False)) for p in operation.get("parameters", [])]
    request = [f"Request: {_body(operation['requestBody'])}"] if "requestBody" in operation else []
    responses = operation["responses"].items()
    success = [f"{status}: {_body(response)}" for status, response in responses if status.startswith("2")]
    errors = [status for status, _ in responses if not status.startswith("2")]
    lines = [*request, f"Responses: {'; '.join(success)}. Errors: {', '.join(errors)}."]
    heading = f"### `{method.upper()} {address.removeprefix(PREFIX)}`"
    return "\n\n".join([heading, operation.get("description", ""), *_table(parameters), *lines])


def _body(body: Node) -> str:
    """Return the content of a request or response: a link to its schema, or its media type."""
    content = body.get("content", {})
    types = [_type(form["schema"]) if "json" in name else f"`{name}`" for name, form in content.items()]
    return " or ".join(types) or "nothing"


def _schema(name: str, schema: Node) -> str:
    required = schema.get("required", [])
    fields = [_field(field, node, node, field in required) for field, node in schema.get("properties", {}).items()]
    values = [f"One of {', '.join(f'`{value}`' for value in schema['enum'])}."] if "enum" in schema else []
    heading = f"### {name} {{ #{name.lower()} }}"
    return "\n\n".join([heading, schema.get("description", ""), *values, *_table(fields)])


def _table(rows: list[str]) -> list[str]:
    return ["\n".join(["| name | description | type |", "|---|---|---|", *rows])] if rows else []


def _field(name: str, node: Node, schema: Node, required: bool) -> str:
    words = " ".join(node.get("description", "").split()).replace("|", "\\|")
    optional = "" if required else ", optional"
    return f"| `{name}` | {words} | {_type(schema)}{optional} |"


def _type(schema: Node) -> str:
    """Describe a schema in a few words, with a link if it has its own table."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"name to {_type(schema['additionalProperties'])}"
    return str(schema.get("const", schema.get("type", "anything")))
