"""The one way to start a service, and the same machine in a test's own process."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

import click
import structlog
import uvloop
from aiohttp.web import AbstractRouteDef

from rackwright.bus.errors import BusAway, BusError
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.permissions import SERVICES, Role
from rackwright.bus.ports import Bus
from rackwright.core.machine import Machine
from rackwright.host import logs
from rackwright.host.clock import boottime
from rackwright.host.collecting import Collector
from rackwright.host.config import Settings, parse
from rackwright.host.crew import Crew
from rackwright.host.errors import HostError
from rackwright.host.hearing import Hears
from rackwright.host.keeping import watch_room
from rackwright.host.metrics import Metrics
from rackwright.host.patience import STEP_S
from rackwright.host.presence import Presence
from rackwright.host.runner import Runner
from rackwright.host.seldom import Seldom
from rackwright.host.standing import Standing
from rackwright.host.telemetry import Tracing
from rackwright.host.web import Web
from rackwright.wire.codec import message_adapter
from rackwright.wire.entries import ENTRIES

S = TypeVar("S")
CONNECT_RETRY_S = 1.0
READ_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Host(Generic[S]):
    """What a task beside the machine finds: the gateway answers queries from `runner.standing`."""

    settings: Settings
    bus: Bus
    runner: Runner[S]


Beside: TypeAlias = Callable[[Host[Any]], Coroutine[Any, Any, None]]


def run_service(
    machine: Machine[S],
    hears: Hears,
    *,
    patience_s: float = STEP_S,
    options: Sequence[click.Option] = (),
    beside: Sequence[Beside] = (),
    routes: Sequence[AbstractRouteDef] = (),
    arguments: Sequence[str] | None = None,
) -> NoReturn:
    """Run a machine as a process until SIGTERM or SIGINT; ends the process.

    Exit status 0: stopped; 1: it could not go on, and the last log line says why; 2: settings.
    `patience_s` 0 for a service whose copies share by shards. Tasks `beside` run while it lives.
    """
    settings = parse(machine.service, arguments, options)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        status = loop.run(
            serve(settings, machine, hears, patience_s=patience_s, beside=beside, routes=routes)
        )
    sys.exit(status)


async def serve(
    settings: Settings,
    machine: Machine[S],
    hears: Hears,
    *,
    patience_s: float = STEP_S,
    beside: Sequence[Beside] = (),
    routes: Sequence[AbstractRouteDef] = (),
) -> int:
    """Run a machine in this event loop until a signal; the exit status."""
    standing = Standing(service=settings.service, ordinal=settings.copy, cell=settings.cell)
    logs.set_up(standing, level=settings.log_level, style=settings.log_format)
    log = structlog.get_logger()
    log.info("service.starting", **_shown(settings))
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics = Metrics(settings.service, settings.copy, settings.cell)
    metrics.watch(standing)
    collector = Collector()
    web = Web(standing, metrics, routes)
    try:
        await web.start(settings.http_host, settings.http_port)
        with _tracing(settings) as tracing:
            bus = await _connected(settings, stop)
            if bus is not None:
                metrics.watch(standing, bus.link)
                runner = Runner(
                    machine,
                    hears,
                    bus,
                    standing=standing,
                    patience_s=patience_s,
                    metrics=metrics,
                    tracing=tracing,
                    archive=None if settings.state_dir is None else settings.state_dir / "archive",
                    collector=collector,
                )
                host = Host(settings=settings, bus=bus, runner=runner)
                await _live(host, stop, (*beside, partial(_settle, collector)))
    except (HostError, BusError, OSError) as error:
        log.critical("service.failed", why=str(error))
        return 1
    finally:
        await web.aclose()
    log.info("service.stopped")
    return 0


@contextmanager
def _tracing(settings: Settings) -> Iterator[Tracing]:
    tracing = Tracing()
    if settings.otlp_endpoint is not None or settings.trace_file is not None:
        # Here, as importing the SDK costs every start of a service that does not trace.
        from rackwright.host.exporters import make_tracing

        tracing = make_tracing(
            service=settings.service,
            copy=settings.copy,
            cell=settings.cell,
            endpoint=settings.otlp_endpoint,
            file=settings.trace_file,
        )
    try:
        yield tracing
    finally:
        tracing.close()


async def _connected(settings: Settings, stop: asyncio.Event) -> JetStreamBus | None:
    """The bus, as soon as it is there; None if told to stop before."""
    log = structlog.get_logger()
    makes = SERVICES[Role(settings.service)].makes if settings.service in set(Role) else ()
    stopped = asyncio.create_task(stop.wait(), name="stop")
    seldom = Seldom(boottime)

    def complained(why: str) -> None:
        times = seldom.count(why)
        if times:
            log.warning("bus.complained", why=why, times=times)

    try:
        while not stop.is_set():
            opening = asyncio.create_task(
                connect(
                    settings.connect_options(),
                    settings.cell,
                    replicas=settings.replicas,
                    limits=settings.limits,
                    recreate=makes,
                    on_error=complained,
                ),
                name="connect",
            )
            await asyncio.wait({opening, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                opening.cancel()
                await asyncio.wait({opening})
                return None
            try:
                return opening.result()
            except BusAway as error:
                log.warning("bus.awaited", why=str(error))
            await asyncio.wait({stopped}, timeout=CONNECT_RETRY_S)
        return None
    finally:
        stopped.cancel()


async def _live(host: Host[Any], stop: asyncio.Event, beside: Sequence[Beside]) -> None:
    """Run the machine and what lives beside it until `stop`; the bus is closed afterwards."""
    runner, bus = host.runner, host.bus
    failed = asyncio.Event()
    crew = Crew(failed.set)
    presence = Presence(
        bus,
        runner.standing,
        inbox=f"{host.settings.connect_options().inbox_prefix}.presence",
        tell=runner.set_copies,
        mono=boottime,
    )
    crew.start(presence.run(), "presence")
    room = watch_room(
        bus, host.settings.limits, runner.standing, runner.metrics, runner.look_around
    )
    crew.start(room, "room")
    crew.start(_pass_on(stop, runner), "stop")
    for work in beside:
        crew.start(work(host), "beside")
    running = asyncio.create_task(runner.run(), name="runner")
    broken = asyncio.create_task(failed.wait(), name="broken")
    try:
        await asyncio.wait({running, broken}, return_when=asyncio.FIRST_COMPLETED)
        crew.check()
        await running
    finally:
        for task in (running, broken):
            task.cancel()
        await asyncio.wait({running, broken})
        await crew.aclose()
        await bus.close()


async def _pass_on(stop: asyncio.Event, runner: Runner[Any]) -> None:
    await stop.wait()
    runner.stop()


async def _settle(collector: Collector, host: Host[Any]) -> None:
    """Collect no garbage while the ledger is read, then make ready for what has not come yet.

    Values are immutable and have no cycles, but a full collection over a large fleet would stop
    the service for a second. The reader of each entry type is made when it is first needed, which
    takes milliseconds: the first fault should not wait for it.
    """
    gc.disable()
    try:
        async with asyncio.timeout(READ_S):
            await host.runner.standing.readied.wait()
    except TimeoutError:
        pass
    finally:
        gc.enable()
    for type_name in ENTRIES:
        message_adapter(type_name)
        await asyncio.sleep(0)
    collector.begin()


def _shown(settings: Settings) -> dict[str, object]:
    """The settings for the log: what is secret has no place in it."""
    return {
        "nats": settings.nats,
        "user": settings.user,
        "replicas": settings.replicas,
        "state_dir": None if settings.state_dir is None else str(settings.state_dir),
        "traces": settings.otlp_endpoint or (settings.trace_file and str(settings.trace_file)),
    }


@asynccontextmanager
async def in_process(
    machine: Machine[S],
    hears: Hears,
    bus: Bus,
    *,
    ordinal: int = 0,
    patience_s: float = STEP_S,
    collector: Collector | None = None,
) -> AsyncIterator[Runner[S]]:
    """The same machine in a task of this process, ready to decide; stopped after the block.

    Raises what ended it, if something did.
    """
    standing = Standing(
        service=machine.service, ordinal=ordinal, cell=bus.cell, copies=(ordinal + 1, ordinal)
    )
    runner = Runner(
        machine, hears, bus, standing=standing, patience_s=patience_s, collector=collector
    )
    running = asyncio.create_task(runner.run(), name=standing.name)
    readied = asyncio.create_task(standing.readied.wait())
    try:
        await asyncio.wait({running, readied}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield runner
    finally:
        readied.cancel()
        runner.stop()
        await asyncio.wait({running, readied})
    running.result()
