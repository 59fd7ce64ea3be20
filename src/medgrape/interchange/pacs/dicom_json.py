"""Answers of a server, in DICOM's JSON. It may leave out or spoil anything: what is not as it should be is absent."""

from typing import Any

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
