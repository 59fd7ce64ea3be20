"""Path of the browser, and a record of its errors and of requests to other servers."""

import os
import re
import shutil
from dataclasses import dataclass, field

from playwright.sync_api import BrowserContext, ConsoleMessage, Request, WebError

OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
TIMEOUT = 20_000
"""Milliseconds; the machine may be busy."""


def chromium() -> str | None:
    """Path of the browser."""
    path = os.environ.get("MEDGRAPE_CHROMIUM")
    return path or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass
class Watch:
    """Records errors of the page, violations of its content policy, and requests to other servers."""

    home: str
    errors: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def over(self, context: BrowserContext) -> None:
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)

    def expects(self, pattern: str) -> None:
        """Allow errors of this pattern."""
        self.expected.append(pattern)

    @property
    def unexpected(self) -> list[str]:
        return [error for error in self.errors if not any(re.search(pattern, error) for pattern in self.expected)]

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location['url']})")

    def _on_error(self, error: WebError) -> None:
        self.errors.append(f"uncaught: {error.error}")

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.home}/", f"blob:{self.home}/", "data:")):
            self.errors.append(f"request to another server: {request.url}")
