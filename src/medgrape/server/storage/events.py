"""The event log: a hash chain in the database, sealed with a key that the database does not hold.

Changing, moving or removing a row breaks the chain. Rows removed from its end are detected because the chain's end is
stored twice more: in a table, and in a file of the room's folder (the anchor), which database access cannot reach.
Anybody can check the plain hashes of an export; the seals prove to the holder of the key that nobody rewrote the chain.
"""

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from medgrape.files import whole_file
from medgrape.server.storage.tables import ChainRow, EventRow, stamp

ChainEnd = tuple[int, str]  # number and hash of an event; 0 and "" before the first one
_CHAIN_END = select(ChainRow.seq, ChainRow.hash)
_LOCKED_CHAIN_END = _CHAIN_END.with_for_update()
_INSERT_EVENT, _MOVE_CHAIN_END = insert(EventRow), update(ChainRow)
_HEAD = "head"
_MAX_FAULTS = 20
_ANCHOR_LINE = 128  # bytes of one of the anchor's two lines


class Anchor:
    """A file with the end of the chain: two lines, overwritten in turn, so that a crash can spoil only one of them.

    Several workers write without waiting for each other. A late one writes an older event into its line; the other
    line then holds the newer one. So the file may lag behind, but never runs ahead. It is created once, with the room,
    and never again: a removed file stays missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Create the file for a log without events, synced to disk."""
        with self.path.open("xb") as file:
            file.write(self._line(0, "") * 2)
            file.flush()
            os.fsync(file.fileno())

    def write(self, seq: int, event_hash: str) -> None:
        """Store an event that the database has committed."""
        handle = os.open(self.path, os.O_WRONLY)
        try:
            os.pwrite(handle, self._line(seq, event_hash), seq % 2 * _ANCHOR_LINE)
        finally:
            os.close(handle)

    def read(self) -> ChainEnd | None:
        """Return the last event stored; None if the file is missing or damaged."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        ends = []
        for line in (content[:_ANCHOR_LINE], content[_ANCHOR_LINE : 2 * _ANCHOR_LINE]):
            with suppress(ValueError, TypeError):
                seq, event_hash = json.loads(line)
                ends.append((int(seq), str(event_hash)))
        return max(ends, default=None)

    def _line(self, seq: int, event_hash: str) -> bytes:
        return (json.dumps([seq, event_hash]).ljust(_ANCHOR_LINE - 1) + "\n").encode()


@dataclass(frozen=True)
class Event:
    """An event of the chain; the fields are the columns of its table."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    seq: int
    at: str
    actor: str
    kind: str
    film: str | None
    study: str | None
    model: str | None
    body: str
    previous: str
    hash: str
    seal: str

    @property
    def payload(self) -> dict[str, Any]:
        """Return the body as data."""
        return dict(json.loads(self.body))

    def expected_hash(self) -> str:
        """Return the hash of all other fields but the seal."""
        hashed = {name: value for name, value in vars(self).items() if name not in ("hash", "seal")}
        return hashlib.sha256(_canonical(hashed).encode()).hexdigest()


_EVENT = TypeAdapter(Event)


