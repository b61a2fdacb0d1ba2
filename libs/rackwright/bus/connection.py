"""One connection to NATS, wrapped so that none of nats-py's known faults reaches a service.

Each workaround names its fault; nothing outside this package imports nats.
"""

from __future__ import annotations

import asyncio
import importlib.util
import random
import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from nats.aio.client import Server
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription
from nats.errors import Error as NatsError

from rackwright.bus.cancelling import end, heeding_cancellation
from rackwright.bus.client import NatsClient
from rackwright.bus.errors import AuthFailed, BusAway, BusClosed, MissingExtra, WrongUser
from rackwright.bus.options import ConnectOptions
from rackwright.bus.ports import NO_HEADERS, Cause, Headers
from rackwright.bus.requests import Requests, Unanswered

DENIED = re.compile(r"permissions violation for (publish|subscription) to \"?([^\"'\s]+)")
WATCHDOG_S = 1.0
CLOSE_S = 8.0
LONGEST_FLUSH_S = 3600


class Dependent(Protocol):
    """Something that lives on a connection and must follow its fate."""

    def reconnected(self) -> None:
        """The connection is back; whatever the server kept for it may be gone."""

    def broken(self, error: BusClosed) -> None:
        """The connection will not come back."""

    async def aclose(self) -> None:
        """The connection is about to be closed on purpose."""


