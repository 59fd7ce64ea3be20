"""Values in DICOM JSON (PS3.18 annex F), from servers that may break its rules, and UIDs."""

import re
from enum import StrEnum
from typing import Any

Item = dict[str, Any]
_UID = re.compile(r"[0-9]+(\.[0-9]+)+")


class Tag(StrEnum):
    """The elements that are searched for or read."""

    INSTANCE = "00080018"
    STUDY_DATE = "00080020"
    ACCESSION = "00080050"
    MODALITY = "00080060"
    REFERENCED_INSTANCE = "00081155"
    FAILURE_REASON = "00081197"
    FAILED = "00081198"
    STORED = "00081199"
    OTHER_FAILURES = "0008119A"
    STUDY = "0020000D"
    SERIES = "0020000E"
    IMAGES = "00201209"


def is_uid(text: str) -> bool:
    """Return whether the text is a UID, and so safe in a URL and a file name."""
    return len(text) <= 64 and _UID.fullmatch(text) is not None


def items(value: object) -> list[Item]:
    """Return the items of a response or a sequence; some servers send a single item without a list."""
    if isinstance(value, dict):
        return [value]
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def values(item: Item, tag: Tag) -> list[Any]:
    """Return all values of an element."""
    element = item.get(tag)
    content = element.get("Value") if isinstance(element, dict) else None
    return content if isinstance(content, list) else []


def text(item: Item, tag: Tag) -> str:
    """Return the first value if it is a string, else an empty string."""
    first = next(iter(values(item, tag)), None)
    return first.strip("\0 ") if isinstance(first, str) else ""


def integer(item: Item, tag: Tag) -> int | None:
    """Return the first value, which may be written as text, if it is an integer of 32 bits."""
    try:
        number = int(next(iter(values(item, tag)), ""))
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < 2**31 else None
