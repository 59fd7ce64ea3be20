"""Ask the server of this container whether it answers. The standard library suffices, so it takes no time."""

import json
import os
import ssl
import sys
import tomllib
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

SETTINGS = "MEDGRAPE_SETTINGS"
"""Environment variable that names the server's settings file."""


def request_for(settings: dict[str, object]) -> urllib.request.Request:
    """A question to this machine, by the name that the server goes by: it refuses any other."""
    scheme = "https" if settings.get("tls_certificate") else "http"
    address = f"{scheme}://127.0.0.1:{settings.get('port', 8000)}/api/v1/health"
    name = urlsplit(str(settings.get("public_url", ""))).hostname
    return urllib.request.Request(address, headers={"Host": name} if name else {})  # noqa: S310 (http or https)


def is_well(settings: dict[str, object]) -> bool:
    """Whether the server says that it is well; its certificate is for its public name, and is not looked at here."""
    trusting = ssl._create_unverified_context()  # noqa: S323 (loopback)
    try:
        with urllib.request.urlopen(request_for(settings), timeout=8, context=trusting) as answer:  # noqa: S310
            return bool(json.load(answer)["status"] == "ok")
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"{error}\n")
        return False


def main() -> int:
    """What the settings file says counts; without one, the defaults do."""
    file = Path(os.environ.get(SETTINGS, ""))
    settings = tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}
    return 0 if is_well(settings) else 1


if __name__ == "__main__":
    sys.exit(main())
