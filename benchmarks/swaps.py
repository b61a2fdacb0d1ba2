"""From a line in a kernel log to the swap in the ledger, in a calm cell and during many submits.

The fault is an immediate signal (Xid 79). A swap counts from the time that nats-server stamps on
its commit, just before the sync (`fsync_p50_ms` is beside every figure). When it was folded here
would say as much of this process, which submits the burst, as of the services. Workers are
pretended; `benchmarks.workers` measures real ones.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from benchmarks.live import LiveCell, live_cell
from benchmarks.measuring import Row, Scale, alone, spread
from rackwright.wire.ids import JobId, NodeId
from rackwright.wire.jobs import JobSpec

FALLEN = b"NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=python, GPU has fallen off the bus.\n"
WARM = 4  # faults before the counting begins
REST_S = 0.25


async def _rows(scale: Scale) -> AsyncIterator[Row]:
    racks, burst = scale.pick(60, 12), scale.pick(10_000, 1_000)
    async with live_cell(racks, pretend=True, agents=2) as cell:
        await cell.stack.ready(cell.watched)
        names = [f"t{turn}" for turn in range(racks)]
        await cell.submit(names, JobSpec(name=JobId("t"), nodes=16, pretend_s=3600.0))
        await cell.started(names)
        for name in names[:WARM]:
            await fault_to_recovery(cell, name, 0)
        calm = [await _in_calm(cell, name) for name in names]
        for row in spread("fault_to_swap", "ms", calm, cell.params(nodes=racks * 18)):
            yield row
        params = cell.params(nodes=racks * 18, submits=burst)
        busy = await _in_a_burst(cell, names[WARM:], burst)
        for row in spread("fault_to_swap_burst", "ms", busy, params):
            yield row


async def _in_calm(cell: LiveCell, name: str) -> float:
    """One fault, after what the one before it set in motion has come to rest."""
    await cell.watched.until(lambda fleet: not fleet.leaving and not fleet.starting, 60.0)
    await asyncio.sleep(REST_S)
    return await fault_to_recovery(cell, name, 1)


async def fault_to_recovery(cell: LiveCell, name: str, rank: int) -> float:
    """Break the node of one rank; ms until the commit of its swap (or move), by the ledger."""
    job = cell.watched.fleet.jobs[JobId(name)]
    part = job.slices[0]
    node = cell.watched.fleet.racks[part.rack].nodes[part.nodes[rank]].name
    log = kernel_log(cell, node)
    at = time.time()
    write(log)
    after = await cell.watched.until(
        lambda fleet: fleet.jobs[JobId(name)].membership > job.membership, 60.0
    )
    return (after.time - at) * 1000


def kernel_log(cell: LiveCell, node: NodeId) -> Path:
    """Where the driver of a virtual node writes."""
    return cell.stack.options.state_dir / "nodes" / node / "kernel.log"


def write(log: Path) -> None:
    """One line, as the driver writes it."""
    with open(log, "ab") as file:
        file.write(FALLEN)


async def _in_a_burst(cell: LiveCell, names: list[str], burst: int) -> list[float]:
    """Faults one after the other, while so many small jobs are submitted and placed."""
    small = JobSpec(name=JobId("s"), gpus=1, pretend_s=3600.0)
    since = len(cell.watched.commits)
    submitting = asyncio.create_task(cell.submit((f"s{n}" for n in range(burst)), small))
    await cell.watched.until(lambda fleet: len(cell.watched.commits) > since + 10)
    times = [await fault_to_recovery(cell, name, 2) for name in names]
    await submitting
    return times


def measure(scale: Scale) -> Iterator[Row]:
    """Fault written -> slice.swapped in the ledger, calm and during a burst of submits."""

    async def run() -> list[Row]:
        return [row async for row in _rows(scale)]

    yield from asyncio.run(run())


if __name__ == "__main__":
    alone(measure)
