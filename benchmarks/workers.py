"""From a line in a kernel log to the process that replaces the lost one."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator

from benchmarks.live import LiveCell, live_cell
from benchmarks.measuring import Row, Scale, alone, spread
from benchmarks.swaps import kernel_log, write
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobSpec

JOB = JobId("t")


async def _rows(scale: Scale) -> AsyncIterator[Row]:
    racks = scale.pick(12, 4)
    async with live_cell(racks, agents=4) as cell:
        await cell.stack.ready(cell.watched)
        names = [f"t{turn}" for turn in range(racks)]
        await cell.submit(names, JobSpec(name=JOB, nodes=4, run="exec sleep 3600"))
        await cell.started(names)
        times = [await _replaced(cell, name, rank) for rank in range(2) for name in names]
        for row in spread("fault_to_worker", "ms", times, cell.params(workers=racks * 4)):
            yield row


async def _replaced(cell: LiveCell, name: str, rank: int) -> float:
    """Break the node of one rank; ms until its replacement's process was running on its node."""
    job = cell.watched.fleet.jobs[JobId(name)]
    part = job.slices[0]
    node = cell.watched.fleet.racks[part.rack].nodes[part.nodes[rank]].name
    at = time.time()
    write(kernel_log(cell, node))
    await cell.started_again(name, job.membership)
    after = cell.watched.fleet.jobs[JobId(name)]
    part = after.slices[0]
    home = cell.watched.fleet.racks[part.rack].nodes[part.nodes[rank]].name
    worker = part.worker(after.id, rank).replace("/", ".")
    state = cell.stack.options.state_dir / "nodes" / home / "workers" / worker / "state"
    record = json.loads(await asyncio.to_thread(state.read_bytes))
    return (float(record["at"]) - at) * 1000


def measure(scale: Scale) -> Iterator[Row]:
    """Fault written -> the replacement's process runs, by its supervisor's own record."""

    async def run() -> list[Row]:
        return [row async for row in _rows(scale)]

    yield from asyncio.run(run())


if __name__ == "__main__":
    alone(measure)
