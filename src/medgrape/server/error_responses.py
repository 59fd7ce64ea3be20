"""Whatever goes wrong becomes an answer that says what to do, and nothing about the machine."""

import errno
import math
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import IntegrityError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from medgrape.errors import UserError
from medgrape.server import metrics
from medgrape.server.inference.decoder_pool import DecodersBusyError, FilmRefusedError
from medgrape.server.problems import Problem, without_paths
from medgrape.server.room_folder import logger
from medgrape.server.storage.database import DATABASE_ERRORS, what_is_wrong

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CODES = {404: "not_found", 405: "method_not_allowed", 408: "too_slow", 413: "too_large", 400: "bad_request"}


def told(problem: Problem, more: Mapping[str, str] | None = None) -> JSONResponse:
    """A problem as a response, with ``more`` headers such as the methods that an address has."""
    headers = dict(more or {})
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.status in (429, 503):
        headers["Retry-After"] = str(max(math.ceil(problem.more.get("retry_after", 5)), 1))
    return JSONResponse(problem.to_json(), problem.status, headers, media_type="application/problem+json")


def answer_to(error: Exception) -> JSONResponse:
    """What to say to any error."""
    for kind, meaning in _MEANINGS:
        if isinstance(error, kind):
            return told(meaning(error), getattr(error, "headers", None))
    logger.error("a fault", exc_info=error)
    return told(Problem(500, "fault", "This is a fault in medgrape; whoever runs the server finds it in the log."))


def install(app: FastAPI) -> None:
    """Let the application answer so."""

    async def answer(_request: Request, error: Exception) -> JSONResponse:
        return answer_to(error)

    for kind in (*(kind for kind, _ in _MEANINGS), Exception):
        app.add_exception_handler(kind, answer)


def _itself(error: Any) -> Problem:  # noqa: ANN401
    return error  # type: ignore[no-any-return]


def _http(error: Any) -> Problem:  # noqa: ANN401
    code = _CODES.get(error.status_code, "refused")
    detail = "There is nothing here" if code == "not_found" else str(error.detail).rstrip(".")
    return Problem(error.status_code, code, f"{detail}.")


def _invalid(error: Any) -> Problem:  # noqa: ANN401
    """Where it is wrong and why; what was sent is not sent back."""
    faults = [{"where": _place(one), "why": one["msg"]} for one in error.errors()]
    first = faults[0]
    where = ".".join(str(part) for part in first["where"])
    return Problem(422, "invalid_request", f"The request does not fit: {where}: {first['why']}.", faults=faults[:20])


def _place(fault: Mapping[str, Any]) -> list[str]:
    """Where a fault is; the name of a field that nobody asked for is something that was sent."""
    place = fault["loc"][:-1] if fault["type"] == "extra_forbidden" else fault["loc"]
    return [str(part) for part in place]


def _refused(error: Any) -> Problem:  # noqa: ANN401
    metrics.REFUSED.inc()
    return Problem(422, "film_refused", str(error))


def _users(error: Any) -> Problem:  # noqa: ANN401
    return Problem(422, "bad_input", without_paths(str(error)))


def _busy(_error: Any) -> Problem:  # noqa: ANN401
    return Problem(503, "busy", "Too many films are being decoded; try again in a moment. Nothing was changed.")


def _slow(_error: Any) -> Problem:  # noqa: ANN401
    return Problem(503, "busy", "The server is too busy to answer in time; try again in a moment.")


def _database(error: Any) -> Problem:  # noqa: ANN401
    logger.error("the database: %s", what_is_wrong(error))
    return Problem(
        503,
        "database_unavailable",
        "The database does not answer, or its disk is full, so nothing can be promised: look again, then try again.",
    )


def _conflict(_error: Any) -> Problem:  # noqa: ANN401
    return Problem(409, "conflict", "Somebody else did the same at the same moment; nothing was changed. Look again.")


def _machine(error: Any) -> Problem:  # noqa: ANN401
    if error.errno in _FULL:
        logger.error("the disk is full")
        return Problem(503, "disk_full", "The server's disk is full; nothing was changed. Make room, then try again.")
    logger.error("a file cannot be used", exc_info=error)
    return Problem(503, "file_unavailable", "The server cannot use one of its files; nothing was changed.")


_MEANINGS: tuple[tuple[type[Exception] | Any, Callable[[Any], Problem]], ...] = (
    (Problem, _itself),
    (RequestValidationError, _invalid),
    (HTTPException, _http),
    (FilmRefusedError, _refused),
    (UserError, _users),
    (DecodersBusyError, _busy),
    (IntegrityError, _conflict),
    *((kind, _database) for kind in DATABASE_ERRORS),
    (TimeoutError, _slow),
    (OSError, _machine),
)
