"""The one object in an answer of several parts, as it streams in; and one object as such a request."""

import re
import uuid
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

from medgrape.errors import UserError

_UID = re.compile(r"[0-9]+(\.[0-9]+)+")
LONGEST = 64


def is_uid(text: str | None) -> bool:
    """Whether it may stand in an address and in the name of a file."""
    return text is not None and len(text) <= LONGEST and _UID.fullmatch(text) is not None


def checked_uid(text: str) -> str:
    """The same, unless somebody mistyped it."""
    if not is_uid(text):
        raise UserError(f"{text!r} is no study UID: these are digits with dots between them, as pacs list shows them.")
    return text


Item = dict[str, Any]
STUDY, SERIES, INSTANCE = "0020000D", "0020000E", "00080018"
STUDY_DATE, ACCESSION, MODALITY, IMAGES = "00080020", "00080050", "00080060", "00201209"
FAILED, STORED, OTHER_FAILURES = "00081198", "00081199", "0008119A"
REFERENCED, REASON = "00081155", "00081197"


def values(item: Item, tag: str) -> list[Any]:
    """All that an element holds."""
    element = item.get(tag)
    found = element.get("Value") if isinstance(element, dict) else None
    return found if isinstance(found, list) else []


def text(item: Item, tag: str) -> str:
    """Its first value, if that is a word, or nothing."""
    return next((one.strip("\0 ") for one in values(item, tag)[:1] if isinstance(one, str)), "")


def number(item: Item, tag: str) -> int | None:
    """Its first value, if that is a whole number that DICOM can hold, also one written as text."""
    for one in values(item, tag)[:1]:
        try:
            found = int(one)
        except (TypeError, ValueError, OverflowError):
            return None
        return found if abs(found) < 2**31 else None
    return None


def items(answer: object) -> list[Item]:
    """What a search found; some servers send a single finding without its brackets."""
    if isinstance(answer, dict):
        return [answer]
    return [one for one in answer if isinstance(one, dict)] if isinstance(answer, list) else []


def sequence(item: Item, tag: str) -> list[Item]:
    """The items in a sequence."""
    return [one for one in values(item, tag) if isinstance(one, dict)]


_CHUNK = 2**20
_LONGEST_HEAD = 65536


class BrokenAnswerError(ValueError):
    """No object in it, or only a piece of one."""


def content(media_type: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes of the first object. Some servers send it as it is, without parts."""
    told = Message()
    told["Content-Type"] = media_type
    if told.get_content_type() == "application/dicom":
        yield from chunks
        return
    boundary = told.get_param("boundary")
    if told.get_content_type() != "multipart/related" or not isinstance(boundary, str):
        raise BrokenAnswerError
    mark = b"--" + boundary.encode()
    yield from _until(b"\r\n" + mark, chunks, _after_head(mark, chunks))


def _after_head(mark: bytes, chunks: Iterator[bytes]) -> bytes:
    """What has arrived behind the first part's own header."""
    held = b""
    for chunk in chunks:
        held += chunk
        start = held.find(mark)
        end = -1 if start < 0 else held.find(b"\r\n\r\n", start + len(mark))
        if end >= 0:
            return held[end + 4 :]
        if len(held) > _LONGEST_HEAD + _CHUNK:
            break
    raise BrokenAnswerError


def _until(delimiter: bytes, chunks: Iterator[bytes], held: bytes) -> Iterator[bytes]:
    """Everything before the delimiter, which may come in two pieces; without it the end is missing."""
    while True:
        end = held.find(delimiter)
        if end >= 0:
            yield held[:end]
            return
        safe = max(len(held) - len(delimiter) + 1, 0)
        yield held[:safe]
        more = next(chunks, None)
        if more is None:
            raise BrokenAnswerError
        held = held[safe:] + more


class OneFile:
    """A file as the body of a request, read as it is sent."""

    def __init__(self, path: Path) -> None:
        self._path = path
        boundary = uuid.uuid4().hex
        self._head = f"--{boundary}\r\nContent-Type: application/dicom\r\n\r\n".encode()
        self._tail = f"\r\n--{boundary}--\r\n".encode()
        self.media_type = f'multipart/related; type="application/dicom"; boundary={boundary}'
        self.length = len(self._head) + path.stat().st_size + len(self._tail)

    def __iter__(self) -> Iterator[bytes]:
        yield self._head
        with self._path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
        yield self._tail
