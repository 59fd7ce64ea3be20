"""The log: events in one chain, each with a hash of the one before it, and sealed with a key the database has not.

A row that was altered, moved or taken out breaks the chain. Rows taken from its end are missed because the chain's end
is written down twice more: in a table, and in a file of the room's folder, which no access to the database reaches.
The plain hashes let anybody check an export; the seals tell whoever holds the key that no other hand wrote it anew.
"""

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from medgrape.files import whole_file
from medgrape.server.storage.anchor import Anchor, End
from medgrape.server.storage.tables import ChainRow, EventRow, stamp

_HEAD = "head"
_END = select(ChainRow.seq, ChainRow.hash).with_for_update()
_ADD, _MOVE = insert(EventRow), update(ChainRow)
_MOST_TOLD = 20


@dataclass(frozen=True)
class NewEvent:
    """Something to be written down."""

    actor: str
    kind: str
    film: str | None = None
    study: str | None = None
    model: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """Something that was written down."""

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
        """The body as data."""
        return dict(json.loads(self.body))

    def expected_hash(self) -> str:
        """What ``hash`` must be."""
        told = {name: value for name, value in vars(self).items() if name not in ("hash", "seal")}
        return hashlib.sha256(_canonical(told).encode()).hexdigest()


@dataclass(frozen=True)
class Verdict:
    """Whether a log is what was written."""

    events: int
    head: str
    """The last event's hash: written down elsewhere, it proves later that nothing was taken away."""
    faults: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Nothing altered, nothing missing."""
        return not self.faults


class EventLog:
    """The one place that adds events."""

    def __init__(self, key: bytes, anchor: Path) -> None:
        self._key = key
        self._anchor = Anchor(anchor)

    def add(self, session: Session, deed: NewEvent) -> Event:
        """Write it down as part of what ``session`` does; others who add wait until that is done."""
        session.flush()
        connection = session.connection()
        seq, previous = connection.execute(_END).one()
        now, body = stamp(datetime.now(UTC)), _canonical(deed.body)
        bare = Event(seq + 1, now, deed.actor, deed.kind, deed.film, deed.study, deed.model, body, previous, "", "")
        event = replace(bare, hash=bare.expected_hash())
        event = replace(event, seal=self._seal(event.hash))
        connection.execute(_ADD, asdict(event))
        connection.execute(_MOVE, {"seq": event.seq, "hash": event.hash})
        if self._holds(session, self._anchor.read(), (seq, previous)):
            session.info[_HEAD] = (event.seq, event.hash)
        return event

    def note_head(self, session: Session) -> None:
        """Write the chain's end into the folder, once it is safe; it may lag behind, and never runs ahead."""
        if _HEAD in session.info:
            with suppress(OSError):  # on a full disk it lags behind
                self._anchor.write(*session.info[_HEAD])

    def accept(self, session: Session) -> None:
        """Remember the chain's end as it is, whatever was remembered before: for somebody who looked into a fault."""
        seq, found = session.connection().execute(select(ChainRow.seq, ChainRow.hash)).one()
        self._anchor.path.unlink(missing_ok=True)
        self._anchor.make()
        self._anchor.write(seq, found)

    def verify(self, session: Session, expected: str | None = None) -> Verdict:
        """Look at every row; ``expected`` is a hash that somebody wrote down earlier, which some event must have.

        What the folder remembers is read first, and all rows at one moment: people may be at work meanwhile.
        """
        remembered = self._anchor.read()
        if session.get_bind().dialect.name == "postgresql":
            session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        seq, found = session.execute(select(ChainRow.seq, ChainRow.hash)).one()
        faults: list[str] = []
        last, count = ("", 0), 0
        for event in events_in(session):
            faults.extend(_faults(event, *last, self._seal(event.hash)))
            last, count = (event.hash, event.seq), count + 1
        if (last[1], last[0]) != (seq, found):
            faults.append(f"the log ends with event {last[1]}, but event {seq} was written last")
        if expected is not None and not has_hash(session, expected):
            faults.append(f"no event has the hash {expected}")
        if not self._holds(session, remembered, (seq, found)):
            faults.append(_unanchored(remembered, self._anchor.path.name))
        return Verdict(count, last[0], tuple(faults[:_MOST_TOLD]))

    def belongs(self, session: Session) -> bool:
        """Whether database and folder are a pair.

        The database holds the event that the folder remembers as the last; or, where the folder remembers none, its
        first event is sealed with the folder's key.
        """
        remembered, end = self._anchor.read(), session.execute(select(ChainRow.seq, ChainRow.hash)).one()
        first = session.execute(select(EventRow.hash, EventRow.seal).where(EventRow.seq == 1)).one_or_none()
        if remembered is None or (remembered[0] == 0 and end.seq > 0):
            return first is not None and first.seal == self._seal(first.hash)
        return self._holds(session, remembered, (end.seq, end.hash))

    def _holds(self, session: Session, remembered: End | None, end: End) -> bool:
        """Whether what the folder remembers is still part of a chain that ends so."""
        if remembered is None or remembered[0] > end[0]:
            return False
        if remembered[0] in (0, end[0]):
            return remembered[0] == 0 or remembered == end
        return session.scalar(select(EventRow.hash).where(EventRow.seq == remembered[0])) == remembered[1]

    def _seal(self, found: str) -> str:
        return hmac.new(self._key, found.encode(), hashlib.sha256).hexdigest()


