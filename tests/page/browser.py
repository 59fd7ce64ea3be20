"""A browser that notes whatever goes wrong in it, and whatever leaves the house."""

import os
import re
import shutil
from dataclasses import dataclass, field

from playwright.sync_api import BrowserContext, ConsoleMessage, Request, WebError

PLAIN = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE = 20_000
"""Milliseconds that anything may take on a machine with other work to do."""


def chromium() -> str | None:
    """Where the browser is."""
    named = os.environ.get("MEDGRAPE_CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass
class Watch:
    """Errors of the page, breaches of its content policy, and requests to anybody but the server."""

    home: str
    complaints: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def over(self, context: BrowserContext) -> None:
        context.on("console", self._heard)
        context.on("weberror", self._broke)
        context.on("request", self._asked)

    def expects(self, pattern: str) -> None:
        """Say that this test makes the browser complain so."""
        self.expected.append(pattern)

    @property
    def unexpected(self) -> list[str]:
        return [one for one in self.complaints if not any(re.search(pattern, one) for pattern in self.expected)]

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location['url']})")

    def _broke(self, error: WebError) -> None:
        self.complaints.append(f"uncaught: {error.error}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self.home}/", f"blob:{self.home}/", "data:")):
            self.complaints.append(f"asked elsewhere: {request.url}")
