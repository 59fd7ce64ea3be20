"""Create the passwords that compose.yaml reads from deploy/secrets/: python tools/compose_secrets.py."""

import json
import secrets
import sys
from pathlib import Path

PLACE = Path(__file__).resolve().parents[1] / "deploy" / "secrets"
USER = "medgrape"
"""User name in the database and in Orthanc."""


def contents() -> dict[str, str]:
    """Return new passwords and the settings with them, without characters that URLs escape."""
    database, orthanc = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    settings = [
        "# How the reading room of compose.yaml runs; every key is in docs/reference/server.md.",
        'host = "0.0.0.0"',
        "port = 8000",
        f'database = "postgresql://{USER}:{database}@database/{USER}"',
    ]
    return {
        "serve.toml": "\n".join(settings) + "\n",
        "database_password": database,
        "orthanc.json": json.dumps({"RegisteredUsers": {USER: orthanc}}, indent=1) + "\n",
        "orthanc_password": orthanc,
    }


def write(place: Path) -> None:
    """Write the files, once. Only the owner may open the folder; the users inside containers must read the files."""
    if place.exists():
        raise SystemExit(f"{place} already exists and databases use its passwords, so it is not changed.")
    place.mkdir(mode=0o700, parents=True)
    for name, text in contents().items():
        file = place / name
        file.write_text(text, "utf-8")
        file.chmod(0o644)


if __name__ == "__main__":
    write(PLACE)
    sys.stderr.write(f"{PLACE}\n")
