"""Write ui/openapi.json, from which the types of the page are generated: python tools/openapi.py."""

import json
import sys
from pathlib import Path

from medgrape.server.app import create_app

PLACE = Path(__file__).resolve().parents[1] / "ui" / "openapi.json"


def describe() -> str:
    """Return the OpenAPI document of the server."""
    return json.dumps(create_app(None).openapi(), indent=1, sort_keys=True) + "\n"  # type: ignore[arg-type]


if __name__ == "__main__":
    PLACE.write_text(describe(), "utf-8")
    sys.stderr.write(f"{PLACE}\n")
