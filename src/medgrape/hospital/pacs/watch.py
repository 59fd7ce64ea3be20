"""Read new chest films of a server as they arrive, each exactly once, across restarts and kills at any moment.

Every decision about a film is one row of the ledger, and every reading is one folder, which appears by being renamed.
After a kill, the row and the folder show which step is next.
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
from medgrape.hospital.pacs.chest_reader import ChestReader
from medgrape.hospital.pacs.connection import (
    AuthenticationError,
    Connection,
    CredentialsError,
    NotFoundError,
    PacsError,
    ResponseError,
    UnreachableError,
)
from medgrape.hospital.pacs.ledger import Ledger, LedgerEntry, State, open_ledger
from medgrape.hospital.pacs.query import (
    CHEST_MODALITIES,
    ListedFilm,
    ListedSeries,
    SeriesFilter,
    find_films,
    find_series,
    parse_since,
)
from medgrape.hospital.pacs.readings_folder import REPORT, ReadingsFolder, lock_folder
from medgrape.hospital.pacs.servers import Server
from medgrape.hospital.pacs.transfer import fetch, store, without_path

_MAX_FAILURES = 5  # rounds in which a film or its report may fail before that is final
_MIN_TROUBLE = 86400.0  # seconds for which temporary errors must last, besides, so that somebody can fix the cause
_MAX_WAIT = 60.0  # seconds between attempts to reach the server
_SEARCH_AGAIN = 3600.0  # seconds after which a series is searched again although its number of images is the same
_MAX_CRASHES = 20  # times that a film may kill the process before it is refused


@dataclass(frozen=True)
class WatchEvent:
    """Something that happened to a film, or to the connection."""

    kind: Literal["read", "refused", "stored", "unsendable", "later", "away", "back"]
    film: str = ""
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"what": self.kind, "film": self.film or None, "words": self.message or None}


OnEvent = Callable[[WatchEvent], None]


class ResourceError(UserError):
    """This machine could not read a film, usually for lack of memory."""


_TEMPORARY_ERRORS = UnreachableError | AuthenticationError | DecoderLostError | ResourceError


@dataclass(frozen=True)
class WatchOptions:
    """What to watch, with which model, and where to write."""

    server: Server
    model: Path
    out: Path
    since: str = "7d"  # see parse_since; days back are counted anew in each round
    push: bool = False  # store reports and maps on the server
    keep_dicom: bool = False  # keep them in the folder, too
    every: float = 30.0  # seconds between two rounds
    once: bool = False  # stop after one round


def watch(options: WatchOptions, on_event: OnEvent, wait: Callable[[float], None] = time.sleep) -> dict[str, int]:
    """Read new films for ever or, with ``once``, in one round; then return the number of films in each state."""
    parse_since(options.since)  # report a wrong value before anything else
    reader = ChestReader(options.model, dicom=options.push or options.keep_dicom)
    with (
        lock_folder(options.out) as folder,
        open_ledger(folder.ledger) as ledger,
        closing(reader),
        Connection(options.server) as connection,
    ):
        server, model = ledger.get("server"), ledger.get("model")
        if server not in (None, options.server.name):
            raise UserError(f"{options.out} belongs to the server {server!r}; choose another --out.")
        if model not in (None, reader.version):
            raise UserError(
                f"{options.out} belongs to another model ({model}, this one is {reader.version}); choose another --out."
            )
        watcher = Watcher(options, connection, ledger, folder, reader, on_event)
        if options.once:
            watcher.run_round()
        else:
            watcher.run_forever(wait)
        return ledger.counts()


@dataclass
class Watcher:
    """Finds, reads and stores films, round by round."""

    options: WatchOptions
    connection: Connection
    ledger: Ledger
    folder: ReadingsFolder
    reader: ChestReader
    on_event: OnEvent
    round_number: int = 0
    unavailable: set[str] = field(default_factory=set)  # series and studies whose failed search was reported

    def run_forever(self, wait: Callable[[float], None]) -> None:
        """Run rounds for ever. If the server fails, retry after growing pauses and report each kind of error once.

        Before the first successful round only an unreachable server is waited for: other errors mean wrong settings.
        """
        failures, has_succeeded, reported = 0, False, set[type[UserError]]()
        while True:
            try:
                self.run_round()
            except (PacsError, CredentialsError) as error:
                if not has_succeeded and not isinstance(error, UnreachableError):
                    raise
                if type(error) not in reported:
                    self.on_event(WatchEvent("away", message=f"{error} Waiting for it."))
                reported.add(type(error))
                wait(min(2.0 ** min(failures, 10), _MAX_WAIT))
                failures += 1
                continue
            if failures:
                self.on_event(WatchEvent("back", message=f"{self.options.server.name} answers again."))
            failures, has_succeeded, reported = 0, True, set()
            wait(self.options.every)

    def run_round(self) -> None:
        """Do all that can be done now."""
        self.round_number += 1
        self._process_all("sent", self._remove_copies)
        self._find_films()
        if self.options.push:
            self._process_all("unsent", self._store_objects)
        self._process_all("waiting", self._read_film)

    def _process_all(self, state: State, step: Callable[[LedgerEntry], None]) -> None:
        """Do a step for all films in a state, each once in a round. An attempt counts unless the step raises."""
        while (entry := self.ledger.next_due(state, self.round_number)) is not None:
            self.ledger.begin_attempt(entry.film, self.round_number)
            try:
                step(entry)
            except BaseException:  # a full disk, an unreachable server, Ctrl-C
                self.ledger.cancel_attempt(entry.film)
                raise

    def _find_films(self) -> None:
        """Add new films to the ledger."""
        search_again = time.time() - _SEARCH_AGAIN
        wanted = SeriesFilter(parse_since(self.options.since), CHEST_MODALITIES)
        for series in find_series(self.connection, wanted, self._skip):
            if not self.ledger.is_unchanged(series, search_again):
                self._search_series(series)
        # Only after a successful search: a first attempt that fails ties the folder to nothing.
        self.ledger.set_once("server", self.options.server.name)
        self.ledger.set_once("model", self.reader.version)

    def _search_series(self, series: ListedSeries) -> None:
        name = f"series {series.uid}"
        try:
            self.ledger.add_films(series, list(find_films(self.connection, series)))
        except PacsError as error:
            self._skip(name, error)
        else:
            self.unavailable.discard(name)

    def _skip(self, name: str, error: PacsError) -> None:
        """Skip a series or study whose search failed, and report it once; it is searched again in every round."""
        if isinstance(error, NotFoundError):  # removed since it was listed
            return
        self._check_server()
        if name not in self.unavailable:
            self.on_event(WatchEvent("later", message=f"{name}: {error}"))
        self.unavailable.add(name)

    def _read_film(self, entry: LedgerEntry) -> None:
        film = entry.film
        if entry.crashes >= _MAX_CRASHES:
            self._give_up(film, "refused", f"reading it ended the process {entry.crashes} times.")
            return
        if not self.folder.reading(film.uid).exists():  # it exists if a watch was killed right after making it
            try:
                self._make_reading(film)
            except (PacsError, ResourceError, DecoderLostError) as error:
                self._retry_later(entry, error, "refused")
                return
            except FilmError as error:
                self._give_up(film, "refused", without_path(error, self.folder.draft_film))
                return
        objects = self.folder.object_uids(film.uid)
        push = self.options.push and bool(objects)
        self.ledger.set_state(film, "unsent" if push else "read", own_objects=objects)
        if push:
            self._process_all("unsent", self._store_objects)

    def _make_reading(self, film: ListedFilm) -> None:
        with self.folder.draft() as draft:
            reading = draft / "reading"
            fetch(self.connection, film, self.folder.draft_film)
            try:
                predicted, probability = self.reader.read(film, self.folder.draft_film, reading)
            except (UserError, OSError):
                raise
            except (MemoryError, RuntimeError) as error:  # torch raises RuntimeError when memory is short
                raise ResourceError(
                    f"this machine could not read it ({type(error).__name__}); check its free memory."
                ) from error
            except Exception as error:  # one film must not stop the watch; the text may repeat header values
                raise FilmError(f"medgrape failed to read it ({type(error).__name__}).") from error
            self.folder.keep(reading, film.uid)
        self.on_event(WatchEvent("read", film.uid, f"{predicted} {probability:.3f}"))

    def _store_objects(self, entry: LedgerEntry) -> None:
        film, objects = entry.film, self.folder.objects(entry.film.uid)
        if REPORT not in [path.name for path in objects]:
            reason = "its objects no longer exist; to make them again, remove its reading and set it to waiting."
            self._give_up(film, "unsendable", reason)
            return
        try:
            results = [store(self.connection, path) for path in objects]
        except PacsError as error:
            self._retry_later(entry, error, "unsendable")
            return
        refused = [result for result in results if not result.accepted]
        if refused:
            kind = UnreachableError if all(result.is_temporary for result in refused) else ResponseError
            self._retry_later(entry, kind(refused[0].reason), "unsendable")
            return
        self.ledger.set_state(film, "sent")
        self.on_event(WatchEvent("stored", film.uid, f"{len(results)} objects"))
        self._remove_copies(entry)

    def _remove_copies(self, entry: LedgerEntry) -> None:
        film = entry.film
        try:
            if not self.options.keep_dicom:
                self.folder.remove_objects(film.uid)
        except OSError as error:  # report it until they are gone: they name the patient
            self.ledger.pause(film)
            self.on_event(WatchEvent("later", film.uid, f"its objects cannot be removed here ({error.strerror})."))
            return
        self.ledger.set_state(film, "read")

    def _retry_later(self, entry: LedgerEntry, error: UserError, final: Literal["refused", "unsendable"]) -> None:
        """Retry in a later round, or give up after too many failures. Raise if the server answers nothing at all."""
        if isinstance(error, UnreachableError | AuthenticationError):
            self._check_server()
        reason = without_path(error, self.folder.draft_film)
        if isinstance(error, _TEMPORARY_ERRORS):
            failures, lasted = entry.temporary_failures, time.time() - entry.failing_since >= _MIN_TROUBLE
        else:
            failures, lasted = entry.failures, True
        if failures + 1 >= _MAX_FAILURES and lasted:
            self._give_up(entry.film, final, reason)
            return
        if isinstance(error, _TEMPORARY_ERRORS):
            self.ledger.pause(entry.film)
        else:
            self.ledger.count_failure(entry.film)
        self.on_event(WatchEvent("later", entry.film.uid, reason))

    def _check_server(self) -> None:
        """Raise an error if the server does not answer a simple search either."""
        self.connection.search(["studies"], [("limit", "1")])

    def _give_up(self, film: ListedFilm, state: Literal["refused", "unsendable"], reason: str) -> None:
        self.ledger.set_state(film, state, reason)
        self.on_event(WatchEvent(state, film.uid, reason))
