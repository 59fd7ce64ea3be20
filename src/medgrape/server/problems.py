"""What goes wrong on the way to an answer: a status, a word for programs, a sentence for people."""

import re
from typing import Any

_FOLDERS = re.compile(r"(?<![:/\w])/(?:[^\s/:'\"]+/)+")


class Problem(Exception):  # noqa: N818 (RFC 9457's name for it)
    """Something the caller should know, told as RFC 9457 wants it."""

    def __init__(self, status: int, code: str, detail: str, **more: Any) -> None:  # noqa: ANN401 (plain data)
        super().__init__(detail)
        self.status, self.code, self.detail, self.more = status, code, detail, more

    def to_json(self) -> dict[str, Any]:
        """The answer's body."""
        return {"type": "about:blank", "status": self.status, "code": self.code, "detail": self.detail, **self.more}


def not_found(what: str, name: str) -> Problem:
    """Something that is not there, or not for the caller to see; the answer does not tell which."""
    return Problem(404, "not_found", f"There is no {what} {name!r}.")


def forbidden(detail: str) -> Problem:
    """Something that the caller's role does not allow."""
    return Problem(403, "forbidden", detail)


def without_paths(sentence: str) -> str:
    """What the library says of a file, without where it lies on this machine."""
    return _FOLDERS.sub("", sentence)