class Connection:
    """Implements `ports.Link`, and what the ports need: publish, subscribe, ask."""

    def __init__(self, options: ConnectOptions) -> None:
        self.options = options
        self._nc = NatsClient()
        self._requests = Requests(self._nc, patience=options.request_s)
        self._loop = asyncio.get_running_loop()
        self._closed: asyncio.Future[str] = self._loop.create_future()
        self._refused_login: asyncio.Future[str] = self._loop.create_future()
        self._denied = 0
        self._reconnects = 0
        self._dialled = False
        self._opened = False
        self._deaf: WrongUser | None = None
        self._last_error = ""
        self._stuck_since: float | None = None
        self._reconnect_calls: list[Callable[[], None]] = []
        self._disconnect_calls: list[Callable[[], None]] = []
        self._denied_calls: list[Callable[[str, str], None]] = []
        self._error_calls: list[Callable[[str], None]] = []
        self._watchdog: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._dependents: dict[Dependent, None] = {}

    async def open(self) -> None:
        """Connect within `connect_s`. Raises BusAway, AuthFailed, WrongUser, MissingExtra."""
        connecting = asyncio.ensure_future(self._connect())
        try:
            either: set[asyncio.Future[Any]] = {connecting, self._refused_login}
            await asyncio.wait(
                either, timeout=self.options.connect_s, return_when=asyncio.FIRST_COMPLETED
            )
            if self._refused_login.done():
                raise AuthFailed(self.options.identity, self._refused_login.result())
            if not connecting.done():
                raise BusAway("connect", self._last_error or "no answer")
            connecting.result()
            await self._requests.start(self._nc.new_inbox())
            # Behind it the server has said whether we may hear our answers.
            await self.flush(self.options.connect_s)
            if self._deaf is not None:
                raise self._deaf
        except BaseException:
            await end(connecting)
            await self.close()
            raise
        self._opened = True
        self._watchdog = self._loop.call_later(WATCHDOG_S, self._watch)

    async def _connect(self) -> None:
        o = self.options
        if o.nkey_seed_file is not None:
            _need_nkeys()
        context = o.tls()
        self._dialled = True
        await self._nc.connect(
            servers=list(o.servers),
            name=o.identity,
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnect,
            reconnected_cb=self._on_reconnect,
            closed_cb=self._on_closed,
            user=o.user,
            password=o.password,
            nkeys_seed=None if o.nkey_seed_file is None else str(o.nkey_seed_file),
            tls=context,
            tls_hostname=o.tls_hostname if context is not None else None,
            inbox_prefix=o.inbox_prefix,
            connect_timeout=o.connect_attempt_s,  # type: ignore[arg-type]
            reconnect_time_wait=o.reconnect_s,  # type: ignore[arg-type]
            max_reconnect_attempts=-1,
            ping_interval=o.ping_s,  # type: ignore[arg-type]
            max_outstanding_pings=o.pings_out,
            drain_timeout=3,
            # Ghost writes: what cannot be sent now is never sent later.
            pending_size=0,
            # No jitter of its own: all clients of a restarted server would return together.
            reconnect_to_server_handler=self._choose_server,
        )

    def _choose_server(
        self, servers: list[Server], _info: dict[str, object]
    ) -> tuple[Server | None, float]:
        # An attempt that got a socket but no greeting leaves it open: close it before the next one.
        self._abort_transport(closing_only=False)
        return random.choice(servers), self.options.reconnect_s * random.uniform(0.5, 1.5)

    # What the client reports. A callback of nats-py that raises kills its reading task, therefore
    # listeners are called from the loop, never from here.

    async def _on_error(self, error: Exception) -> None:
        text = str(error) or type(error).__name__
        self._last_error = text
        lowered = text.lower()
        if found := DENIED.search(lowered):
            self._denied += 1
            operation, subject = found.groups()
            self._requests.denied(subject)
            if operation == "subscription" and self._requests.answered_on(subject):
                self._set_deaf()
            for on_denied in self._denied_calls:
                self._loop.call_soon(on_denied, operation, subject)
            return
        if "authorization violation" in lowered and not self._refused_login.done():
            self._refused_login.set_result(text)
        for on_error in self._error_calls:
            self._loop.call_soon(on_error, text)

    def _set_deaf(self) -> None:
        """Nobody could answer us: no request would ever fail but by its patience."""
        o = self.options
        self._deaf = WrongUser(o.identity, o.user or "of the nkey", f"{o.inbox_prefix}.>")
        if self._opened:
            self._set_closed(str(self._deaf))

    async def _on_disconnect(self) -> None:
        self._stuck_since = None
        # What was written but not yet flushed would be sent after the reconnect: a ghost write.
        self._nc._pending = []
        self._nc._pending_data_size = 0
        self._requests.lost()
        if self._opened:
            for call in self._disconnect_calls:
                self._loop.call_soon(call)

    async def _on_reconnect(self) -> None:
        self._reconnects += 1
        for dependent in self._dependents:
            self._loop.call_soon(dependent.reconnected)
        for call in self._reconnect_calls:
            self._loop.call_soon(call)

    async def _on_closed(self) -> None:
        self._requests.lost()
        self._set_closed(self._why_closed())

    def _why_closed(self) -> str:
        return str(self._nc.last_error or "") or self._last_error or "closed by the server"

    def _set_closed(self, reason: str) -> None:
        if not self._closed.done():
            self._closed.set_result(reason)
            for dependent in self._dependents:
                self._loop.call_soon(dependent.broken, BusClosed(reason))

    def _watch(self) -> None:
        """Twice dead and not told: a reading task that ended, a close that waits for ever."""
        if self._nc.is_closed:
            self._set_closed(self._why_closed())
            return
        reading = self._nc._reading_task
        if self._nc.is_connected and reading is not None and reading.done():
            self._later(self._nc.force_reconnect())
        if not self._nc.is_reconnecting:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = self._loop.time()
        elif self._loop.time() - self._stuck_since > 2 * WATCHDOG_S:
            self._abort_transport()
        self._watchdog = self._loop.call_later(WATCHDOG_S, self._watch)

    def _abort_transport(self, *, closing_only: bool = True) -> None:
        """A peer that went silent never takes the last bytes: closing would wait for minutes."""
        transport = self._nc._transport
        writer = getattr(transport, "_io_writer", None)
        if writer is not None and (writer.is_closing() or not closing_only):
            writer.transport.abort()

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ports.Link

    @property
    def connected(self) -> bool:
        """Whether a message sent now would leave."""
        return bool(self._nc.is_connected) and not self._nc.is_draining

    @property
    def reconnects(self) -> int:
        """How often the connection came back."""
        return self._reconnects

    @property
    def denied(self) -> int:
        """How often the server refused a publish or a subscription."""
        return self._denied

    @property
    def server_version(self) -> str:
        """The server's version as it says it."""
        return str(self._nc._server_info.get("version", ""))

    @property
    def server_has_jetstream(self) -> bool:
        """Whether the server runs JetStream (the account may still not have it)."""
        return bool(self._nc._server_info.get("jetstream", False))

    @property
    def max_payload(self) -> int:
        """Largest message in bytes, headers included, that the server takes."""
        return int(self._nc.max_payload)

    def on_reconnect(self, callback: Callable[[], None]) -> None:
        """See ports.Link."""
        self._reconnect_calls.append(callback)

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """See ports.Link."""
        self._disconnect_calls.append(callback)

    def on_denied(self, callback: Callable[[str, str], None]) -> None:
        """See ports.Link; subjects arrive in lower case, as nats-py folds them."""
        self._denied_calls.append(callback)

    def on_error(self, callback: Callable[[str], None]) -> None:
        """See ports.Link."""
        self._error_calls.append(callback)

    def report(self, text: str) -> None:
        """Tell the `on_error` listeners something the ports noticed."""
        for on_error in self._error_calls:
            self._loop.call_soon(on_error, text)

    async def closed(self) -> str:
        """See ports.Link."""
        return await asyncio.shield(self._closed)

    # What the ports use

    async def ask(
        self,
        subject: str,
        data: bytes,
        headers: Headers = NO_HEADERS,
        *,
        patience: float | None = None,
    ) -> Msg:
        """Send and wait for one answer. Raises Unanswered, BusDenied."""
        if not self.connected:
            raise Unanswered(Cause.AWAY, "not connected")
        return await self._requests.ask(subject, data, headers, patience)

    async def publish(
        self, subject: str, data: bytes, headers: Headers = NO_HEADERS, reply: str = ""
    ) -> bool:
        """Send now or say False."""
        if not self.connected:
            return False
        try:
            with heeding_cancellation():
                await self._nc.publish(subject, data, reply, dict(headers) if headers else None)
        except NatsError:
            return False
        return True

    async def subscribe(
        self, subject: str, call: Callable[[Msg], Awaitable[None]], *, queue: str = ""
    ) -> NatsSubscription:
        """Hear a subject; bounds are the caller's business. Raises BusAway."""
        try:
            with heeding_cancellation():
                return await self._nc.subscribe(
                    subject, queue, cb=call, pending_msgs_limit=0, pending_bytes_limit=0
                )
        except NatsError as error:
            raise BusAway(f"subscribe {subject}", str(error) or type(error).__name__) from error

    async def unsubscribe(self, subscription: NatsSubscription) -> None:
        """End a subscription, whatever state the connection is in."""
        try:
            with heeding_cancellation():
                await subscription.unsubscribe()
        except NatsError:
            return  # closed already, or the connection is: the server has forgotten it too

    async def flush(self, patience: float | None = None) -> None:
        """Wait until the server has seen everything sent so far. Raises BusAway.

        nats-py answers to a flush that was given up with an error that ends its reading task, so
        none is: it goes on by itself, at most until the connection has surely ended.
        """
        flushing = asyncio.ensure_future(self._nc.flush(timeout=LONGEST_FLUSH_S))
        self._tasks.add(flushing)
        flushing.add_done_callback(self._flushed)
        limit = self.options.request_s if patience is None else patience
        await asyncio.wait({flushing}, timeout=limit)
        if not flushing.done() or flushing.cancelled():
            raise BusAway("flush", "no answer in time")
        error = flushing.exception()
        if error is not None:
            raise BusAway("flush", str(error) or type(error).__name__) from error

    def _flushed(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be left to hear it

    def attach(self, dependent: Dependent) -> None:
        """From now on `dependent` is told of reconnects and of the end. Raises BusClosed."""
        if self._closed.done():
            raise BusClosed(self._closed.result())
        self._dependents[dependent] = None

    def detach(self, dependent: Dependent) -> None:
        """Forget it; nothing happens if it is not known."""
        self._dependents.pop(dependent, None)

    def inbox(self) -> str:
        """A new subject that only this identity may hear."""
        return str(self._nc.new_inbox())

    async def close(self) -> None:
        """Drain if there is somebody to drain to, then close; at most `CLOSE_S` seconds."""
        if self._watchdog is not None:
            self._watchdog.cancel()
        for dependent in list(self._dependents):
            await dependent.aclose()
        self._set_closed("closed here")
        if not self._dialled:
            return
        try:
            async with asyncio.timeout(CLOSE_S):
                if self.connected:
                    await self._nc.drain()
                await self._nc.close()
        except (TimeoutError, NatsError):
            self._abort_transport()
        self._requests.lost()
        for task in tuple(self._tasks):
            await end(task)


def _need_nkeys() -> None:
    if importlib.util.find_spec("nkeys") is None:
        raise MissingExtra("nkeys", "an nkey seed file needs the package nkeys")
