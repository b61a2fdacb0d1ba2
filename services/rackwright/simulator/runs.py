"""One job as it runs: how much of its work is done and safe, and at which speed it goes on."""

from dataclasses import dataclass, field

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.sim.engine import Timer
from rackwright.simulator.speed import GROUP_NODES
from rackwright.simulator.workload import SimJob
from rackwright.wire.ids import WorkerId


@dataclass(slots=True, kw_only=True)
class Run:
    """One job. `done_s`: work that is safe; since `since` it works at `speed` (0: it does not).

    `up` are its processes by rank; `told` those of before, that were told to go and have not yet;
    `seen` the membership that was looked at last; `ends` and `starts` what is to come.
    """

    job: SimJob
    submitted: float
    done_s: float = 0.0
    since: float = 0.0
    speed: float = 0.0
    slow: float = 1.0
    pace: float = 1.0
    up: dict[int, WorkerId] = field(default_factory=dict)
    told: dict[int, WorkerId] = field(default_factory=dict)
    seen: int = 0
    started: int = 0
    ends: Timer | None = None
    starts: Timer | None = None
    first_placed: float | None = None
    first_up: float | None = None
    interruptions: int = 0
    lost_s: float = 0.0
    racks: int = 0

    def progress(self, now: float) -> float:
        """Work since `since`, in seconds at full speed."""
        return max(0.0, now - self.since) * self.speed

    def saved(self, now: float) -> tuple[float, float]:
        """Work that is safe now, and the time of the last checkpoint."""
        interval = self.job.checkpoint_s
        if interval is None or not self.speed:
            return self.done_s, self.since
        at = self.since + interval * int(max(0.0, now - self.since) / interval)
        return self.done_s + (at - self.since) * self.speed, at


def gated(fleet: Fleet, job: Job, rank: int) -> bool:
    """Has a worker whose GPUs or rank it takes not ended yet?"""
    gates = job.slice_of(rank).gates_of(rank) if any(s.gates for s in job.slices) else ()
    return any(worker in fleet.leaving for worker in gates)


def crossing(racks: list[int]) -> int:
    """Groups of consecutive ranks of a placement that are in more than one rack."""
    groups = (racks[at : at + GROUP_NODES] for at in range(0, len(racks), GROUP_NODES))
    return sum(len(set(group)) > 1 for group in groups)
