"""An object from a file into a server (STOW), and what the server says of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medgrape.errors import UserError
from medgrape.interchange.pacs.connection import Connection
from medgrape.interchange.pacs.dicom_json import (
    FAILED,
    OTHER_FAILURES,
    REASON,
    REFERENCED,
    STORED,
    Item,
    items,
    number,
    sequence,
    text,
    values,
)
from medgrape.interchange.pacs.failures import MissingError, RefusalError
from medgrape.interchange.pacs.header import header_of
from medgrape.interchange.pacs.multipart import OneFile

_DUPLICATE = 0x0111
_REASONS = {
    0x0106: "it holds a value that the server does not take",
    0x0110: "the server failed while it stored it",
    0x0117: "its UID is not valid",
    0x0122: "the server does not store objects of this kind",
    0x0124: "we are not allowed to store there",
    0xA700: "the server has no room left",
    0xA900: "it is not what its SOP class promises",
    0xC000: "the server cannot understand it",
    0xC122: "the server does not know its transfer syntax",
}


_PASSING = (0x0110, 0x0124, 0xA700)
"""What somebody at the server can mend: the same object may be taken later."""


@dataclass(frozen=True)
class Stored:
    """What became of one file."""

    path: Path
    uid: str
    accepted: bool
    reason: str = ""
    """Why not."""
    may_pass: bool = False
    """Whether it is the server that is in trouble, and not the object."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"file": str(self.path), "uid": self.uid, "accepted": self.accepted, "reason": self.reason or None}


def store(connection: Connection, path: Path) -> Stored:
    """Send the file as it is. One that the server has already counts as accepted: sending twice stores once."""
    header = header_of(path)
    if header is None:
        return Stored(path, "", False, "it is no DICOM file with a UID of its own")
    body = OneFile(path)
    try:
        status, answer = connection.store(iter(body), body.length, body.media_type)
    except (RefusalError, MissingError) as refusal:  # of this file; the next may be smaller
        return Stored(path, header.uid, False, str(refusal))
    said = next(iter(items(answer)), Item())
    failed = [*values(said, FAILED), *values(said, OTHER_FAILURES)]
    if header.uid in _uids(said, STORED) or (status == 200 and not failed):  # 202: some, and it must say which
        return Stored(path, header.uid, True)
    code = _failure(said, header.uid)
    if code == _DUPLICATE:
        return Stored(path, header.uid, True)
    return Stored(path, header.uid, False, _in_words(code, status), _family(code) in _PASSING)


def _uids(answer: Item, tag: str) -> set[str]:
    return {text(one, REFERENCED) for one in sequence(answer, tag)}


def _failure(answer: Item, uid: str) -> int | None:
    """Why an object failed; one that the server could not even name is told among the others."""
    named = [one for one in sequence(answer, FAILED) if text(one, REFERENCED) == uid]
    return next((number(one, REASON) for one in [*named, *sequence(answer, OTHER_FAILURES)]), None)


def _in_words(code: int | None, status: int) -> str:
    if code is None:
        return f"the server does not say why (HTTP {status})"
    return f"{_REASONS.get(_family(code), 'the server gives a reason of its own')} ({code:04X}H)"


def _family(code: int | None) -> int:
    """A code, or the first of its like: A7xx and A9xx are families."""
    return 0 if code is None else code if code in _REASONS else code & 0xFF00


def dicom_files(paths: list[Path]) -> list[Path]:
    """Files, and those below folders that begin like DICOM; one that is not there is an error before any is sent."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} is not there.")
        if path.is_dir():
            below = sorted(one for one in path.rglob("*") if one.is_file() and header_of(one) is not None)
            if not below:
                raise UserError(f"There is no DICOM file in {path}.")
            found.extend(below)
        else:
            found.append(path)
    return found
