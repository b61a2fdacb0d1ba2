"""The streams of a cell as plain data: no asyncio, no clock, so that a simulator can drive them.

It keeps what JetStream keeps: sequences, compare, limits, discard policies, timestamps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rackwright.bus.errors import BusFull, MessageTooLarge, StreamMissing
from rackwright.bus.match import check_below, matches
from rackwright.bus.messages import size_of
from rackwright.bus.ports import (
    NO_HEADERS,
    Appended,
    Ends,
    Headers,
    Message,
    Refused,
    Stored,
    Usage,
)
from rackwright.bus.streams import Discard, Kind, StreamSpec

OVERHEAD = 22  # bytes that a stored message costs beside its subject, headers and data
Clock: TypeAlias = Callable[[], float]


@dataclass(slots=True)
class MemoryStream:
    """One stream; `size` is in bytes. `created` tells it from an earlier one of the same name."""

    spec: StreamSpec
    created: int
    last: int = 0
    first: int = 1
    size: int = 0
    messages: dict[int, Stored] = field(default_factory=dict)
    by_subject: dict[str, deque[int]] = field(default_factory=dict)
    expiring: deque[tuple[float, int]] = field(default_factory=deque)

    def compare(
        self, subject: str, expected: int | None, expected_on_subject: int | None
    ) -> Refused | None:
        """What a compare says: None if it holds."""
        if expected is not None and expected != self.last:
            return Refused(last_seq=self.last)
        if expected_on_subject is not None:
            there = self.by_subject.get(subject)
            found = there[-1] if there else 0
            if expected_on_subject != found:
                return Refused(last_seq=found)
        return None

    def store(self, at: float, subject: str, data: bytes, headers: Headers, ttl_s: float) -> Stored:
        """Take a message. Raises BusFull."""
        cost = _cost(subject, data, headers)
        limit = self.spec.max_bytes
        if self.spec.discard is Discard.NEW and self.size + cost > limit:
            raise BusFull(self.spec.name, "maximum bytes exceeded")
        self.last += 1
        stored = Stored(seq=self.last, subject=subject, at=at, headers=headers, data=data)
        self.messages[self.last] = stored
        self.by_subject.setdefault(subject, deque()).append(self.last)
        self.size += cost
        if ttl_s > 0:
            self.expiring.append((at + ttl_s, self.last))
        most = self.spec.max_per_subject
        while most > 0 and len(self.by_subject[subject]) > most:
            self.remove(self.by_subject[subject][0])
        while self.size > limit:
            self.remove(self.first)
        return stored

    def remove(self, seq: int) -> None:
        """Forget one message; nothing happens if it is gone."""
        stored = self.messages.pop(seq, None)
        if stored is None:
            return
        self.size -= _cost(stored.subject, stored.data, stored.headers)
        there = self.by_subject[stored.subject]
        there.remove(seq)
        if not there:
            del self.by_subject[stored.subject]
        # Only ever forward, so that forgetting many costs no walk for each.
        while self.first <= self.last and self.first not in self.messages:
            self.first += 1

    def expire(self, now: float) -> None:
        """Forget what is too old."""
        while self.expiring and self.expiring[0][0] <= now:
            self.remove(self.expiring.popleft()[1])
        age = self.spec.max_age_s
        while age > 0 and self.messages:
            oldest = self.messages[self.first]
            if oldest.at + age > now:
                break
            self.remove(oldest.seq)


def _cost(subject: str, data: bytes, headers: Headers) -> int:
    return size_of(data, headers) + len(subject) + OVERHEAD


class MemoryStore:
    """All streams of a cell, and whoever listens to them. Times come from `clock`, in seconds."""

    def __init__(self, specs: Mapping[Kind, StreamSpec], clock: Clock) -> None:
        self.specs = specs
        self._clock = clock
        self._made = 0
        self._streams: dict[Kind, MemoryStream] = {}
        self._listeners: dict[Kind, dict[object, Callable[[], None]]] = {k: {} for k in specs}
        self._core: dict[object, tuple[str, str | None, Callable[[Message], None]]] = {}
        self._turn = 0
        for kind in specs:
            self.make(kind)

    # Streams

    def make(self, kind: Kind) -> None:
        """Make a stream, empty; one that is there is replaced, as when a server forgot it."""
        self._made += 1
        self._streams[kind] = MemoryStream(self.specs[kind], self._made)
        self._notify(kind)

    def drop(self, kind: Kind) -> None:
        """Take a stream away."""
        self._streams.pop(kind, None)

    def stream(self, kind: Kind) -> MemoryStream:
        """The stream, with nothing too old in it. Raises StreamMissing."""
        stream = self._streams.get(kind)
        if stream is None:
            raise StreamMissing(self.specs[kind].name)
        stream.expire(self._clock())
        return stream

    def append(
        self,
        kind: Kind,
        subject: str,
        data: bytes,
        headers: Headers = NO_HEADERS,
        *,
        expected: int | None = None,
        expected_on_subject: int | None = None,
        ttl_s: float = 0.0,
    ) -> Appended | Refused:
        """Store a message. Raises WrongSubject, MessageTooLarge, BusFull, StreamMissing."""
        self.check(kind, subject, data, headers)
        stream = self.stream(kind)
        refused = stream.compare(subject, expected, expected_on_subject)
        if refused is not None:
            return refused
        stored = stream.store(self._clock(), subject, data, dict(headers), ttl_s)
        self._notify(kind)
        if stream.spec.told:
            told = f"{stream.spec.told}{subject.removeprefix(stream.spec.root)}"
            seen = {**headers, "Nats-Sequence": str(stored.seq), "Nats-Subject": subject}
            self.say(Message(subject=told, reply=None, headers=seen, data=data))
        return Appended(seq=stored.seq)

    def check(self, kind: Kind, subject: str, data: bytes, headers: Headers) -> None:
        """Raises WrongSubject, MessageTooLarge."""
        spec = self.specs[kind]
        check_below(spec.root, subject)
        size = size_of(data, headers)
        if size > spec.max_msg_size:
            raise MessageTooLarge(subject, size, spec.max_msg_size)

    def ends(self, kind: Kind) -> Ends:
        """First and last sequence."""
        stream = self.stream(kind)
        return Ends(first=stream.first, last=stream.last)

    def usage(self, kind: Kind) -> Usage:
        """How full a stream is."""
        stream = self.stream(kind)
        size = stream.spec.max_bytes
        return Usage(messages=len(stream.messages), bytes=stream.size, max_bytes=size)

    def last_on(self, kind: Kind, subject: str) -> Stored | None:
        """The last message on a subject."""
        stream = self.stream(kind)
        there = stream.by_subject.get(subject)
        return stream.messages[there[-1]] if there else None

    def after(self, kind: Kind, seq: int, filters: Sequence[str] = ()) -> Iterator[Stored]:
        """Messages above a sequence that match, in order."""
        stream = self.stream(kind)
        # From a known sequence on there is no need to walk over all that lie before it.
        if seq >= stream.first:
            found = (stream.messages.get(n) for n in range(seq + 1, stream.last + 1))
        else:
            found = (message for message in stream.messages.values())
        for message in found:
            if message is not None and (
                not filters or any(matches(f, message.subject) for f in filters)
            ):
                yield message

    def subjects(self, kind: Kind, pattern: str) -> list[str]:
        """Subjects that hold a message and match, sorted."""
        return sorted(s for s in self.stream(kind).by_subject if matches(pattern, s))

    def purge(self, kind: Kind, *, below: int | None = None, pattern: str = ">") -> int:
        """Forget messages below a sequence, or those that match; how many."""
        stream = self.stream(kind)
        gone = [
            seq
            for seq, stored in stream.messages.items()
            if (below is None or seq < below) and matches(pattern, stored.subject)
        ]
        for seq in gone:
            stream.remove(seq)
        return len(gone)

    def listen(self, kind: Kind, key: object, call: Callable[[], None]) -> None:
        """Call after each change of a stream, until `unlisten`."""
        self._listeners[kind][key] = call

    def unlisten(self, kind: Kind, key: object) -> None:
        """Stop calling."""
        self._listeners[kind].pop(key, None)

    def _notify(self, kind: Kind) -> None:
        for call in list(self._listeners[kind].values()):
            call()

    # Core messages

    def subscribe(
        self, pattern: str, key: object, call: Callable[[Message], None], queue: str | None = None
    ) -> None:
        """Hear core messages on matching subjects, until `unsubscribe`."""
        self._core[key] = (pattern, queue, call)

    def unsubscribe(self, key: object) -> None:
        """Hear no more."""
        self._core.pop(key, None)

    def say(self, message: Message) -> int:
        """Tell whoever listens, one of each queue group; how many heard it."""
        hearers: list[Callable[[Message], None]] = []
        groups: dict[str, list[Callable[[Message], None]]] = {}
        for pattern, queue, call in self._core.values():
            if matches(pattern, message.subject):
                (hearers if queue is None else groups.setdefault(queue, [])).append(call)
        for members in groups.values():
            self._turn += 1
            hearers.append(members[self._turn % len(members)])
        for call in hearers:
            call(message)
        return len(hearers)
