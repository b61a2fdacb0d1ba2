"""The ports on NATS JetStream, over one connection."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from rackwright.bus.api import Api, check_server, ensure
from rackwright.bus.connection import Connection
from rackwright.bus.consumer import ConsumerFeed, FromSeq, FromTime
from rackwright.bus.core import JetStreamCore
from rackwright.bus.errors import AppendInFlight, BusAway, BusClosed, BusError
from rackwright.bus.match import check_below
from rackwright.bus.messages import EXPECT
from rackwright.bus.options import ConnectOptions
from rackwright.bus.ports import (
    NO_HEADERS,
    Ends,
    Headers,
    Outcome,
    Ready,
    Stored,
    Usage,
)
from rackwright.bus.projection import JetStreamProjection
from rackwright.bus.requests import Unanswered
from rackwright.bus.streams import Kind, Limits, Storage, StreamSpec, declare
from rackwright.bus.writer import StreamWriter

T = TypeVar("T")

RECREATE_RETRY_S = 0.25


def _itself(item: T) -> T:
    return item


class _Stream:
    """What the ports on one stream share."""

    def __init__(self, connection: Connection, spec: StreamSpec) -> None:
        self._connection = connection
        self._spec = spec
        self._api = Api(connection)
        self._writer = StreamWriter(connection, spec)

    async def ends(self) -> Ends:
        """First and last sequence. Raises BusAway, StreamMissing."""
        state = await self._api.stream(self._spec.name)
        return Ends(first=state.first, last=state.last)

    async def usage(self) -> Usage:
        """How full it is. Raises BusAway, StreamMissing."""
        state = await self._api.stream(self._spec.name)
        return Usage(messages=state.messages, bytes=state.bytes, max_bytes=self._spec.max_bytes)

    def _from_seq(self, start: int, *, strict: bool) -> ConsumerFeed[Stored]:
        at = FromSeq(max(start, 1), strict)
        return ConsumerFeed(self._connection, self._spec.name, at, translate=_itself, ready=None)

    def _from_time(self, since: float, filters: Sequence[str]) -> ConsumerFeed[Stored | Ready]:
        def stored(item: Stored) -> Stored | Ready:
            return item

        def ready(item: Ready) -> Stored | Ready:
            return item

        return ConsumerFeed(
            self._connection,
            self._spec.name,
            FromTime(since),
            translate=stored,
            ready=ready,
            filters=filters,
        )


class JetStreamLedger(_Stream):
    """Implements `ports.Ledger`."""

    _in_flight: str | None = None

    async def append(
        self, subject: str, data: bytes, *, expected: int | None, headers: Headers = NO_HEADERS
    ) -> Outcome:
        """See ports.Ledger."""
        if self._in_flight is not None:
            raise AppendInFlight(self._in_flight, subject)
        self._in_flight = subject
        try:
            compare = NO_HEADERS if expected is None else {EXPECT: str(expected)}
            return await self._writer.offer(subject, data, headers, compare)
        finally:
            self._in_flight = None

    def follow(self, start: int) -> ConsumerFeed[Stored]:
        """See ports.Ledger."""
        return self._from_seq(start, strict=True)

    async def purge_to(self, seq: int) -> None:
        """See ports.Ledger."""
        await self._api.purge(self._spec.name, below=seq)


class JetStreamWishes(_Stream):
    """Implements `ports.Wishes`; with several replicas one publishes into the intake."""

    def __init__(self, connection: Connection, spec: StreamSpec, intake: StreamSpec) -> None:
        super().__init__(connection, spec)
        self._writer = StreamWriter(connection, intake)

    async def publish(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """See ports.Wishes."""
        return await self._writer.publish(subject, data, headers)

    def follow(self, start: int) -> ConsumerFeed[Stored]:
        """See ports.Wishes."""
        return self._from_seq(start, strict=False)

    async def trim(self, seq: int) -> None:
        """See ports.Wishes."""
        await self._api.purge(self._spec.name, below=seq)


class JetStreamSignals(_Stream):
    """Implements `ports.Signals` and `ports.DeadLetters`."""

    async def publish(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """See ports.Signals."""
        return await self._writer.publish(subject, data, headers)

    def follow(
        self, since: float = 0.0, filters: Sequence[str] = ()
    ) -> ConsumerFeed[Stored | Ready]:
        """See ports.Signals."""
        return self._from_time(since, filters)


class JetStreamStatus(_Stream):
    """Implements `ports.Status`: the stream keeps one message per subject."""

    async def put(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """See ports.Status."""
        return await self._writer.publish(subject, data, headers)

    def follow(self, filters: Sequence[str] = ()) -> ConsumerFeed[Stored | Ready]:
        """See ports.Status."""
        return self._from_time(0.0, filters)


class JetStreamSnapshots(_Stream):
    """Implements `ports.Snapshots`."""

    async def write(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """See ports.Snapshots."""
        return await self._writer.publish(subject, data, headers)

    async def read(self, subject: str) -> Stored | None:
        """See ports.Snapshots."""
        check_below(self._spec.root, subject)
        try:
            answer = await self._connection.ask(
                f"$JS.API.DIRECT.GET.{self._spec.name}.{subject}", b""
            )
        except Unanswered as error:
            raise BusAway(f"read {subject}", str(error)) from error
        headers = answer.headers or NO_HEADERS
        if "Nats-Sequence" not in headers:
            if headers.get("Status") == "404":
                return None
            raise BusAway(f"read {subject}", f"status {headers.get('Status')}")
        return Stored(
            seq=int(headers["Nats-Sequence"]),
            subject=subject,
            at=server_time(headers["Nats-Time-Stamp"]),
            headers=headers,
            data=answer.data,
        )

    async def read_all(self, subjects: Iterable[str]) -> list[Stored | None]:
        """See the port."""
        return await asyncio.gather(*map(self.read, subjects))

    async def subjects(self, pattern: str = "") -> list[str]:
        """See ports.Snapshots."""
        return await self._api.subjects(self._spec.name, pattern or f"{self._spec.root}>")

    async def delete(self, pattern: str) -> int:
        """See ports.Snapshots."""
        return await self._api.purge(self._spec.name, pattern=pattern)


def server_time(text: str) -> float:
    """Seconds from RFC 3339 with up to nine decimals, as the server writes them."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    at = datetime.datetime.fromisoformat(f"{whole}+00:00")
    return at.timestamp() + (int(fraction) / 10 ** len(fraction) if fraction else 0.0)


