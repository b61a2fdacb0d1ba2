"""The processes of `benchmarks.load`: what beats for very many nodes, and copies of the real
health-monitor that hear it."""

import asyncio
import json
import logging
import resource
import sys
import time
from collections.abc import Iterator
from statistics import median, quantiles

import structlog
import uvloop

from benchmarks.fleets import NODES
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.options import ConnectOptions
from rackwright.health_monitor.config import HEARS
from rackwright.health_monitor.machine import HealthMonitor
from rackwright.host.clock import boottime
from rackwright.host.commits import Author
from rackwright.host.service import in_process
from rackwright.wire.codec import Unreadable, decode
from rackwright.wire.ids import CellName, NodeId, RackId, SessionId
from rackwright.wire.signals import Echo, Fault, Heartbeat, SignalKind
from rackwright.wire.subjects import Subjects

CELL = CellName("bench")
AT_ONCE = 64  # reports of the wild node that are on their way
SLICES = 100  # of an interval; nodes beat spread over it
MARK = 987_654_321
REMEMBERED = 4  # beats of a node whose sending times are kept


def nodes_of(racks: int) -> Iterator[tuple[RackId, NodeId]]:
    """The nodes of `benchmarks.fleets.empty_cell`."""
    for number in range(racks):
        for place in range(NODES):
            yield RackId(f"r{number}"), NodeId(f"r{number}-n{place:02d}")


class Beater:
    """Beats for all nodes of a cell and measures echoes to the racks of one shard."""

    def __init__(self, bus: JetStreamBus, racks: int, interval_s: float) -> None:
        self._bus = bus
        self._interval = interval_s
        self._subjects = Subjects(CELL)
        author = Author(CELL, "agent", 0)
        self._beats = []
        for rack, node in nodes_of(racks):
            beat = Heartbeat(node=node, rack=rack, session=SessionId(f"s-{node}"), n=MARK)
            head, _, tail = author.said(beat, 0.0).partition(str(MARK).encode())
            self._beats.append((self._subjects.heartbeat(rack, node), head, tail))
        self._places = {node: place for place, (_, node) in enumerate(nodes_of(racks))}
        self._sent = [[0.0] * REMEMBERED for _ in self._beats]
        self.sent = 0
        self.late_s = 0.0
        self.echoed: list[float] = []

    async def beat(self) -> None:
        """Until cancelled; `late_s` is by how much it was ever behind."""
        n, due, count = 0, time.monotonic(), len(self._beats)
        while True:
            n += 1
            for turn in range(SLICES):
                for place in range(count * turn // SLICES, count * (turn + 1) // SLICES):
                    subject, head, tail = self._beats[place]
                    self._sent[place][n % REMEMBERED] = time.monotonic()
                    await self._bus.core.publish(subject, b"%b%d%b" % (head, n, tail))
                    self.sent += 1
                due += self._interval / SLICES
                left = due - time.monotonic()
                self.late_s = max(self.late_s, -left)
                await asyncio.sleep(max(0.0, left))

    async def hear(self) -> None:
        """Echoes to one shard, until cancelled."""
        pattern = self._subjects.echo(RackId("r0")).rpartition(".")[0] + ".*"
        subscription = await self._bus.core.subscribe(pattern)
        while messages := await subscription.batch():
            now = time.monotonic()
            for message in messages:
                try:
                    lines = decode(Echo, message.data).body.lines
                except Unreadable:
                    continue
                for line in lines:
                    sent = self._sent[self._places[line.node]][line.n % REMEMBERED]
                    self.echoed.append(now - sent)


async def beat(bus: JetStreamBus, racks: int, interval_s: float) -> dict[str, float]:
    """Be all agents until told to end."""
    beater = Beater(bus, racks, interval_s)
    tasks = [asyncio.create_task(work) for work in (beater.beat(), beater.hear())]
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    cuts = quantiles(beater.echoed, n=100, method="inclusive")
    return {
        "sent": beater.sent,
        "late_s": round(beater.late_s, 2),
        "echo_p50_s": round(median(beater.echoed), 3),
        "echo_p99_s": round(cuts[98], 3),
    }


async def watch(bus: JetStreamBus, ordinal: int, copies: int) -> dict[str, float]:
    """Be one copy of the health-monitor until told to end."""
    async with in_process(HealthMonitor(), HEARS, bus, ordinal=ordinal, patience_s=0.0) as runner:
        runner.set_copies(copies, ordinal)
        print("ready", flush=True)
        began, used = boottime(), time.process_time()
        await asyncio.to_thread(sys.stdin.readline)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        count = runner.metrics.registry.get_sample_value
        return {
            "cpu": round((time.process_time() - used) / (boottime() - began), 2),
            "peak_mb": round(usage.ru_maxrss / 1024),
            "beats": count("rackwright_heard_total", {"source": "heartbeats"}) or 0.0,
            "dropped": count("rackwright_slow_consumer_total", {"source": "heartbeats"}) or 0.0,
        }


async def storm(bus: JetStreamBus, node: NodeId) -> dict[str, float]:
    """Be one node that reports as fast as the bus takes it, until told to end."""
    rack = RackId(node.partition("-")[0])
    subject, author = Subjects(CELL).signal(rack, node), Author(CELL, "agent", 2)
    body = Fault(
        node=node, rack=rack, session=SessionId(f"s-{node}"), kind=SignalKind.XID, xid=13, gpu=0
    )
    began, sent, ended = time.monotonic(), 0, asyncio.Event()
    print("ready", flush=True)
    waiting = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    waiting.add_done_callback(lambda _: ended.set())
    while not ended.is_set():
        said = (author.said(body, time.time()) for _ in range(AT_ONCE))
        await asyncio.gather(*(bus.signals.publish(subject, one) for one in said))
        sent += AT_ONCE
    return {"reports_per_s": round(sent / (time.monotonic() - began))}


async def main(role: str, ordinal: int, count: int, interval_s: float, url: str) -> None:
    """`beater` for `count` racks, copy `ordinal` of `count` monitors, or a `stormer`."""
    options = ConnectOptions(servers=(url,), identity=f"{role}-{ordinal}")
    bus = await connect(options, CELL, replicas=1)
    match role:
        case "beater":
            work = beat(bus, count, interval_s)
        case "monitor":
            work = watch(bus, ordinal, count)
        case _:
            work = storm(bus, NodeId("r0-n00"))
    print(json.dumps(await work), flush=True)
    await bus.close()


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        role, ordinal, count, interval, url = sys.argv[1:]
        loop.run(main(role, int(ordinal), int(count), float(interval), url))
