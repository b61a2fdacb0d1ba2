"""A key-value bucket: written by compare on the key's revision, watched without consumers.

A watch of one key needs no consumer on the server: it hears the stream's own repetition of what was
stored and reads the value anew after each reconnect and every quarter of a minute. So 25,000 agents
cost the server nothing, and none of them needs the right to make consumers.
"""

from __future__ import annotations

import asyncio
import random

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription

from rackwright.bus.cancelling import end
from rackwright.bus.connection import Connection
from rackwright.bus.consumer import ConsumerFeed, FromTime
from rackwright.bus.errors import BusAway, BusClosed
from rackwright.bus.feed import BufferedFeed
from rackwright.bus.match import is_plain
from rackwright.bus.messages import EXPECT_ON_SUBJECT, OPERATION
from rackwright.bus.ports import Appended, Change, Outcome, Ready, Refused, Stored, Unsettled, Value
from rackwright.bus.requests import Unanswered
from rackwright.bus.streams import MARKER_TTL_S, StreamSpec
from rackwright.bus.writer import StreamWriter

REREAD_S = 15.0
RETRY_S = 0.5


class JetStreamProjection:
    """Implements `ports.Projection` on the bucket of `spec`."""

    def __init__(self, connection: Connection, spec: StreamSpec) -> None:
        self._connection = connection
        self._spec = spec
        self._writer = StreamWriter(connection, spec)

    async def get(self, key: str) -> Value | None:
        """See ports.Projection."""
        change = await self.last(key)
        if change is None or change.data is None:
            return None
        return Value(key=key, revision=change.revision, data=change.data)

    async def last(self, key: str) -> Change | None:
        """The key's last message, a deletion included. Raises BusAway."""
        subject = f"$JS.API.DIRECT.GET.{self._spec.name}.{self._spec.root}{key}"
        try:
            answer = await self._connection.ask(subject, b"")
        except Unanswered as error:
            raise BusAway(f"get {key}", str(error)) from error
        headers = answer.headers or {}
        if "Nats-Sequence" not in headers:
            if headers.get("Status") == "404":
                return None
            raise BusAway(f"get {key}", f"status {headers.get('Status')}")
        return _change(key, int(headers["Nats-Sequence"]), headers.get(OPERATION), answer.data)

    async def put(self, key: str, data: bytes, *, revision: int) -> Outcome:
        """See ports.Projection."""
        outcome = await self._offer(key, data, {}, revision)
        if revision != 0 or not isinstance(outcome, Refused):
            return outcome
        # Refused because of a deletion's marker, or because of a value?
        try:
            there = await self.last(key)
        except BusAway:
            return outcome
        if there is None or there.data is not None:
            return outcome
        return await self._offer(key, data, {}, there.revision)

    async def delete(self, key: str, *, revision: int) -> Outcome:
        """See ports.Projection."""
        headers = {OPERATION: "DEL", "Nats-TTL": f"{MARKER_TTL_S}s"}
        return await self._offer(key, b"", headers, revision)

    async def _offer(
        self, key: str, data: bytes, headers: dict[str, str], revision: int
    ) -> Appended | Refused | Unsettled:
        subject = f"{self._spec.root}{key}"
        return await self._writer.offer(subject, data, headers, {EXPECT_ON_SUBJECT: str(revision)})

    async def keys(self) -> list[str]:
        """See ports.Projection."""
        found: dict[str, None] = {}
        async with self._watch_all(">") as feed:
            async for item in feed:
                match item:
                    case Ready():
                        break
                    case Change(key=key, data=None):
                        found.pop(key, None)
                    case Change(key=key):
                        found[key] = None
        return sorted(found)

    def watch(self, key: str = ">") -> BufferedFeed[Change | Ready]:
        """See ports.Projection."""
        return (
            KeyFeed(self._connection, self, self._spec, key)
            if is_plain(key)
            else (self._watch_all(key))
        )

    def _watch_all(self, pattern: str) -> ConsumerFeed[Change | Ready]:
        skip = len(self._spec.root)

        def translate(stored: Stored) -> Change | Ready:
            operation = stored.headers.get(OPERATION)
            return _change(stored.subject[skip:], stored.seq, operation, stored.data)

        return ConsumerFeed(
            self._connection,
            self._spec.name,
            FromTime(0.0),
            translate=translate,
            ready=lambda ready: ready,
            filters=(f"{self._spec.root}{pattern}",),
        )


def _change(key: str, revision: int, operation: str | None, data: bytes) -> Change:
    return Change(key=key, revision=revision, data=None if operation else data)


class KeyFeed(BufferedFeed[Change | Ready]):
    """Follows one key by the stream's repetition and by reading it again."""

    def __init__(
        self, connection: Connection, bucket: JetStreamProjection, spec: StreamSpec, key: str
    ) -> None:
        super().__init__()
        self._connection = connection
        self._bucket = bucket
        self._subject = f"{spec.told}{key}"
        self._key = key
        self._revision = 0
        self._reread = asyncio.Event()
        self._started = False
        self._subscription: NatsSubscription | None = None
        connection.attach(self)
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(self._on_end)

    async def _run(self) -> None:
        try:
            while self._subscription is None:
                try:
                    self._subscription = await self._connection.subscribe(
                        self._subject, self._on_told
                    )
                except BusAway:
                    await self._pause(RETRY_S)
            while True:
                await self._pause(await self._read())
        finally:
            self._connection.detach(self)
            if self._subscription is not None:
                await self._connection.unsubscribe(self._subscription)

    async def _read(self) -> float:
        """Read the value; how long to wait until the next time."""
        self._reread.clear()
        before = self._revision
        try:
            await self._connection.flush()
            change = await self._bucket.last(self._key)
        except BusAway:
            return RETRY_S
        if change is not None and change.revision != self._revision:
            if self._revision != before:
                return 0.0  # told of a newer one while this was read
            self._take(change)
        if not self._started:
            self._started = True
            self.push(Ready(last=self._revision))
        return REREAD_S * random.uniform(0.75, 1.25)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._reread.wait()
        except TimeoutError:
            return

    async def _on_told(self, message: Msg) -> None:
        headers = message.headers or {}
        revision = int(headers.get("Nats-Sequence", "0"))
        if revision <= self._revision or not self._started:
            # Before the first reading, or from a bucket made anew: only a reading can tell.
            self._reread.set()
            return
        self._take(_change(self._key, revision, headers.get(OPERATION), message.data))

    def _take(self, change: Change) -> None:
        self._revision = change.revision
        self.push(change)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    def reconnected(self) -> None:
        """Read again: what was told meanwhile was not heard."""
        self._reread.set()

    def broken(self, error: BusClosed) -> None:
        """The connection will not come back."""
        self.fail(error)
        self._task.cancel()

    async def aclose(self) -> None:
        """End the feed."""
        self.finish()
        await end(self._task)
