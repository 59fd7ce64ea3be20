"""New chest films of a server, read as they arrive: each exactly once, across restarts and kills at any moment.

Everything that is decided about a film is one row of the ledger; everything that is made of it is one folder, which
appears by being renamed. A step that was broken off is known by the row or by the folder, and done again or skipped.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from medgrape.errors import UserError
from medgrape.films.decoder import DecoderLostError
from medgrape.films.film import FilmError
from medgrape.hospital.pacs.chest_reader import REPORT, ChestReader, Readings, alone_in
from medgrape.hospital.pacs.connection import (
    AwayError,
    BarredError,
    Connection,
    MissingError,
    PacsError,
    RefusalError,
    SecretError,
)
from medgrape.hospital.pacs.ledger import Entry, Ledger, State, opened
from medgrape.hospital.pacs.query import CHEST_MODALITIES, ListedFilm, ListedSeries, Wanted, films, series, since_when
from medgrape.hospital.pacs.servers import Server
from medgrape.hospital.pacs.transfer import fetch, reason_of, store


@dataclass(frozen=True)
class News:
    """Something that happened."""

    what: Literal["read", "refused", "stored", "unsendable", "later", "away", "back"]
    film: str = ""
    words: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"what": self.what, "film": self.film or None, "words": self.words or None}


Tell = Callable[[News], None]
_FAILURES = 5
"""Rounds in which a server may fail to give a film, or to take a report, before that counts as its answer."""
_PATIENCE = 86400.0
"""Seconds, besides, for which trouble may last that can pass: somebody has to notice, and to mend it."""
_LONGEST_WAIT = 60.0


class StrainError(UserError):
    """This machine could not read a film: it had too little memory, as a rule."""


MAY_PASS = AwayError | BarredError | DecoderLostError | StrainError


def is_enough(entry: Entry, error: UserError) -> bool:
    """Whether a film has failed for the last time; trouble that may pass needs to last for long, too."""
    if not isinstance(error, MAY_PASS):
        return entry.failures + 1 >= _FAILURES
    return entry.troubles + 1 >= _FAILURES and time.time() - entry.troubled >= _PATIENCE


def go_round(look: Callable[[], None], every: float, server: str, tell: Tell, wait: Callable[[float], None]) -> None:
    """Look again and again, for ever; while the server is no use, less and less often, which is told once.

    Before the first look that went well, only a server that is away is waited for: anything else is a wrong set-up.
    """
    failed, well, told = 0, False, set[type[UserError]]()
    while True:
        try:
            look()
        except (PacsError, SecretError) as trouble:
            if not well and not isinstance(trouble, AwayError):
                raise
            if type(trouble) not in told:
                tell(News("away", words=f"{trouble} Waiting for it."))
            told.add(type(trouble))
            wait(min(2.0 ** min(failed, 10), _LONGEST_WAIT))
            failed += 1
            continue
        if failed:
            tell(News("back", words=f"{server} answers again."))
        failed, well, told = 0, True, set()
        wait(every)


_LOOK_AGAIN = 3600.0
"""Seconds after which a series is looked into although it seems to have no other images than before."""
_DEATHS = 20
"""Watches that may end without a word over a film before it is left alone."""


@dataclass(frozen=True)
class WatchOrder:
    """What to watch, with which model, where to."""

    server: Server
    model: Path
    out: Path
    since: str = "7d"
    """As ``since_when`` takes it; days back are counted anew in each round."""
    push: bool = False
    """Whether reports and maps go back to the server."""
    keep_dicom: bool = False
    """Whether they stay here."""
    every: float = 30.0
    """Seconds between two rounds."""
    once: bool = False
    """Whether to end after one round."""


def watch(order: WatchOrder, tell: Tell, wait: Callable[[float], None] = time.sleep) -> dict[str, int]:
    """Read what is new, again and again; the number of films in each state, at the end of a single round."""
    since_when(order.since)
    reader = ChestReader(order.model, dicom=order.push or order.keep_dicom)
    with (
        alone_in(order.out) as readings,
        opened(readings.ledger) as ledger,
        closing(reader),
        Connection(order.server) as connection,
    ):
        _refuse_other(order, ledger, reader.version)
        watcher = Watcher(order, connection, ledger, readings, reader, tell)
        if order.once:
            watcher.round()
        else:
            go_round(watcher.round, order.every, order.server.name, tell, wait)
        return ledger.counts()


def _refuse_other(order: WatchOrder, ledger: Ledger, version: str) -> None:
    """A folder holds the films of one server, read with one model."""
    server, model = ledger.remembered("server"), ledger.remembered("model")
    if server not in (None, order.server.name):
        raise UserError(f"{order.out} was begun with the server {server!r}; choose another --out.")
    if model not in (None, version):
        raise UserError(
            f"{order.out} was begun with another model ({model}, this one is {version}); choose another --out."
        )


@dataclass
class Watcher:
    """Goes round once: finds, reads, stores."""

    order: WatchOrder
    connection: Connection
    ledger: Ledger
    readings: Readings
    reader: ChestReader
    tell: Tell
    number: int = field(default=0)
    """Of the round."""
    hidden: set[str] = field(default_factory=set)
    """Series and studies that could not be looked into, and were told."""

    def round(self) -> None:
        """Everything that can be done now."""
        self.number += 1
        self._each("sent", self._clear)
        self._find()
        if self.order.push:
            self._each("unsent", self._send)
        self._each("waiting", self._read)

    def _each(self, state: State, do: Callable[[Entry], None]) -> None:
        """Every film in a state, each once in a round. Only a watch that ends without a word is held against it."""
        while (entry := self.ledger.due(state, self.number)) is not None:
            self.ledger.begin(entry.film, self.number)
            try:
                do(entry)
            except BaseException:  # a full disk, a server that is gone, somebody's Ctrl-C
                self.ledger.acquit(entry.film)
                raise

    def _find(self) -> None:
        now, wanted = time.time(), Wanted(since_when(self.order.since), CHEST_MODALITIES)
        for one in series(self.connection, wanted, self._pass_over):
            if self.ledger.is_unchanged(one, now - _LOOK_AGAIN):
                continue
            self._look_into(one)
        self.ledger.remember(
            "server", self.order.server.name
        )  # only now: a first call that came to nothing binds nobody
        self.ledger.remember("model", self.reader.version)

    def _look_into(self, one: ListedSeries) -> None:
        try:
            self.ledger.note(one, list(films(self.connection, one)))
        except PacsError as error:
            self._pass_over(f"series {one.uid}", error)
            return
        self.hidden.discard(f"series {one.uid}")

    def _pass_over(self, what: str, error: PacsError) -> None:
        """What the server cannot show holds up nothing else; it is told once, and looked for in every round."""
        if isinstance(error, MissingError):  # removed since it was listed
            return
        self._ask_whether_it_is_there()
        if what not in self.hidden:
            self.tell(News("later", words=f"{what}: {error}"))
        self.hidden.add(what)

    def _read(self, entry: Entry) -> None:
        film = entry.film
        if entry.deaths >= _DEATHS:
            self._refuse(film, f"reading it was broken off {entry.deaths} times.")
            return
        if not self.readings.place(film.uid).exists():  # else a watcher was killed after the reading was there
            try:
                self._make(film)
            except (PacsError, StrainError, DecoderLostError) as error:
                self._later(entry, error, lambda why: self._refuse(film, why))
                return
            except FilmError as refusal:
                self._refuse(film, reason_of(refusal, self.readings.arrival))
                return
        self._settle(film)

    def _make(self, film: ListedFilm) -> None:
        with self.readings.draft() as draft:
            made = draft / "reading"
            fetch(self.connection, film, self.readings.arrival)
            try:
                sight = self.reader.read(film, self.readings.arrival, made)
            except (UserError, OSError):
                raise
            except (MemoryError, RuntimeError) as fault:  # torch calls a lack of memory a RuntimeError
                raise StrainError(
                    f"this machine could not read it ({type(fault).__name__}); it may lack memory."
                ) from fault
            except Exception as fault:  # one odd film must not end the watch; its words may hold the header's
                raise FilmError(f"medgrape stumbled over it ({type(fault).__name__}).") from fault
            self.readings.keep(made, film.uid)
        self.tell(News("read", film.uid, f"{sight.predicted} {sight.probability:.3f}"))

    def _settle(self, film: ListedFilm) -> None:
        objects = self.readings.own_uids(film.uid)
        if self.order.push and objects:
            self.ledger.settle(film, "unsent", own=objects)
            self._each("unsent", self._send)
        else:
            self.ledger.settle(film, "read", own=objects)

    def _send(self, entry: Entry) -> None:
        film, objects = entry.film, self.readings.objects(entry.film.uid)
        if REPORT not in [path.name for path in objects]:
            self._leave(
                film,
                "its objects are no longer here; to have them made again, remove its reading and set it to waiting.",
            )
            return
        try:
            sent = [store(self.connection, path) for path in objects]
        except PacsError as error:
            self._later(entry, error, lambda why: self._leave(film, why))
            return
        refused = [one for one in sent if not one.accepted]
        if refused:
            kind = AwayError if all(one.may_pass for one in refused) else RefusalError
            self._later(entry, kind(refused[0].reason), lambda why: self._leave(film, why))
            return
        self.ledger.settle(film, "sent")
        self.tell(News("stored", film.uid, f"{len(sent)} objects"))
        self._clear(entry)

    def _clear(self, entry: Entry) -> None:
        try:
            if not self.order.keep_dicom:
                self.readings.remove_objects(entry.film.uid)
        except OSError as error:  # they name the patient: told until they are gone
            self.ledger.pause(entry.film)
            self.tell(News("later", entry.film.uid, f"its objects cannot be removed here ({error.strerror})."))
            return
        self.ledger.settle(entry.film, "read")

    def _later(self, entry: Entry, error: UserError, give_up: Callable[[str], None]) -> None:
        """Try again, unless it is the server that is gone, or this film that never works out."""
        if isinstance(error, AwayError | BarredError):
            self._ask_whether_it_is_there()
        reason = reason_of(error, self.readings.arrival)
        if is_enough(entry, error):
            give_up(reason)
            return
        if isinstance(error, MAY_PASS):
            self.ledger.pause(entry.film)
        else:
            self.ledger.postpone(entry.film)
        self.tell(News("later", entry.film.uid, reason))

    def _ask_whether_it_is_there(self) -> None:
        """A server that broke off is gone, and then that is raised; or it cannot give this one thing."""
        self.connection.search(["studies"], [("limit", "1")])

    def _refuse(self, film: ListedFilm, reason: str) -> None:
        self.ledger.settle(film, "refused", reason)
        self.tell(News("refused", film.uid, reason))

    def _leave(self, film: ListedFilm, reason: str) -> None:
        self.ledger.settle(film, "unsendable", reason)
        self.tell(News("unsendable", film.uid, reason))
