"""Studies as a person lists them: the wanted series of each, put together."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import Any

from medgrape.errors import UserError
from medgrape.hospital.pacs.connection import Connection, MissingError, PacsError, RefusalError
from medgrape.hospital.pacs.messages import (
    ACCESSION,
    IMAGES,
    INSTANCE,
    MODALITY,
    SERIES,
    STUDY,
    STUDY_DATE,
    Item,
    is_uid,
    items,
    number,
    text,
)

PassOver = Callable[[str, PacsError], None]
CHEST_MODALITIES = ("CR", "DX")
_MODALITY = re.compile(r"[A-Z0-9_]{1,16}")
_FIELDS = [("includefield", tag) for tag in (STUDY_DATE, ACCESSION, MODALITY, IMAGES)]


@dataclass(frozen=True)
class Wanted:
    """Which series are asked for."""

    since: date | None = None
    """The first study date that counts; None: all."""
    modalities: tuple[str, ...] = CHEST_MODALITIES

    def __post_init__(self) -> None:
        for one in self.modalities:
            if not _MODALITY.fullmatch(one):
                raise UserError(f"{one!r} is no modality: these are a few capital letters, such as CR or DX.")


@dataclass(frozen=True)
class ListedSeries:
    """A series, without anything that names its patient."""

    study: str
    uid: str
    modality: str
    """Empty where the server does not say, as everything below."""
    date: str
    """Of the study, YYYY-MM-DD."""
    accession: str
    images: int | None


@dataclass(frozen=True)
class ListedFilm:
    """An image, by the three names under which a server has it."""

    study: str
    series: str
    uid: str

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


def series(connection: Connection, wanted: Wanted, pass_over: PassOver | None = None) -> Iterator[ListedSeries]:
    """All that are wanted, each once: a server that ignores the modality tells all of them for each.

    ``pass_over`` is told of a study that the server cannot show, where these are asked for one by one; without it,
    that is the end.
    """
    seen = set[str]()
    for one in _page_by_page(connection, wanted, pass_over):
        if one.uid not in seen:
            seen.add(one.uid)
            yield one


def _page_by_page(connection: Connection, wanted: Wanted, pass_over: PassOver | None) -> Iterator[ListedSeries]:
    """Those of a server that finds series only within a study, study by study."""
    for modality in wanted.modalities:
        asked = [("Modality", modality), *_dates(wanted), *_FIELDS]
        found = _found(connection, ["series"], asked, SERIES)
        try:
            first = next(found, None)
        except (MissingError, RefusalError):
            yield from _study_by_study(connection, wanted, pass_over)
            return
        if first is not None:
            yield from _wanted([first], wanted)
            yield from _wanted(found, wanted)


def series_of(connection: Connection, study: str, wanted: Wanted) -> Iterator[ListedSeries]:
    """Those of one study."""
    found = _found(connection, ["studies", study, "series"], _FIELDS, SERIES)
    yield from _wanted(({STUDY: {"Value": [study]}} | one for one in found), wanted)


def films(connection: Connection, one: ListedSeries) -> Iterator[ListedFilm]:
    """The films of a series."""
    for item in _found(connection, ["studies", one.study, "series", one.uid, "instances"], [], INSTANCE):
        yield ListedFilm(one.study, one.uid, text(item, INSTANCE))


def _study_by_study(connection: Connection, wanted: Wanted, pass_over: PassOver | None) -> Iterator[ListedSeries]:
    for item in _found(connection, ["studies"], _dates(wanted), STUDY):
        study = text(item, STUDY)
        try:
            found = list(series_of(connection, study, wanted))
        except PacsError as error:
            if pass_over is None:
                raise
            pass_over(f"study {study}", error)
            continue
        yield from found


def _dates(wanted: Wanted) -> list[tuple[str, str]]:
    return [] if wanted.since is None else [("StudyDate", f"{wanted.since:%Y%m%d}-")]


def _found(connection: Connection, path: Sequence[str], asked: Sequence[tuple[str, str]], key: str) -> Iterator[Item]:
    """Everything, page by page, until one brings nothing new: a server may give fewer than asked, or the same again."""
    offset, seen = 0, set[str]()
    size = connection.server.settings.page
    while True:
        page = items(connection.search(path, [*asked, ("limit", str(size)), ("offset", str(offset))]))
        named = {text(one, key): one for one in page if is_uid(text(one, key)) and text(one, key) not in seen}
        if not named:
            return
        yield from named.values()
        offset += len(page)
        seen.update(named)


def _wanted(found: Iterator[Item] | Sequence[Item], wanted: Wanted) -> Iterator[ListedSeries]:
    """What a server says nothing of passes: the films themselves are looked at again."""
    for item in found:
        one = _series(item)
        of_kind = not one.modality or one.modality in wanted.modalities
        in_time = not (wanted.since and one.date) or one.date >= wanted.since.isoformat()
        if is_uid(one.study) and of_kind and in_time:
            yield one


def _series(item: Item) -> ListedSeries:
    day = text(item, STUDY_DATE)
    told = f"{day[:4]}-{day[4:6]}-{day[6:]}" if re.fullmatch(r"\d{8}", day) else ""
    return ListedSeries(
        text(item, STUDY), text(item, SERIES), text(item, MODALITY), told, text(item, ACCESSION), number(item, IMAGES)
    )


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
    """Of these modalities; None where the server does not say."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def plus(self, one: ListedSeries) -> "ListedStudy":
        """With one more series."""
        known = () if not one.modality or one.modality in self.modalities else (one.modality,)
        images = None if self.images is None or one.images is None else self.images + one.images
        return replace(self, modalities=(*self.modalities, *known), images=images)


def list_studies(connection: Connection, wanted: Wanted, most: int) -> tuple[list[ListedStudy], bool]:
    """Up to ``most`` studies, the oldest first, and whether there are more."""
    found: dict[str, ListedStudy] = {}
    for one in series(connection, wanted):
        study = found.get(one.study)
        if study is None and len(found) == most:
            return _by_date(found), True
        found[one.study] = (study or ListedStudy(one.study, one.date, (), one.accession, 0)).plus(one)
    return _by_date(found), False


def _by_date(found: dict[str, ListedStudy]) -> list[ListedStudy]:
    return sorted(found.values(), key=lambda study: (study.date, study.uid))
