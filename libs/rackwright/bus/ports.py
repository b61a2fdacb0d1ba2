"""What every bus promises, one port per kind of message; the bus carries bytes.

Two implementations keep these promises and pass one conformance test: `jetstream` and `memory`.
Subjects are full subjects (`rackwright.<cell>....`); a subject outside a port's stream raises
`WrongSubject`. Times are seconds of the server's clock.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Protocol, Self, TypeAlias, TypeVar

from rackwright.bus.values import (
    NO_HEADERS,
    Appended,
    Cause,
    Change,
    Ends,
    Headers,
    Message,
    Outcome,
    Ready,
    Refused,
    Stored,
    Unsettled,
    Usage,
    Value,
)

T = TypeVar("T")


class Feed(Protocol[T]):
    """An ordered flow of messages that resumes by itself after any loss of the connection.

    One reader at a time. `aclose()` (or leaving `async with`) ends it and frees the server's side.
    After `aclose()` iteration stops; after an error each further read raises that error again.
    """

    def __aiter__(self) -> AsyncIterator[T]: ...

    async def __anext__(self) -> T: ...

    async def batch(self, limit: int = 512) -> list[T]:
        """Wait for at least one item, return all that is here, at most `limit`. Empty: closed."""
        ...

    def taken(self, limit: int = 512) -> list[T]:
        """What is here now, without waiting; may be empty."""
        ...

    async def aclose(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Ledger(Protocol):
    """The cell's decisions."""

    async def append(
        self, subject: str, data: bytes, *, expected: int | None, headers: Headers = NO_HEADERS
    ) -> Outcome:
        """Append one commit; `expected` is the stream's last sequence, None: without compare.

        Never raises because the bus is away: that is `Unsettled`.
        Raises AppendInFlight, MessageTooLarge, BusFull, BusDenied, WrongSubject.
        """
        ...

    async def ends(self) -> Ends:
        """Raises BusAway."""
        ...

    async def usage(self) -> Usage:
        """Raises BusAway."""
        ...

    def follow(self, start: int) -> Feed[Stored]:
        """Messages `start`, `start + 1`, ... without end; each sequence is the one before plus 1.

        Reading raises LedgerGap for anything else, at once if `start` is below the first or above
        the last plus one; StreamReplaced if the stream is another one after a reconnect.
        """
        ...

    async def purge_to(self, seq: int) -> None:
        """Remove everything below `seq` (only the archivist may). Raises BusAway, BusDenied."""
        ...