class JetStreamBus:
    """Implements `ports.Bus`. Made by `connect`."""

    def __init__(
        self,
        connection: Connection,
        cell: str,
        specs: Mapping[Kind, StreamSpec],
        recreate: Collection[Kind],
    ) -> None:
        self.cell = cell
        self.specs = specs
        self.link = connection
        self.api = Api(connection)
        self.core = JetStreamCore(connection)
        self.ledger = JetStreamLedger(connection, specs[Kind.LEDGER])
        intake = specs.get(Kind.INTAKE, specs[Kind.WISH])
        self.wishes = JetStreamWishes(connection, specs[Kind.WISH], intake)
        self.signals = JetStreamSignals(connection, specs[Kind.SIGNAL])
        self.status = JetStreamStatus(connection, specs[Kind.STATUS])
        self.assign = JetStreamProjection(connection, specs[Kind.ASSIGN])
        self.jobs = JetStreamProjection(connection, specs[Kind.JOBS])
        self.snapshots = JetStreamSnapshots(connection, specs[Kind.SNAP])
        self.dead = JetStreamSignals(connection, specs[Kind.DEAD])
        self._recreator = _Recreator(
            connection, [specs[k] for k in recreate if specs[k].storage is Storage.MEMORY]
        )

    async def ensure(self) -> None:
        """Make all streams be as declared (needs the rights of the administrator)."""
        await ensure(self.link, self.specs)

    async def close(self) -> None:
        """See ports.Bus."""
        await self.link.close()


class _Recreator:
    """A single server forgets memory streams when it restarts: their owners make them anew."""

    def __init__(self, connection: Connection, specs: Sequence[StreamSpec]) -> None:
        self._connection = connection
        self._api = Api(connection)
        self._specs = specs
        self._task: asyncio.Task[None] | None = None
        if specs:
            connection.attach(self)

    def reconnected(self) -> None:
        """Make what is missing; nothing happens to what is there."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._make())

    async def _make(self) -> None:
        for spec in self._specs:
            while True:
                try:
                    await self._api.create(spec)
                    break
                except BusAway:
                    await asyncio.sleep(RECREATE_RETRY_S)
                except BusError as error:
                    self._connection.report(f"making {spec.name} anew: {error}")
                    break

    def broken(self, error: BusClosed) -> None:
        """Nothing can be made any more."""
        if self._task is not None:
            self._task.cancel()

    async def aclose(self) -> None:
        """Stop."""
        self._connection.detach(self)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})


async def connect(
    options: ConnectOptions,
    cell: str,
    *,
    replicas: int = 1,
    limits: Limits | None = None,
    recreate: Collection[Kind] = (),
    on_error: Callable[[str], None] | None = None,
) -> JetStreamBus:
    """Connect as one identity to one cell's bus.

    `recreate`: the memory streams this identity owns and makes anew after the server forgot them.
    Raises BusAway, AuthFailed, ServerTooOld, JetStreamDisabled, MissingExtra.
    """
    connection = Connection(options)
    if on_error is not None:
        connection.on_error(on_error)
    await connection.open()
    try:
        check_server(connection)
    except BusError:
        await connection.close()
        raise
    specs = declare(cell, replicas=replicas, limits=limits)
    return JetStreamBus(connection, cell, specs, recreate)
