"""Write ui/openapi.json, from which the page's types are made: python tools/openapi.py."""

import json
import sys
from pathlib import Path

from medgrape.server.app import create_app

PLACE = Path(__file__).resolve().parents[1] / "ui" / "openapi.json"


def described() -> str:
    """The document as the server gives it; no room is needed to describe the addresses."""
    return json.dumps(create_app(None).openapi(), indent=1, sort_keys=True) + "\n"  # type: ignore[arg-type]


if __name__ == "__main__":
    PLACE.write_text(described(), "utf-8")
    sys.stderr.write(f"{PLACE}\n")