@dataclass(frozen=True)
class Verdict:
    """Result of checking a log."""

    events: int
    head: str  # hash of the last event: kept elsewhere, it proves later that nothing was removed
    faults: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing was changed and nothing is missing."""
        return not self.faults


class EventLog:
    """Adds events to the chain and checks it."""

    def __init__(self, key: bytes, anchor: Path) -> None:
        self._key = key
        self._anchor = Anchor(anchor)

    def add(
        self, session: Session, actor: str, kind: str, body: Mapping[str, Any], *, film: str | None = None,
        study: str | None = None, model: str | None = None,
    ) -> Event:  # fmt: skip
        """Append an event within the session's transaction; other writers wait until it ends."""
        session.flush()
        connection = session.connection()
        seq, previous = connection.execute(_LOCKED_CHAIN_END).one()
        now = stamp(datetime.now(UTC))
        bare = Event(seq + 1, now, actor, kind, film, study, model, _canonical(body), previous, "", "")
        event = replace(bare, hash=bare.expected_hash())
        event = replace(event, seal=self._seal(event.hash))
        connection.execute(_INSERT_EVENT, asdict(event))
        connection.execute(_MOVE_CHAIN_END, {"seq": event.seq, "hash": event.hash})
        if self._holds(session, self._anchor.read(), (seq, previous)):
            session.info[_HEAD] = (event.seq, event.hash)
        return event

    def write_anchor(self, session: Session) -> None:
        """Write the end of the chain into the folder after the commit."""
        if _HEAD in session.info:
            with suppress(OSError):  # on a full disk the file lags behind
                self._anchor.write(*session.info[_HEAD])

    def accept(self, session: Session) -> None:
        """Write a new anchor with the present end of the chain, after an admin has examined a fault."""
        seq, event_hash = session.connection().execute(_CHAIN_END).one()
        self._anchor.path.unlink(missing_ok=True)
        self._anchor.make()
        self._anchor.write(seq, event_hash)

    def verify(self, session: Session, expected: str | None = None) -> Verdict:
        """Check every row; ``expected`` is a hash noted earlier, which some event must have.

        The anchor is read first, and all rows in one snapshot, because the server may be writing meanwhile.
        """
        anchored = self._anchor.read()
        if session.get_bind().dialect.name == "postgresql":
            session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        seq, event_hash = session.execute(_CHAIN_END).one()
        faults: list[str] = []
        last, count = _check_chain(events_in(session), lambda event: self._seal(event.hash), expected, faults)
        if last != (seq, event_hash):
            faults.append(f"the log ends with event {last[0]}, but event {seq} was written last")
        if not self._holds(session, anchored, (seq, event_hash)):
            faults.append(
                f"{self._anchor.path.name}, which stores the last event, is missing or damaged"
                if anchored is None
                else f"event {anchored[0]}, the last one in {self._anchor.path.name}, is missing or differs"
            )
        return Verdict(count, last[1], tuple(faults[:_MAX_FAULTS]))

    def belongs(self, session: Session) -> bool:
        """Return whether the database belongs to the folder.

        It must hold the event that the anchor stores. If the anchor stores none, the first event must be sealed with
        the folder's key.
        """
        anchored, end = self._anchor.read(), session.execute(_CHAIN_END).one()
        if anchored is None or (anchored[0] == 0 and end.seq > 0):
            first = session.execute(select(EventRow.hash, EventRow.seal).where(EventRow.seq == 1)).one_or_none()
            return first is not None and first.seal == self._seal(first.hash)
        return self._holds(session, anchored, (end.seq, end.hash))

    def _holds(self, session: Session, anchored: ChainEnd | None, end: ChainEnd) -> bool:
        """Return whether the anchored event is part of the chain that ends with ``end``."""
        if anchored is None or anchored[0] > end[0]:
            return False
        if anchored[0] in (0, end[0]):
            return anchored[0] == 0 or anchored == end
        return session.scalar(select(EventRow.hash).where(EventRow.seq == anchored[0])) == anchored[1]

    def _seal(self, event_hash: str) -> str:
        return hmac.new(self._key, event_hash.encode(), hashlib.sha256).hexdigest()


def verify_export(lines: Iterator[str], expected: str | None = None) -> Verdict:
    """Check the chain of an exported log, without database and key.

    ``expected`` is a hash noted earlier, which some event must have.
    """
    faults: list[str] = []

    def parse() -> Iterator[Event]:
        for number, line in enumerate(lines, 1):
            try:
                yield _EVENT.validate_json(line)
            except ValidationError:
                faults.append(f"line {number} is no event")

    last, count = _check_chain(parse(), lambda event: event.seal, expected, faults)
    if count == 0:
        faults.append("there is no event in it")
    return Verdict(count, last[1], tuple(faults[:_MAX_FAULTS]))


def _check_chain(
    events: Iterable[Event], seal_of: Callable[[Event], str], expected: str | None, faults: list[str]
) -> tuple[ChainEnd, int]:
    """Add the faults of a chain to ``faults``; return its end and the number of its events."""
    end: ChainEnd = (0, "")
    count, found = 0, expected is None
    for event in events:
        faults.extend(_faults(event, end, seal_of(event)))
        found |= event.hash == expected
        end, count = (event.seq, event.hash), count + 1
    if not found:
        faults.append(f"no event has the hash {expected}")
    return end, count


def _faults(event: Event, last: ChainEnd, seal: str) -> Iterator[str]:
    seq, previous = last
    if event.seq != seq + 1:
        missing = f"event {seq + 1} is" if event.seq == seq + 2 else f"events {seq + 1} to {event.seq - 1} are"
        yield f"{missing} missing"
    elif event.previous != previous:
        yield f"event {event.seq} does not follow event {seq}"
    if event.hash != event.expected_hash():
        yield f"event {event.seq} was altered"
    elif event.seal != seal:
        yield f"event {event.seq} was written by somebody without the key"


def _canonical(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def events_in(session: Session, *, after: int = 0) -> Iterator[Event]:
    """Yield every event in order, read in chunks."""
    rows = session.execute(select(EventRow.__table__).where(EventRow.seq > after).order_by(EventRow.seq))
    for row in rows.yield_per(500).mappings():
        yield Event(**row)


def export(session: Session, path: Path) -> int:
    """Write all events as JSON lines, atomically; return their number."""
    count = 0
    with whole_file(path) as draft, draft.open("w", encoding="utf-8") as file:
        for event in events_in(session):
            file.write(line_of(event))
            count += 1
    return count


def line_of(event: Event) -> str:
    """Return an event as a line of an export."""
    return json.dumps(asdict(event)) + "\n"


def latest(session: Session, count: int) -> list[Event]:
    """Return the last events in order."""
    rows = session.execute(select(EventRow.__table__).order_by(EventRow.seq.desc()).limit(count)).mappings()
    return [Event(**row) for row in rows][::-1]