class Wishes(Protocol):
    """What users and operators want; never lost, answered by the ledger."""

    async def publish(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """Store it; the number returned is a receipt and no position.

        Raises BusAway, BusFull, MessageTooLarge, BusDenied, WrongSubject.
        """
        ...

    async def ends(self) -> Ends:
        """Raises BusAway."""
        ...

    async def usage(self) -> Usage:
        """Raises BusAway."""
        ...

    def follow(self, start: int) -> Feed[Stored]:
        """All wishes with sequence >= `start`, in order; trimmed ones are passed over.

        Reading raises LedgerGap at once if `start` is above the last plus one (another stream),
        StreamReplaced if that happens under way.
        """
        ...

    async def trim(self, seq: int) -> None:
        """Remove everything below `seq`. Raises BusAway, BusDenied."""
        ...


class Signals(Protocol):
    """Faults as nodes see them; the newest 64 per node are kept."""

    async def publish(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """Return the sequence given. Raises BusAway, MessageTooLarge, BusDenied."""
        ...

    def follow(self, since: float, filters: Sequence[str] = ()) -> Feed[Stored | Ready]:
        """What is kept from server time `since` on, then Ready, then what comes.

        `filters` narrow it (wildcards allowed); none: everything. A replaced stream is followed
        from its start: Ready comes once more.
        """
        ...


class Status(Protocol):
    """One last value per node."""

    async def put(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """Replace the last value. Raises BusAway, MessageTooLarge, BusDenied."""
        ...

    def follow(self, filters: Sequence[str] = ()) -> Feed[Stored | Ready]:
        """All last values, then Ready, then every change.

        A replaced stream is delivered from the start: last values and Ready come once more.
        """
        ...


class Projection(Protocol):
    """A key-value bucket written by compare: `assign` (one value per rack), `jobs` (one per job).

    Absence is not news: nothing is reported for a key that is simply not there.
    """

    async def get(self, key: str) -> Value | None:
        """Raises BusAway."""
        ...

    async def put(self, key: str, data: bytes, *, revision: int) -> Outcome:
        """Write if the key's revision is `revision` (0: the key is not there or was deleted).

        Raises MessageTooLarge, BusFull, BusDenied.
        """
        ...

    async def delete(self, key: str, *, revision: int) -> Outcome:
        """Delete if the key's revision is `revision`."""
        ...

    async def keys(self) -> list[str]:
        """All keys with a value, sorted. For start-up and queries, not for loops. BusAway."""
        ...

    def watch(self, key: str = ">") -> Feed[Change | Ready]:
        """The value(s) now, then Ready, then every change; `key` may end in `*` or `>`.

        Of several quick changes of one key only the last is sure to come. After a reconnect or of
        a replaced bucket values may come again, with Ready after them.
        """
        ...


class Snapshots(Protocol):
    """Chunks and manifests, one message per subject; writing a subject again replaces it."""

    async def write(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """Raises BusAway, BusFull, MessageTooLarge, BusDenied."""
        ...

    async def read(self, subject: str) -> Stored | None:
        """Raises BusAway."""
        ...

    async def read_all(self, subjects: Iterable[str]) -> list[Stored | None]:
        """As `read`, of all of them at once, in their order. Raises BusAway."""
        ...

    async def subjects(self, pattern: str = "") -> list[str]:
        """Sorted subjects that hold a chunk; `pattern` may have wildcards. Raises BusAway."""
        ...

    async def delete(self, pattern: str) -> int:
        """Remove all chunks on matching subjects, return how many. Raises BusAway, BusDenied."""
        ...


class DeadLetters(Protocol):
    """What could not be read, kept for people; bounded, the oldest go."""

    async def publish(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """Raises BusAway, MessageTooLarge, BusDenied."""
        ...

    def follow(self, since: float = 0.0) -> Feed[Stored | Ready]:
        """As Signals.follow."""
        ...


class Subscription(Feed[Message], Protocol):
    """Core messages through a bounded queue; when it is full the oldest are dropped."""

    @property
    def dropped(self) -> int:
        """Messages dropped so far because the reader was slow."""
        ...


Handler: TypeAlias = Callable[[Message], Awaitable[bytes]]


class Responder(Protocol):
    """A running query endpoint."""

    async def aclose(self) -> None: ...


class Core(Protocol):
    """Core NATS: heartbeats, echoes, queries. Nothing is stored, nothing is repeated."""

    async def publish(
        self,
        subject: str,
        data: bytes,
        headers: Headers = NO_HEADERS,
        *,
        reply: str | None = None,
    ) -> bool:
        """Send now or not at all: False if there is no connection. Raises MessageTooLarge."""
        ...

    async def subscribe(
        self, subject: str, *, limit: int = 65536, queue: str | None = None
    ) -> Subscription:
        """Hear a subject (wildcards allowed); when this returns the server knows. BusAway."""
        ...

    async def request(
        self, subject: str, data: bytes, *, patience: float = 1.0, headers: Headers = NO_HEADERS
    ) -> Message:
        """Ask and wait at most `patience` seconds.

        Raises BusAway, NoResponder, RequestFailed, BusDenied.
        """
        ...

    async def respond(
        self,
        subject: str,
        handler: Handler,
        *,
        queue: str | None = None,
        concurrency: int = 16,
    ) -> Responder:
        """Answer requests with what `handler` returns; `RequestFailed` it raises goes back.

        Any other error of the handler is answered as 500 without its text and reported through
        `Link.on_error`. Beyond `concurrency` requests wait in a bounded queue.
        """
        ...


class Link(Protocol):
    """Facts about the connection."""

    @property
    def connected(self) -> bool: ...

    @property
    def reconnects(self) -> int: ...

    @property
    def denied(self) -> int:
        """How often the server refused this identity a publish or subscription."""
        ...

    def on_reconnect(self, callback: Callable[[], None]) -> None:
        """Called after each reconnect; the feeds resume by themselves."""
        ...

    def on_disconnect(self, callback: Callable[[], None]) -> None: ...

    def on_denied(self, callback: Callable[[str, str], None]) -> None:
        """Called with (operation, subject)."""
        ...

    def on_error(self, callback: Callable[[str], None]) -> None:
        """Called with one line of text for whatever else the connection complains about."""
        ...

    async def closed(self) -> str:
        """Wait until the connection is closed for good; why. Then exit and be started again."""
        ...


class Bus(Protocol):
    """All ports over one connection of one identity in one cell."""

    @property
    def cell(self) -> str: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def wishes(self) -> Wishes: ...
    @property
    def signals(self) -> Signals: ...
    @property
    def status(self) -> Status: ...
    @property
    def assign(self) -> Projection: ...
    @property
    def jobs(self) -> Projection: ...
    @property
    def snapshots(self) -> Snapshots: ...
    @property
    def dead(self) -> DeadLetters: ...
    @property
    def core(self) -> Core: ...
    @property
    def link(self) -> Link: ...

    async def close(self) -> None:
        """Drain and close, within a bounded time; feeds end."""
        ...


__all__ = [
    "NO_HEADERS",
    "Appended",
    "Bus",
    "Cause",
    "Change",
    "Core",
    "DeadLetters",
    "Ends",
    "Feed",
    "Handler",
    "Headers",
    "Ledger",
    "Link",
    "Message",
    "Outcome",
    "Projection",
    "Ready",
    "Refused",
    "Responder",
    "Signals",
    "Snapshots",
    "Status",
    "Stored",
    "Subscription",
    "Unsettled",
    "Usage",
    "Value",
    "Wishes",
]
