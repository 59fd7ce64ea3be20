"""Which studies and films a server has (QIDO). Filters are asked for and checked again: some ignore them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

from medgrape.errors import UserError
from medgrape.interchange.pacs.connection import Connection
from medgrape.interchange.pacs.dicom_json import (
    ACCESSION,
    CLASS,
    IMAGES,
    INSTANCE,
    MODALITIES,
    MODALITY,
    SERIES,
    STUDY,
    STUDY_DATE,
    Item,
    items,
    number,
    text,
    texts,
)
from medgrape.interchange.pacs.uids import is_uid

CHEST_MODALITIES = ("CR", "DX")
_MODALITY = re.compile(r"[A-Z0-9_]{1,16}")


@dataclass(frozen=True)
class Wanted:
    """Which studies are asked for."""

    since: date | None = None
    """The first study date that counts; None: all."""
    modalities: tuple[str, ...] = CHEST_MODALITIES

    def __post_init__(self) -> None:
        for one in self.modalities:
            if not _MODALITY.fullmatch(one):
                raise UserError(f"{one!r} is no modality: these are a few capital letters, such as CR or DX.")


@dataclass(frozen=True)
class ListedStudy:
    """A study, without anything that names its patient."""

    uid: str
    date: str
    """YYYY-MM-DD, or empty."""
    modalities: tuple[str, ...]
    accession: str
    """The order's number, which leads to a patient for whoever may look into the hospital's systems."""
    images: int | None
    """Objects of all kinds; None where the server does not say."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True)
class ListedFilm:
    """An image, by the three names under which a server has it."""

    study: str
    series: str
    uid: str
    kind: str = ""
    """Its SOP class, where the server tells."""

    @property
    def path(self) -> tuple[str, ...]:
        """Where it stands below the server's address; made here, never taken from an answer."""
        return "studies", self.study, "series", self.series, "instances", self.uid


def since_when(told: str, today: date | None = None) -> date | None:
    """``2026-11-18``, ``today``, ``7d`` (so many days back) or ``always``."""
    now = today or date.today()
    if told == "always":
        return None
    if told == "today":
        return now
    if re.fullmatch(r"\d{1,5}d", told):
        return now - timedelta(days=int(told[:-1]))
    try:
        return date.fromisoformat(told)
    except ValueError:
        raise UserError(
            f"--since takes a date such as 2026-11-18, today, always, or days back such as 7d; not {told!r}."
        ) from None


def studies(connection: Connection, wanted: Wanted) -> Iterator[ListedStudy]:
    """Studies with any of the modalities, one page after the other; one that has several may come several times."""
    dates = [] if wanted.since is None else [("StudyDate", f"{wanted.since:%Y%m%d}-")]
    fields = [("includefield", tag) for tag in (MODALITIES, IMAGES, ACCESSION)]
    for modality in wanted.modalities:
        asked = [("ModalitiesInStudy", modality), *dates, *fields]
        for item in _found(connection, ["studies"], asked, STUDY):
            study = _study(item)
            if _is_wanted(study, wanted):
                yield study


def distinct_studies(connection: Connection, wanted: Wanted) -> Iterator[ListedStudy]:
    """The same, each once."""
    seen = set[str]()
    for study in studies(connection, wanted):
        if study.uid not in seen:
            seen.add(study.uid)
            yield study


def films(connection: Connection, study: str, modalities: Sequence[str]) -> Iterator[ListedFilm]:
    """The films of a study, from those of its series that have one of the modalities."""
    for item in _found(connection, ["studies", study, "series"], [("includefield", MODALITY)], SERIES):
        series, modality = text(item, SERIES), text(item, MODALITY)
        if modality and modality not in modalities:
            continue
        for one in _found(connection, ["studies", study, "series", series, "instances"], [], INSTANCE):
            yield ListedFilm(study, series, text(one, INSTANCE), text(one, CLASS))


def _found(connection: Connection, path: Sequence[str], asked: Sequence[tuple[str, str]], key: str) -> Iterator[Item]:
    """Everything, page by page, until one brings nothing new: a server may give fewer than asked, or the same again."""
    offset, before = 0, frozenset[str]()
    size = connection.server.settings.page
    while True:
        page = items(connection.search(path, [*asked, ("limit", str(size)), ("offset", str(offset))]))
        named = {text(one, key): one for one in page if is_uid(text(one, key))}
        if named.keys() <= before:
            return
        yield from (one for name, one in named.items() if name not in before)
        offset, before = offset + len(page), frozenset(named)


def _study(item: Item) -> ListedStudy:
    day = text(item, STUDY_DATE)
    told = f"{day[:4]}-{day[4:6]}-{day[6:]}" if re.fullmatch(r"\d{8}", day) else ""
    return ListedStudy(text(item, STUDY), told, texts(item, MODALITIES), text(item, ACCESSION), number(item, IMAGES))


def _is_wanted(study: ListedStudy, wanted: Wanted) -> bool:
    """What a server says nothing of passes: the films themselves are looked at again."""
    if study.modalities and not set(study.modalities) & set(wanted.modalities):
        return False
    return not (wanted.since and study.date) or study.date >= wanted.since.isoformat()
