"""Studies as a person lists them: the wanted series of each, put together."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from medgrape.interchange.pacs.connection import Connection
from medgrape.interchange.pacs.query import ListedSeries, Wanted, series


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
