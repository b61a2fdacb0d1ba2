"""The same trouble for both buses: crash the other side, lose an answer, go away and come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from rackwright.bus.embedded import EmbeddedOptions, EmbeddedServer
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.memory import MemoryBus
from rackwright.bus.memory_store import MemoryStore
from rackwright.bus.options import ConnectOptions
from rackwright.bus.ports import Bus
from rackwright.bus.streams import KIB, Kind, Limits, declare

CELL = "lab"
LIMITS = Limits(
    ledger_bytes=256 * KIB,
    wish_bytes=128 * KIB,
    signal_per_node=64,
    ledger_message=32 * KIB,
    wish_message=16 * KIB,
)


class Harness(Protocol):
    """One kind of bus, and the ways to hurt it."""

    async def bus(self) -> Bus:
        """Another connection to the same cell."""
        ...

    async def crash(self) -> None:
        """The other side dies."""
        ...

    async def recover(self) -> None:
        """The other side is back, with what it had stored on disk."""
        ...

    async def forget(self, kind: Kind) -> None:
        """The stream is lost and made anew, empty."""
        ...

    async def lose_answer(self, bus: Bus) -> None:
        """The next answer to this connection gets lost."""
        ...

    async def restore(self, bus: Bus) -> None:
        """Answers arrive again."""
        ...


class MemoryHarness:
    """Several memory buses over one store."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.store = MemoryStore(declare(CELL, limits=LIMITS), lambda: self.now)
        self._buses: list[MemoryBus] = []

    async def bus(self) -> MemoryBus:
        self._buses.append(MemoryBus(self.store, CELL))
        return self._buses[-1]

    async def crash(self) -> None:
        for bus in self._buses:
            bus.link.cut()

    async def recover(self) -> None:
        for bus in self._buses:
            bus.link.mend()

    async def forget(self, kind: Kind) -> None:
        self.store.make(kind)

    async def lose_answer(self, bus: Bus) -> None:
        assert isinstance(bus, MemoryBus)
        bus.link.lose_answers()

    async def restore(self, bus: Bus) -> None:
        """Only one answer was lost."""

    async def close(self) -> None:
        for bus in self._buses:
            await bus.close()


class Proxy:
    """Passes bytes to a server; can stop passing what the server says."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("nats://").partition(":")
        self._target = (host, int(port))
        self._server: asyncio.Server | None = None
        self._hears = asyncio.Event()
        self._hears.set()
        self._pairs: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"nats://127.0.0.1:{port}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            up_reader, up_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.close()
            return
        self._pairs.append((writer, up_writer))
        up = asyncio.create_task(self._pass(reader, up_writer, None))
        down = asyncio.create_task(self._pass(up_reader, writer, self._hears))
        self._tasks |= {up, down}

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        gate: asyncio.Event | None,
    ) -> None:
        try:
            while data := await reader.read(65536):
                if gate is None or gate.is_set():
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    def mute(self) -> None:
        """From now on what the server says is lost."""
        self._hears.clear()

    def hang_up(self) -> None:
        """Let the server be heard again, on new connections."""
        self._hears.set()
        for pair in self._pairs:
            for writer in pair:
                writer.close()
        self._pairs.clear()

    async def close(self) -> None:
        self.hang_up()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            self._server.close()


class JetStreamHarness:
    """A real nats-server, and a proxy before each connection."""

    def __init__(self, data_dir: Path) -> None:
        self.server = EmbeddedServer(EmbeddedOptions(data_dir=data_dir))
        self._buses: list[tuple[JetStreamBus, Proxy]] = []
        self.errors: list[str] = []

    async def open(self) -> None:
        await self.server.start()
        (bus, proxy) = await self._connect("admin", tuple(Kind))
        await bus.ensure()
        self._buses.append((bus, proxy))

    async def _connect(self, name: str, recreate: tuple[Kind, ...]) -> tuple[JetStreamBus, Proxy]:
        proxy = Proxy(self.server.url)
        await proxy.open()
        options = ConnectOptions(
            servers=(proxy.url,), identity=name, reconnect_s=0.05, request_s=0.7, ping_s=0.5
        )
        recreate = tuple(k for k in recreate if k is not Kind.INTAKE)
        bus = await connect(
            options, CELL, limits=LIMITS, recreate=recreate, on_error=self.errors.append
        )
        return bus, proxy

    async def bus(self) -> JetStreamBus:
        self._buses.append(await self._connect(f"client{len(self._buses)}", ()))
        return self._buses[-1][0]

    async def crash(self) -> None:
        await self.server.kill()

    async def recover(self) -> None:
        back = [asyncio.Event() for _ in self._buses]
        for (bus, _), event in zip(self._buses, back, strict=True):
            bus.link.on_reconnect(event.set)
        await self.server.start()
        await asyncio.gather(*(event.wait() for event in back))
        await self._buses[0][0].ensure()  # its owners make anew what was in memory; wait for that

    async def forget(self, kind: Kind) -> None:
        admin = self._buses[0][0]
        await admin.api.call(f"STREAM.DELETE.{admin.specs[kind].name}")
        await admin.ensure()

    async def lose_answer(self, bus: Bus) -> None:
        self._proxy(bus).mute()

    async def restore(self, bus: Bus) -> None:
        back = asyncio.Event()
        bus.link.on_reconnect(back.set)
        self._proxy(bus).hang_up()
        await back.wait()

    def _proxy(self, wanted: Bus) -> Proxy:
        return next(proxy for bus, proxy in self._buses if bus is wanted)

    async def close(self) -> None:
        for bus, proxy in self._buses:
            await bus.close()
            await proxy.close()
        await self.server.stop()


@asynccontextmanager
async def opened(name: str, data_dir: Path) -> AsyncIterator[MemoryHarness | JetStreamHarness]:
    """A harness by name, closed afterwards."""
    harness: MemoryHarness | JetStreamHarness
    if name == "memory":
        harness = MemoryHarness()
    else:
        harness = JetStreamHarness(data_dir)
        await harness.open()
    try:
        yield harness
    finally:
        await harness.close()
