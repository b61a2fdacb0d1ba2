"""An ordered consumer that misses nothing and doubles nothing, whatever happens to the server.

It is a push consumer without acknowledgements. Whenever a message may have been missed (gap in the
consumer's own numbers, silence, reconnect, deleted consumer) it is thrown away and a new one starts
at the next wanted sequence.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription

from rackwright.bus.api import Api, StreamState
from rackwright.bus.cancelling import end
from rackwright.bus.connection import Connection
from rackwright.bus.errors import (
    BusAway,
    BusClosed,
    BusRejected,
    LedgerGap,
    StreamMissing,
    StreamReplaced,
)
from rackwright.bus.feed import BufferedFeed
from rackwright.bus.ports import NO_HEADERS, Ready, Stored

T = TypeVar("T")

HEARTBEAT_S = 1.0
SILENCE_S = 2.5 * HEARTBEAT_S
INACTIVE_S = 30.0
RETRY_S = (0.05, 0.1, 0.2, 0.4, 1.0)
BUFFER_HIGH = 16384
BUFFER_LOW = 4096


@dataclass(frozen=True, slots=True)
class FromSeq:
    """Start at a sequence. Above the end plus one, and `strict` below the first, is an error.

    `strict`: each sequence must be the one before plus one.
    """

    seq: int
    strict: bool


@dataclass(frozen=True, slots=True)
class FromTime:
    """Start at a server time; a replaced stream is followed from its own start."""

    since: float


Start: TypeAlias = FromSeq | FromTime


class ConsumerFeed(BufferedFeed[T], Generic[T]):
    """Follows one stream; `translate` makes an item of a stored message, `ready` of the marker."""

    def __init__(
        self,
        connection: Connection,
        stream: str,
        start: Start,
        *,
        translate: Callable[[Stored], T],
        ready: Callable[[Ready], T] | None,
        filters: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._connection = connection
        self._api = Api(connection)
        self._stream = stream
        self._start = start
        self._translate = translate
        self._make_ready = ready
        self._filters = list(filters)
        self._loop = asyncio.get_running_loop()
        self._created: str | None = None
        self._next = start.seq if isinstance(start, FromSeq) else 0
        self._ready_at: int | None = None
        self._consumer = ""
        self._consumer_seq = 0
        self._subscription: NatsSubscription | None = None
        self._held: list[str] = []
        self._heard = 0.0
        self._rebuild = asyncio.Event()
        self._timer = self._loop.call_later(HEARTBEAT_S, self._check_silence)
        connection.attach(self)
        self._task = self._loop.create_task(self._run())
        self._task.add_done_callback(self._on_end)

    # The consumer's life

    async def _run(self) -> None:
        try:
            await self._keep_following()
        finally:
            self._timer.cancel()
            self._connection.detach(self)
            await self._drop()

    async def _keep_following(self) -> None:
        failures = 0
        while True:
            self._rebuild.clear()
            try:
                await self._build()
                failures = 0
                await self._rebuild.wait()
            except (BusAway, BusRejected, StreamMissing) as error:
                if isinstance(error, StreamMissing) and isinstance(self._start, FromSeq):
                    raise
                if isinstance(error, BusRejected) and self._created is None:
                    raise
                self._connection.report(f"feed of {self._stream}: {error}")
                pause = RETRY_S[min(failures, len(RETRY_S) - 1)]
                failures += 1
                await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        """Wait, but no longer than until the connection is back."""
        try:
            async with asyncio.timeout(seconds):
                await self._rebuild.wait()
        except TimeoutError:
            return

    def _on_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    async def _build(self) -> None:
        await self._drop()
        state = await self._api.stream(self._stream)
        self._settle_start(state)
        name = self._connection.inbox().replace(".", "-").removeprefix("_INBOX_")
        inbox = self._connection.inbox()

        async def on_message(message: Msg) -> None:
            if self._consumer == name:
                await self._on_message(message)

        self._consumer, self._consumer_seq, self._heard = name, 0, self._loop.time()
        self._subscription = await self._connection.subscribe(inbox, on_message)
        answer = await self._api.call(*self._create_call(name, inbox))
        if self._ready_at is not None and int(answer.get("num_pending", 0)) == 0:
            self._say_ready()

    def _settle_start(self, state: StreamState) -> None:
        """Decide where to start. Raises LedgerGap, StreamReplaced."""
        fresh = self._created is None
        replaced = not fresh and (state.created != self._created or state.last + 1 < self._next)
        self._created = state.created
        if isinstance(self._start, FromSeq):
            if replaced:
                raise StreamReplaced(self._stream, self._next, state.last)
            if self._next > state.last + 1:
                raise LedgerGap(self._next, state.last + 1)
            if self._start.strict and self._next < state.first:
                raise LedgerGap(self._next, state.first)
        elif replaced:
            self._next = 0
        if self._make_ready is not None and (fresh or replaced):
            self._ready_at = state.last

    def _create_call(self, name: str, inbox: str) -> tuple[str, Mapping[str, object]]:
        config: dict[str, object] = {
            "name": name,
            "deliver_subject": inbox,
            "ack_policy": "none",
            "max_deliver": 1,
            "flow_control": True,
            "idle_heartbeat": int(HEARTBEAT_S * 1e9),
            "inactive_threshold": int(INACTIVE_S * 1e9),
            "mem_storage": True,
            "num_replicas": 1,
        }
        subject = f"CONSUMER.CREATE.{self._stream}.{name}"
        if len(self._filters) == 1:
            config["filter_subject"] = self._filters[0]
            subject = f"{subject}.{self._filters[0]}"
        elif self._filters:
            config["filter_subjects"] = self._filters
        if self._next > 0:
            config["deliver_policy"] = "by_start_sequence"
            config["opt_start_seq"] = self._next
        elif isinstance(self._start, FromTime) and self._start.since > 0:
            since = datetime.datetime.fromtimestamp(self._start.since, datetime.UTC)
            config["deliver_policy"] = "by_start_time"
            config["opt_start_time"] = since.isoformat().replace("+00:00", "Z")
        else:
            config["deliver_policy"] = "all"
        return subject, {"stream_name": self._stream, "config": config, "action": "create"}

    async def _drop(self) -> None:
        """Forget the present consumer, here and (as well as may be) on the server."""
        subscription, self._subscription = self._subscription, None
        name, self._consumer = self._consumer, ""
        self._held.clear()
        if subscription is not None:
            await self._connection.unsubscribe(subscription)
        if name:
            await self._connection.publish(f"$JS.API.CONSUMER.DELETE.{self._stream}.{name}", b"")

    # Messages

    async def _on_message(self, message: Msg) -> None:
        self._heard = self._loop.time()
        headers = message.headers
        if headers is not None and "Status" in headers and not message.data:
            await self._on_control(headers, message.reply)
            return
        tokens = message.reply.split(".")
        if len(tokens) == 12:  # acknowledgement subjects of the second version
            tokens = tokens[2:11]
        seq, consumer_seq = int(tokens[5]), int(tokens[6])
        if consumer_seq != self._consumer_seq + 1:
            self._lost()
            return
        self._consumer_seq = consumer_seq
        if self._start_is_strict and seq != self._next:
            self.fail(LedgerGap(self._next, seq))
            self._lost()
            return
        self._next = seq + 1
        stored = Stored(
            seq=seq,
            subject=message.subject,
            at=int(tokens[7]) / 1e9,
            headers=headers or NO_HEADERS,
            data=message.data,
        )
        self.push(self._translate(stored))
        if self._ready_at is not None and (seq >= self._ready_at or tokens[8] == "0"):
            self._say_ready()

    @property
    def _start_is_strict(self) -> bool:
        return isinstance(self._start, FromSeq) and self._start.strict

    async def _on_control(self, headers: Mapping[str, str], reply: str) -> None:
        """Flow control, heartbeats, and the end of the consumer."""
        if headers["Status"] != "100":
            self._lost()
            return
        last = headers.get("Nats-Last-Consumer")
        if last is not None and not reply:
            if int(last) != self._consumer_seq:
                self._lost()
                return
            if self._ready_at is not None and "Nats-Consumer-Stalled" not in headers:
                self._say_ready()
        go_on = reply or headers.get("Nats-Consumer-Stalled", "")
        if go_on and self.buffered < BUFFER_HIGH:
            await self._connection.publish(go_on, b"")
        elif go_on and go_on not in self._held:
            self._held.append(go_on)

    async def _drained(self) -> None:
        while self._held and self.buffered < BUFFER_LOW:
            await self._connection.publish(self._held.pop(), b"")

    def _say_ready(self) -> None:
        last, self._ready_at = self._ready_at, None
        if last is not None and self._make_ready is not None:
            self.push(self._make_ready(Ready(last=last)))

    def _lost(self) -> None:
        """Something may be missing: take nothing more from this consumer, make another."""
        self._consumer = ""
        self._rebuild.set()

    def _check_silence(self) -> None:
        if self._consumer and self._loop.time() - self._heard > SILENCE_S:
            self._rebuild.set()
        self._timer = self._loop.call_later(HEARTBEAT_S, self._check_silence)

    def fail(self, error: BaseException) -> None:
        """End the feed with an error and stop asking the server."""
        super().fail(error)
        self._task.cancel()

    def reconnected(self) -> None:
        """The connection is back: the server may have forgotten the consumer."""
        self._rebuild.set()

    def broken(self, error: BusClosed) -> None:
        """The connection will not come back."""
        self.fail(error)

    async def aclose(self) -> None:
        """End the feed and remove the consumer."""
        self.finish()
        await end(self._task)
