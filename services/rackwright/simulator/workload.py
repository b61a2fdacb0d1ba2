"""A workload: jobs with their arrival, size, length and habits. Times in seconds."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from rackwright.wire.ids import JobId
from rackwright.wire.jobs import Checkpoint, JobClass, JobSpec

HOUR = 3600.0
DAY = 86_400.0
LEAST_S = 1.0  # work that a trace gives no time takes this long


class BadTrace(ValueError):
    """A trace that cannot be used: which file, row and column, and what is wrong."""

    def __init__(self, path: str, row: int | None, column: str | None, what: str) -> None:
        where = "".join((f", row {row}" if row else "", f", column {column}" if column else ""))
        super().__init__(f"{path}{where}: {what}")
        self.path = path
        self.row = row
        self.column = column
        self.what = what

    def __reduce__(self) -> tuple[type["BadTrace"], tuple[str, int | None, str | None, str]]:
        """It may be raised in another process than it is told in."""
        return type(self), (self.path, self.row, self.column, self.what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One job as recorded; `row` is its line in the file, the header being 1."""

    row: int
    name: str
    submit_s: float
    gpus: int
    duration_s: float
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimJob:
    """One job to be submitted at `submit_s`; it needs `work_s` on nodes of full speed.

    `communication`: share of the time in traffic within tensor- and expert-parallel groups, which
    is slower across racks.
    """

    id: JobId
    submit_s: float
    gpus: int
    work_s: float
    job_class: JobClass = JobClass.BATCH
    priority: int = 50
    preemptible: bool = True
    restartable: bool = True
    checkpoint_s: float | None = 1800.0
    saves_on_notice: bool = False
    restart_s: float = 600.0
    communication: float = 0.0
    retry_budget: int = 100
    owner: str = "user-0"

    def nodes(self, gpus_per_node: int) -> int | None:
        """Whole nodes it takes; None where it takes part of one."""
        if self.gpus < gpus_per_node:
            return None
        return -(-self.gpus // gpus_per_node)

    def taken_gpus(self, gpus_per_node: int) -> int:
        """GPUs it takes, whole nodes where it needs one or more."""
        nodes = self.nodes(gpus_per_node)
        return self.gpus if nodes is None else nodes * gpus_per_node

    def spec(self, gpus_per_node: int, *, limit_s: float | None = None) -> JobSpec:
        """What its owner submits."""
        nodes = self.nodes(gpus_per_node)
        return JobSpec(
            name=self.id,
            nodes=nodes,
            gpus=self.gpus if nodes is None else None,
            job_class=self.job_class,
            priority=self.priority,
            preemptible=self.preemptible,
            restartable=self.restartable,
            retry_budget=self.retry_budget if self.restartable else 0,
            time_limit_s=limit_s,
            checkpoint=Checkpoint(
                interval_s=self.checkpoint_s,
                restart_s=self.restart_s,
                on_notice_s=60.0 if self.saves_on_notice else None,
            ),
            grace_s=0.0,
            pretend_s=max(LEAST_S, self.work_s),
        )


def work_gpu_s(jobs: Iterable[SimJob], gpus_per_node: int) -> float:
    """GPU-seconds that the jobs ask for, whole nodes counted whole."""
    return math.fsum(job.taken_gpus(gpus_per_node) * job.work_s for job in jobs)
