"""Heartbeats of 25,000 nodes (100,000 GPUs), shared by three copies of the health-monitor.

Meanwhile single nodes have faults, then 750 at once, then one node reports without end while others
have faults. A fault counts from when it was published until `node.unfit` was stored, by the clock
of this machine. The nodes are in a snapshot, one process beats for all of them, nobody runs work.
"""

import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.beating import CELL, nodes_of
from benchmarks.contention import CALM, begin, opened
from benchmarks.fleets import empty_cell
from benchmarks.measuring import Row, Scale, alone, fsync_now, load, machine, python_loop_ns, spread
from rackwright.bus.embedded import EmbeddedOptions, EmbeddedServer
from rackwright.bus.jetstream import JetStreamBus
from rackwright.host.commits import Author
from rackwright.wire.codec import decode_commit
from rackwright.wire.entries.node import NodeUnfit
from rackwright.wire.ids import NodeId, RackId, SessionId
from rackwright.wire.signals import Fault, SignalKind
from rackwright.wire.subjects import Subjects

COPIES = 3
INTERVAL_S = 2.0  # the default of `heartbeat_s`
WARM_S, PAUSE_S, PATIENCE_S = 10.0, 0.1, 120.0
Named = tuple[RackId, NodeId]


class Watch:
    """Publishes faults and sees when the ledger has them."""

    def __init__(self, bus: JetStreamBus) -> None:
        self._bus = bus
        self._author = Author(CELL, "agent", 1)
        self._subjects = Subjects(CELL)
        self._unfit: dict[NodeId, float] = {}
        self._came = asyncio.Event()

    async def follow(self) -> None:
        """Until cancelled."""
        async with self._bus.ledger.follow(2) as feed:
            while True:
                for stored in await feed.batch():
                    kind = stored.subject.partition(".ledger.")[2]
                    if kind == NodeUnfit.TYPE:
                        for entry in decode_commit(kind, stored.data).entries:
                            self._unfit.setdefault(entry.node, stored.at)  # type: ignore[attr-defined]
                self._came.set()

    async def fault(self, rack: RackId, node: NodeId) -> None:
        """An immediate one."""
        body = Fault(
            node=node,
            rack=rack,
            session=SessionId(f"s-{node}"),
            kind=SignalKind.XID,
            xid=79,
            gpu=0,
            observed_at=time.time(),
        )
        data = self._author.said(body, time.time())
        await self._bus.signals.publish(self._subjects.signal(rack, node), data)

    async def times(self, nodes: Sequence[Named], pause_s: float) -> list[float]:
        """Ms from publishing to the ledger, of faults one after the other or (0) all at once."""
        sent: dict[NodeId, float] = {}
        asked = []
        for rack, node in nodes:
            sent[node] = time.time()
            if pause_s:
                await self.fault(rack, node)
                await asyncio.sleep(pause_s)
            else:
                asked.append(self.fault(rack, node))
        await asyncio.gather(*asked)
        async with asyncio.timeout(PATIENCE_S):
            while not sent.keys() <= self._unfit.keys():
                self._came.clear()
                await self._came.wait()
        return [1000 * (self._unfit[node] - at) for node, at in sent.items()]


async def _child(role: str, ordinal: int, count: int, url: str) -> asyncio.subprocess.Process:
    words = (role, str(ordinal), str(count), str(INTERVAL_S), url)
    made = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.beating", *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    return made


async def _said(children: Iterable[asyncio.subprocess.Process]) -> list[dict[str, Any]]:
    found = []
    for child in children:
        out, _ = await child.communicate(b"end\n")
        found.append(json.loads(out.splitlines()[-1]))
    return found


async def _ready(child: asyncio.subprocess.Process) -> None:
    assert child.stdout is not None
    if (said := await child.stdout.readline()).strip() != b"ready":
        raise RuntimeError(f"'ready' was expected, {said!r} came")


async def _run(scale: Scale, url: str, params: dict[str, Any]) -> list[Row]:
    racks, burst = params["racks"], scale.pick(750, 100)
    bus = await opened((url,), 1)
    fleet = replace(empty_cell(racks, random.Random(scale.seed), down=0.0), time=time.time())
    await begin(bus, replace(fleet, policy=CALM))
    monitors = [await _child("monitor", number, COPIES, url) for number in range(COPIES)]
    for each in monitors:
        await _ready(each)
    beater = await _child("beater", 0, racks, url)
    await _ready(beater)
    watch = Watch(bus)
    following = asyncio.create_task(watch.follow())
    await asyncio.sleep(WARM_S)
    nodes = list(nodes_of(racks))[1:]  # the first is to be the wild one
    random.Random(scale.seed).shuffle(nodes)
    single, at_once, beside = _split(nodes, scale.pick(100, 30), burst, 30)
    rows = list(spread("load_fault", "ms", await watch.times(single, PAUSE_S), params))
    together = await watch.times(at_once, 0.0)
    rows += spread("load_burst", "ms", together, {**params, "faults": burst})
    wild = await _child("stormer", 0, 1, url)
    await _ready(wild)
    stormy = await watch.times(beside, PAUSE_S)
    (stormed,) = await _said([wild])
    rows += spread("load_beside_storm", "ms", stormy, {**params, **stormed})
    following.cancel()
    await asyncio.wait({following})
    (beaten,) = await _said([beater])
    heard = await _said(monitors)
    told = {**params, **beaten, "monitors": heard}
    share = sum(one["beats"] for one in heard) / beaten["sent"]
    rows.append(Row(name="load_beats_heard", params=told, value=100 * share, unit="%"))
    await bus.close()
    return rows


def _split(nodes: Sequence[Named], *sizes: int) -> Iterator[Sequence[Named]]:
    start = 0
    for size in sizes:
        yield nodes[start : start + size]
        start += size


def measure(scale: Scale) -> Iterator[Row]:
    """Faults of a cell of 25,000 nodes while all of them beat; a burst, and a storm of one node."""
    racks = scale.pick(1_389, 200)
    with tempfile.TemporaryDirectory(prefix="rackwright-bench-") as folder:
        params = {"racks": racks, "nodes": racks * 18, "interval_s": INTERVAL_S, "copies": COPIES}
        params |= {"turn_ns": round(python_loop_ns()), "fsync_p50_ms": round(fsync_now(), 3)}

        async def run() -> list[Row]:
            async with EmbeddedServer(EmbeddedOptions(data_dir=Path(folder))) as server:
                return await _run(scale, server.url, {**params, **machine(), "load": load()})

        yield from asyncio.run(run())


if __name__ == "__main__":
    alone(measure)
