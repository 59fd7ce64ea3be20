"""Searches for studies, series and films on a DICOMweb server (QIDO-RS)."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain, islice

from medgrape.errors import UserError
from medgrape.hospital.pacs.connection import Connection, NotFoundError, PacsError, ResponseError
from medgrape.hospital.pacs.dicom_json import Item, Tag, integer, is_uid, items, text
from medgrape.records import Record

OnError = Callable[[str, PacsError], None]
CHEST_MODALITIES = ("CR", "DX")
_MODALITY = re.compile(r"[A-Z0-9_]{1,16}")
_FIELDS = [("includefield", tag.value) for tag in (Tag.STUDY_DATE, Tag.ACCESSION, Tag.MODALITY, Tag.IMAGES)]


@dataclass(frozen=True)
class SeriesFilter:
    """Which series to search for."""

    since: date | None = None  # first study date
    modalities: tuple[str, ...] = CHEST_MODALITIES

    def __post_init__(self) -> None:
        for modality in self.modalities:
            if not _MODALITY.fullmatch(modality):
                raise UserError(f"{modality!r} is not a modality; use capital letters, such as CR or DX.")

    @property
    def dates(self) -> list[tuple[str, str]]:
        """Return the filter by study date for a query."""
        return [] if self.since is None else [("StudyDate", f"{self.since:%Y%m%d}-")]

    def accepts(self, series: "ListedSeries") -> bool:
        """Return whether the series fits. Missing values fit, because film headers are checked later."""
        of_modality = not series.modality or series.modality in self.modalities
        return of_modality and (not (self.since and series.date) or series.date >= self.since.isoformat())


@dataclass(frozen=True)
class ListedSeries:
    """A series without anything that names its patient; empty where the server does not say."""

    study: str
    uid: str
    modality: str
    date: str  # study date, YYYY-MM-DD
    accession: str
    images: int | None


@dataclass(frozen=True)
class ListedFilm:
    """The UIDs of an image."""

    study: str
    series: str
    uid: str

    @property
    def path(self) -> tuple[str, ...]:
        """Path below the server's URL; always built here, never taken from a response."""
        return "studies", self.study, "series", self.series, "instances", self.uid


class ListedStudy(Record):
    """A study without anything that names its patient."""

    uid: str
    date: str  # YYYY-MM-DD, or empty
    modalities: tuple[str, ...]
    accession: str  # number of the order, which leads to a patient in the hospital's systems
    images: int | None  # number of images of the requested modalities; None if the server does not say

    @classmethod
    def of(cls, series: Sequence[ListedSeries]) -> "ListedStudy":
        """Combine the series of one study."""
        modalities = tuple(dict.fromkeys(entry.modality for entry in series if entry.modality))
        counts = [entry.images for entry in series if entry.images is not None]
        images = sum(counts) if len(counts) == len(series) else None
        first = series[0]
        return cls(uid=first.study, date=first.date, modalities=modalities, accession=first.accession, images=images)


def parse_since(value: str) -> date | None:
    """Parse ``2026-11-18``, ``today``, ``7d`` (days back) or ``always`` (None)."""
    if value == "always":
        return None
    if value == "today":
        return date.today()
    if re.fullmatch(r"\d{1,5}d", value):
        return date.today() - timedelta(days=int(value[:-1]))
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise UserError(
            f"--since takes a date such as 2026-11-18, today, always, or days back such as 7d; not {value!r}."
        ) from None


def parse_study_uid(value: str) -> str:
    """Return the UID; raise an error if it is not one."""
    if not is_uid(value):
        raise UserError(f"{value!r} is not a study UID; copy one from pacs list: digits with dots between them.")
    return value


def find_series(
    connection: Connection, wanted: SeriesFilter, on_error: OnError | None = None
) -> Iterator[ListedSeries]:
    """Yield each series once, also from servers that ignore the modality or search series within a study only.

    On the latter every study is searched. ``on_error`` receives the error of a study; without it the error is raised.
    """
    yielded = set[str]()
    for series in _find_by_modality(connection, wanted, on_error):
        if series.uid not in yielded:
            yielded.add(series.uid)
            yield series


def _find_by_modality(connection: Connection, wanted: SeriesFilter, on_error: OnError | None) -> Iterator[ListedSeries]:
    for modality in wanted.modalities:
        found = _search_pages(connection, ["series"], [("Modality", modality), *wanted.dates, *_FIELDS], Tag.SERIES)
        try:
            first = list(islice(found, 1))
        except (NotFoundError, ResponseError):  # this server searches series within a study only
            yield from _find_by_study(connection, wanted, on_error)
            return
        yield from _accepted(chain(first, found), wanted)


def _find_by_study(connection: Connection, wanted: SeriesFilter, on_error: OnError | None) -> Iterator[ListedSeries]:
    for item in _search_pages(connection, ["studies"], wanted.dates, Tag.STUDY):
        study = text(item, Tag.STUDY)
        try:
            series = list(find_study_series(connection, study, wanted))
        except PacsError as error:
            if on_error is None:
                raise
            on_error(f"study {study}", error)
            continue
        yield from series


def find_study_series(connection: Connection, study: str, wanted: SeriesFilter) -> Iterator[ListedSeries]:
    """Yield the series of one study."""
    found = _search_pages(connection, ["studies", study, "series"], _FIELDS, Tag.SERIES)
    yield from _accepted(({Tag.STUDY: {"Value": [study]}} | item for item in found), wanted)


def find_films(connection: Connection, series: ListedSeries) -> Iterator[ListedFilm]:
    """Yield the films of a series."""
    path = ["studies", series.study, "series", series.uid, "instances"]
    for item in _search_pages(connection, path, [], Tag.INSTANCE):
        yield ListedFilm(series.study, series.uid, text(item, Tag.INSTANCE))


def _search_pages(
    connection: Connection, path: Sequence[str], query: Sequence[tuple[str, str]], key: Tag
) -> Iterator[Item]:
    """Yield all items page by page until a page has nothing new: servers may return short pages or repeat them."""
    offset, yielded = 0, set[str]()
    limit = str(connection.server.settings.page)
    while True:
        page = items(connection.search(path, [*query, ("limit", limit), ("offset", str(offset))]))
        new = {uid: item for item in page if is_uid(uid := text(item, key)) and uid not in yielded}
        if not new:
            return
        yield from new.values()
        offset += len(page)
        yielded.update(new)


def _accepted(found: Iterable[Item], wanted: SeriesFilter) -> Iterator[ListedSeries]:
    """Parse the items, and yield the series that the filter accepts."""
    for item in found:
        day = text(item, Tag.STUDY_DATE)
        study_date = f"{day[:4]}-{day[4:6]}-{day[6:]}" if re.fullmatch(r"\d{8}", day) else ""
        series = ListedSeries(
            text(item, Tag.STUDY), text(item, Tag.SERIES), text(item, Tag.MODALITY), study_date,
            text(item, Tag.ACCESSION), integer(item, Tag.IMAGES),
        )  # fmt: skip
        if is_uid(series.study) and wanted.accepts(series):
            yield series


def list_studies(connection: Connection, wanted: SeriesFilter, limit: int) -> tuple[list[ListedStudy], bool]:
    """Return up to ``limit`` studies, the oldest first, and whether there are more."""
    studies: dict[str, list[ListedSeries]] = {}
    more = False
    for series in find_series(connection, wanted):
        if series.study not in studies and len(studies) == limit:
            more = True
            break
        studies.setdefault(series.study, []).append(series)
    return sorted(map(ListedStudy.of, studies.values()), key=lambda study: (study.date, study.uid)), more
