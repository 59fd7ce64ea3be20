"""Error responses (RFC 9457): a status, a code for programs, and a sentence for people.

They contain no paths and no tracebacks.
"""

import errno
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import Counter
from sqlalchemy.exc import IntegrityError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from medgrape.errors import UserError
from medgrape.server.decoder_pool import DecodersBusyError, FilmRefusedError
from medgrape.server.room import logger
from medgrape.server.storage.database import DATABASE_ERRORS, error_line

_FOLDERS = re.compile(r"(?<![:/\w])/(?:[^\s/:'\"]+/)+")
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CODES = {404: "not_found", 405: "method_not_allowed", 408: "too_slow", 413: "too_large", 400: "bad_request"}
_FILMS_REFUSED = Counter("medgrape_films_refused", "Uploads refused as unreadable films.")


class Problem(Exception):  # noqa: N818 (RFC 9457's name for it)
    """An error for the caller; ``extra`` becomes further members of the response."""

    def __init__(self, status: int, code: str, detail: str, **extra: Any) -> None:  # noqa: ANN401 (plain data)
        super().__init__(detail)
        self.status, self.code, self.detail, self.extra = status, code, detail, extra

    def response(self, headers: Mapping[str, str] | None = None) -> JSONResponse:
        """Return the response with additional ``headers``, such as Allow."""
        headers = dict(headers or {})
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.status in (429, 503):
            headers["Retry-After"] = str(max(math.ceil(self.extra.get("retry_after", 5)), 1))
        body = {"type": "about:blank", "status": self.status, "code": self.code, "detail": self.detail, **self.extra}
        return JSONResponse(body, self.status, headers, media_type="application/problem+json")


def not_found(what: str, name: str) -> Problem:
    """Return the error for something that does not exist or that the caller may not see."""
    return Problem(404, "not_found", f"There is no {what} {name!r}.")


def forbidden(detail: str) -> Problem:
    """Return the error for something that the caller's role does not allow."""
    return Problem(403, "forbidden", detail)


def without_paths(sentence: str) -> str:
    """Remove folders of this machine from an error message."""
    return _FOLDERS.sub("", sentence)


def error_response(error: Exception) -> JSONResponse:
    """Return the response to any exception."""
    for kind, problem_of in _PROBLEMS:
        if isinstance(error, kind):
            return problem_of(error).response(getattr(error, "headers", None))
    logger.error("internal error", exc_info=error)
    return Problem(500, "fault", "Internal error in medgrape; the server's log has the details.").response()


def install(app: FastAPI) -> None:
    """Handle every error of the application with ``error_response``."""

    async def answer(_request: Request, error: Exception) -> JSONResponse:
        return error_response(error)

    for kind in (*(kind for kind, _ in _PROBLEMS), Exception):
        app.add_exception_handler(kind, answer)


def _http(error: HTTPException) -> Problem:
    code = _CODES.get(error.status_code, "refused")
    detail = "There is nothing here" if code == "not_found" else str(error.detail).rstrip(".")
    return Problem(error.status_code, code, f"{detail}.")


def _invalid(error: RequestValidationError) -> Problem:
    """List the invalid fields, without the values sent and without the names of unknown fields."""
    faults = []
    for fault in error.errors():
        place = fault["loc"][:-1] if fault["type"] == "extra_forbidden" else fault["loc"]
        faults.append({"where": [str(part) for part in place], "why": fault["msg"]})
    detail = f"The request is invalid: {'.'.join(faults[0]['where'])}: {faults[0]['why']}."
    return Problem(422, "invalid_request", detail, faults=faults[:20])


def _film_refused(error: FilmRefusedError) -> Problem:
    _FILMS_REFUSED.inc()
    return Problem(422, "film_refused", str(error))


def _database(error: Exception) -> Problem:
    logger.error("the database: %s", error_line(error))
    detail = "The database does not answer, or its disk is full. Check whether the change was made, then try again."
    return Problem(503, "database_unavailable", detail)


def _file(error: OSError) -> Problem:
    if error.errno in _DISK_FULL:
        logger.error("the disk is full")
        return Problem(503, "disk_full", "The server's disk is full; nothing was changed. Make room, then try again.")
    logger.error("a file cannot be used", exc_info=error)
    return Problem(503, "file_unavailable", "The server cannot use one of its files; nothing was changed.")


_BUSY = "Too many films are being decoded. Nothing was changed; try again in a moment."
# Subclasses before their base classes.
_PROBLEMS: tuple[tuple[type[Exception], Callable[[Any], Problem]], ...] = (
    (Problem, lambda problem: problem),
    (RequestValidationError, _invalid),
    (HTTPException, _http),
    (FilmRefusedError, _film_refused),
    (UserError, lambda error: Problem(422, "bad_input", without_paths(str(error)))),
    (DecodersBusyError, lambda _: Problem(503, "busy", _BUSY)),
    (IntegrityError, lambda _: Problem(409, "conflict", "Another user was faster; nothing was changed. Look again.")),
    *((kind, _database) for kind in DATABASE_ERRORS),
    (TimeoutError, lambda _: Problem(503, "busy", "The server is too busy; try again in a moment.")),
    (OSError, _file),
)
