"""The stage of the demo: a cell with real processes, and the few things the acts do with it."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rackwright.bus.ports import Bus
from rackwright.cli.asking import Answer, Cell
from rackwright.cli.demo.board import Board
from rackwright.cli.demo.telling import Teller
from rackwright.cli.stack import Stack
from rackwright.cli.watcher import Watched
from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, JobState
from rackwright.core.machine import Folded
from rackwright.host.clock import boottime
from rackwright.wire.codec import to_json
from rackwright.wire.entries.slice import SliceMoved, SliceSwapped
from rackwright.wire.ids import JobId, NodeId
from rackwright.wire.jobs import Checkpoint, JobClass, JobSpec
from rackwright.wire.message import Entry
from rackwright.wire.subjects import Subjects
from rackwright.wire.wishes import Submit

XID = "NVRM: Xid (PCI:{pci}): {text}"
PCI = "0000:01:00"

# A worker that counts, saves its count when asked to, and goes on from where it was saved.
WORKER = r"""
saved="$DEMO_SAVED/$RACKWRIGHT_JOB.$RACKWRIGHT_RANK"
n=0; [ -f "$saved" ] && n=$(cat "$saved")
echo "$n" >> "$saved.starts"
save() {
  echo "$n" > "$saved.new" && mv "$saved.new" "$saved" && : > "$RACKWRIGHT_CHECKPOINT_FILE"
}
trap save USR1
end=$((n + ${DEMO_STEPS:-1000000}))
while [ "$n" -lt "$end" ]; do sleep "${DEMO_STEP_S:-2}" & wait $!; n=$((n + 1)); done
"""


class Unplayable(Exception):
    """The cell is not as an act needs it, because of one before."""


@dataclass(slots=True, kw_only=True)
class Scene:
    """Everything an act needs."""

    stack: Stack
    bus: Bus
    cell: Cell
    watched: Watched
    board: Board
    tell: Teller
    saved: Path

    def spec(self, name: str, nodes: int, **more: object) -> JobSpec:
        """A job of counting workers that save on SIGUSR1."""
        settings: dict[str, object] = {
            "name": JobId(name),
            "nodes": nodes,
            "run": WORKER,
            "env": {"DEMO_SAVED": str(self.saved)},
            "notice_signal": "SIGUSR1",
            "grace_s": 0.5,
            "checkpoint": Checkpoint(interval_s=60.0, restart_s=60.0, on_notice_s=1.0),
            **more,
        }
        return JobSpec(**settings)  # type: ignore[arg-type]

    async def submit(self, spec: JobSpec) -> Answer:
        """Publish the wish, wait for the ledger's answer."""
        answer = await self.cell.wish(Submit(job=spec.name, spec=spec))
        if not answer.granted:
            raise RuntimeError(f"{spec.name} was refused: {answer.entry}")
        return answer

    async def publish(self, spec: JobSpec) -> None:
        """Submit as any client of the bus would: one JSON message, no answer awaited."""
        subject = self.cell.subjects.wish(self.cell.user, Submit.TYPE)
        await self.cell.bus.wishes.publish(subject, to_json(Submit(job=spec.name, spec=spec)))

    async def interactive(self, name: str, **more: object) -> None:
        """A notebook: one node, never to be touched."""
        await self.submit(self.spec(name, 1, job_class=JobClass.INTERACTIVE, **more))

    def job(self, name: str) -> Job:
        """A living job."""
        return self.watched.fleet.jobs[JobId(name)]

    async def running(self, name: str, within_s: float = 60.0) -> Job:
        """Wait until all ranks of the job's newest membership are up."""

        def up(fleet: Fleet) -> bool:
            job = fleet.jobs.get(JobId(name))
            return (
                job is not None
                and job.state is JobState.RUNNING
                and job.started == job.membership
                and not job.wounds
            )

        fleet = await self.watched.until(up, within_s)
        await self.board.until(lambda board: len(board.pids(name)) >= fleet.jobs[JobId(name)].ranks)
        return self.watched.fleet.jobs[JobId(name)]

    async def entry(
        self, wanted: Callable[[Entry], bool], since: int, within_s: float = 60.0
    ) -> tuple[Folded, Entry]:
        """Wait for an entry after commit number `since` of this run."""

        def found() -> tuple[Folded, Entry] | None:
            for commit in self.watched.commits[since:]:
                for one in commit.entries:
                    if not commit.void and wanted(one):
                        return commit, one
            return None

        await self.watched.until(lambda fleet: found() is not None, within_s)
        hit = found()
        if hit is None:
            raise RuntimeError("an entry that was seen is gone")
        return hit

    async def recovery(self, name: str, since: int) -> tuple[Folded, Entry]:
        """Wait for a swap or a move of this job."""
        return await self.entry(
            lambda one: isinstance(one, SliceSwapped | SliceMoved) and one.job == name, since
        )

    def now(self) -> int:
        """How many commits were seen so far."""
        return len(self.watched.commits)

    def nodes_of(self, name: str, index: int) -> list[NodeId]:
        """The nodes of a slice in rank order."""
        part = self.job(name).part(index)
        rack = self.watched.fleet.racks[part.rack]
        return [rack.nodes[place].name for place in part.nodes]

    async def xid(self, node: str, text: str, gpu: int = 0) -> float:
        """Write a driver's line into a node's kernel log; when, in seconds of CLOCK_BOOTTIME."""
        line = XID.format(pci=f"{gpu:04d}:01:00", text=text)
        log = self.stack.options.state_dir / "nodes" / node / "kernel.log"
        at = boottime()
        await asyncio.to_thread(_append, log, line)
        return at

    async def inject(self, node: str, **what: object) -> None:
        """Ask the agent of a virtual node for a fault."""
        subject = Subjects(self.cell.subjects.cell).query(f"inject.{node}")
        await self.bus.core.request(subject, json.dumps(what).encode())


def _append(log: Path, line: str) -> None:
    with open(log, "ab") as file:
        file.write(line.encode() + b"\n")