def _unanchored(remembered: End | None, name: str) -> str:
    if remembered is None:
        return f"{name}, in which the room's folder remembers the last event, is missing or damaged"
    return f"event {remembered[0]}, which the room's folder remembers, is missing or another"


def events_in(session: Session, *, after: int = 0) -> Iterator[Event]:
    """Every event in order, a few at a time."""
    rows = session.execute(select(EventRow.__table__).where(EventRow.seq > after).order_by(EventRow.seq))
    for row in rows.yield_per(500).mappings():
        yield Event(**row)


def verify_export(lines: Iterator[str], expected: str | None = None) -> Verdict:
    """Look at an exported log, for which no database and no key is needed: is each event the next one's ancestor?

    ``expected`` is a hash that somebody wrote down earlier; some event must have it.
    """
    faults: list[str] = []
    found = expected is None
    last, count = ("", 0), 0
    for number, line in enumerate(lines, 1):
        event = _parsed(line)
        if event is None:
            faults.append(f"line {number} is no event")
            continue
        faults.extend(_faults(event, *last, event.seal))
        found |= event.hash == expected
        last, count = (event.hash, event.seq), count + 1
    if count == 0:
        faults.append("there is no event in it")
    if not found:
        faults.append(f"no event has the hash {expected}")
    return Verdict(count, last[0], tuple(faults[:_MOST_TOLD]))


def export(session: Session, path: Path) -> int:
    """All events as lines of JSON, in a file that is whole or not there; how many."""
    count = 0
    with whole_file(path) as draft, draft.open("w", encoding="utf-8") as file:
        for event in events_in(session):
            file.write(line_of(event))
            count += 1
    return count


def line_of(event: Event) -> str:
    """As it is exported."""
    return json.dumps(asdict(event)) + "\n"


def _faults(event: Event, previous: str, seq: int, seal: str) -> Iterator[str]:
    if event.seq != seq + 1:
        missing = f"event {seq + 1} is" if event.seq == seq + 2 else f"events {seq + 1} to {event.seq - 1} are"
        yield f"{missing} missing"
    elif event.previous != previous:
        yield f"event {event.seq} does not follow event {seq}"
    if event.hash != event.expected_hash():
        yield f"event {event.seq} was altered"
    elif event.seal != seal:
        yield f"event {event.seq} was written by somebody without the key"


def _parsed(line: str) -> Event | None:
    try:
        told = json.loads(line)
        event = Event(**told)
    except (ValueError, TypeError):
        return None
    texts = (event.at, event.actor, event.kind, event.body, event.previous, event.hash, event.seal)
    return event if isinstance(event.seq, int) and all(isinstance(one, str) for one in texts) else None


def _canonical(told: Mapping[str, Any]) -> str:
    return json.dumps(told, sort_keys=True, separators=(",", ":"), allow_nan=False)


def latest(session: Session, count: int) -> list[Event]:
    """The last events, the first of them first."""
    rows = session.execute(select(EventRow.__table__).order_by(EventRow.seq.desc()).limit(count)).mappings()
    return [Event(**row) for row in rows][::-1]


def has_hash(session: Session, found: str) -> bool:
    """Whether some event has this hash."""
    return session.scalar(select(EventRow.seq).where(EventRow.hash == found)) is not None
