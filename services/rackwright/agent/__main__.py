"""`python -m rackwright.agent`: the agent of this node, or of a fleet of virtual ones."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import structlog
import uvloop

from rackwright.agent.cgroups import turn_on_limits, writable_root
from rackwright.agent.config import neighbours_key, options, read_nodes
from rackwright.agent.fleet import AgentProcess, NodeConfig
from rackwright.agent.inject import Injector, targets
from rackwright.agent.refusals import NodeTaken
from rackwright.bus.errors import BusAway, BusError
from rackwright.bus.jetstream import connect
from rackwright.bus.ports import Bus
from rackwright.host import logs
from rackwright.host.config import Settings, parse
from rackwright.host.errors import BadSetting
from rackwright.host.standing import Standing

CONNECT_RETRY_S = 1.0
log = structlog.get_logger()


async def main(settings: Settings) -> int:
    """Run until a signal; the exit status. Workers outlive it by their lease."""
    standing = Standing(service=settings.service, ordinal=settings.copy, cell=settings.cell)
    logs.set_up(standing, level=settings.log_level, style=settings.log_format)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        nodes = read_nodes(dict(settings.more), settings.state_dir)
        bus = await _connected(settings, _inbox(settings, nodes), stop)
        if bus is None:
            return 0
        process = AgentProcess(
            bus,
            nodes,
            pretend=settings.more["pretend"],
            hooks=settings.more["hooks"],
            cgroups=_cgroups(pretend=settings.more["pretend"]),
            key=neighbours_key(settings),
            asked_at=(settings.more["neighbours_host"], settings.more["neighbours_port"]),
        )
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process.run(standing.readied.set))
            more = [tasks.create_task(_closed(bus))]
            if settings.http_port:
                # Here, as an HTTP server costs every start of an agent that has none.
                from rackwright.agent.answering import answer

                serving = answer(settings, standing, bus.link, process.nodes.values())
                more.append(tasks.create_task(serving))
            if settings.more["inject"]:
                await standing.readied.wait()
                injecting = Injector(bus, targets(process, nodes)).run()
                more.append(tasks.create_task(injecting))
            await stop.wait()
            for task in (running, *more):
                task.cancel()
        await bus.close()
    except* (BusError, BadSetting, NodeTaken, OSError) as failed:
        for error in _leaves(failed):
            log.critical("agent.failed", why=str(error), kind=type(error).__name__)
        standing.why = "failed"
    log.info("agent.stopped")
    return 1 if standing.why == "failed" else 0


def _cgroups(*, pretend: bool) -> Path | None:
    """Where workers get cgroups; says so if nothing holds them to their share of a node."""
    root = None if pretend else writable_root()
    if not pretend and (root is None or not turn_on_limits(root)):
        why = "no cgroup v2 of its own" if root is None else f"{root} gives no limits below it"
        log.warning("limits.none", why=why, what="shared nodes: cores and memory are not enforced")
    return root


def _leaves(failed: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """What really happened; groups come in groups, and say nothing themselves."""
    for error in failed.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def _inbox(settings: Settings, nodes: tuple[NodeConfig, ...]) -> str:
    """A node's own, as all nodes may share a user; for virtual ones that of the process."""
    if settings.more["fleet"] is not None:
        return f"fleet.{settings.copy}"
    return f"node-agent.{nodes[0].node}"


async def _connected(settings: Settings, inbox: str, stop: asyncio.Event) -> Bus | None:
    options = replace(settings.connect_options(), inbox=inbox)
    while not stop.is_set():
        try:
            return await connect(options, settings.cell)
        except BusAway as error:
            log.warning("bus.awaited", why=str(error))
        await asyncio.wait({asyncio.create_task(stop.wait())}, timeout=CONNECT_RETRY_S)
    return None


async def _closed(bus: Bus) -> None:
    why = await bus.link.closed()
    raise BusError(f"the bus connection is closed for good: {why}")


if __name__ == "__main__":
    found = parse("node-agent", None, options())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(main(found)))
