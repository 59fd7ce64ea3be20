"""Multipart messages of DICOMweb with one DICOM object, streamed in both directions."""

import uuid
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

_CHUNK = 2**20
_MAX_PART_HEADER = 65536


class IncompleteResponseError(ValueError):
    """The response holds no object, or only a part of one."""


def first_object(media_type: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the bytes of the first object in a response. Some servers send it without multipart."""
    message = Message()
    message["Content-Type"] = media_type
    if message.get_content_type() == "application/dicom":
        yield from chunks
        return
    boundary = message.get_param("boundary")
    if message.get_content_type() != "multipart/related" or not isinstance(boundary, str):
        raise IncompleteResponseError
    delimiter = b"\r\n--" + boundary.encode()
    buffer = _skip_part_header(delimiter[2:], chunks)
    while (end := buffer.find(delimiter)) < 0:
        safe = max(len(buffer) - len(delimiter) + 1, 0)  # the rest may be the start of the delimiter
        yield buffer[:safe]
        chunk = next(chunks, None)
        if chunk is None:
            raise IncompleteResponseError
        buffer = buffer[safe:] + chunk
    yield buffer[:end]


def _skip_part_header(boundary: bytes, chunks: Iterator[bytes]) -> bytes:
    """Read up to the end of the first part's header, and return the bytes read after it."""
    buffer = b""
    for chunk in chunks:
        buffer += chunk
        start = buffer.find(boundary)
        end = -1 if start < 0 else buffer.find(b"\r\n\r\n", start + len(boundary))
        if end >= 0:
            return buffer[end + 4 :]
        if len(buffer) > _MAX_PART_HEADER + _CHUNK:
            break
    raise IncompleteResponseError


class MultipartFile:
    """A DICOM file as the body of a request, read while it is sent."""

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
