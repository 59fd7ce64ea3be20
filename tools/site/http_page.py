"""The server's addresses for people, from the description that it gives of itself to programs."""

import json
from collections import defaultdict
from typing import Any

from links import ROOT

SOURCE = ROOT / "ui" / "openapi.json"
PAGE, DESCRIPTION = "reference/http.md", "reference/openapi.json"
Told = dict[str, Any]
"""A part of the description, as JSON has it."""

HEAD = """# HTTP addresses

Made from [the server's own description](openapi.json), which programs read (OpenAPI {openapi}, medgrape {version}).
How to run the server, who may do what, and what goes wrong with which code stands in [The server](server.md). The
[reading room](../how-to/reading-room.md) uses these addresses and no others.

{description}
"""


def pages() -> dict[str, str]:
    """Page to Markdown: addresses by what they are about, then what is sent and told."""
    told = json.loads(SOURCE.read_text("utf-8"))
    by_tag: defaultdict[str, list[str]] = defaultdict(list)
    for address, methods in told["paths"].items():
        for method, one in methods.items():
            by_tag[(one.get("tags") or ["others"])[0]].append(_operation(method, address, one))
    head = HEAD.format(openapi=told["openapi"], **told["info"])
    sections = [f"## {tag.capitalize()}\n\n" + "\n\n".join(found) for tag, found in by_tag.items()]
    schemas = [_schema(name, one) for name, one in sorted(told["components"]["schemas"].items())]
    return {PAGE: "\n\n".join([head, *sections, "## What is sent and told", *schemas]) + "\n"}


def _operation(method: str, address: str, one: Told) -> str:
    parameters = [_field(p["name"], p, p["schema"], p.get("required", False)) for p in one.get("parameters", [])]
    sent = [f"Sent: {_body(one['requestBody'])}"] if "requestBody" in one else []
    told = [f"{status}: {_body(answer)}" for status, answer in one["responses"].items() if status.startswith("2")]
    refused = [status for status in one["responses"] if not status.startswith("2")]
    lines = [*sent, f"Answers {'; '.join(told)}. Refusals: {', '.join(refused)}."]
    heading = f"### `{method.upper()} {address}`"
    return "\n\n".join([heading, one.get("description", ""), *_table(parameters), *lines])


def _body(one: Told) -> str:
    """What a request or an answer holds: a link to its table, or its kind of file."""
    content = one.get("content", {})
    kinds = [_kind(form["schema"]) if "json" in name else f"`{name}`" for name, form in content.items()]
    return " or ".join(kinds) or "nothing"


def _schema(name: str, one: Told) -> str:
    needed = one.get("required", [])
    fields = [_field(field, told, told, field in needed) for field, told in one.get("properties", {}).items()]
    values = [f"One of {', '.join(f'`{value}`' for value in one['enum'])}."] if "enum" in one else []
    heading = f"### {name} {{ #{name.lower()} }}"
    return "\n\n".join([heading, one.get("description", ""), *values, *_table(fields)])


def _table(rows: list[str]) -> list[str]:
    return ["\n".join(["| name | what | kind |", "|---|---|---|", *rows])] if rows else []


def _field(name: str, told: Told, schema: Told, needed: bool) -> str:
    words = " ".join(told.get("description", "").split()).replace("|", "\\|")
    optional = "" if needed else ", may be left out"
    return f"| `{name}` | {words} | {_kind(schema)}{optional} |"


def _kind(schema: Told) -> str:
    """A schema in a few words, with a link where it has a table of its own."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"name to {_kind(schema['additionalProperties'])}"
    return str(schema.get("const", schema.get("type", "anything")))
