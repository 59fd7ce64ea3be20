"""DICOM's names for things: digits and dots, and nothing that a path or an address could be made of."""

import re

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
