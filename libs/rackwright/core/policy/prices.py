"""What stopping work costs, in GPU-hours weighted by priority.

The formula is the one of the policy page, section 3. The ledger holds no checkpoints, so what is
lost since the last one is half an interval: the mean of a stop that comes at any moment.
"""

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job

HOUR = 3600.0
DAY = 86_400.0


def gpus_of(fleet: Fleet, job: Job) -> int:
    """GPUs that stop when one rank of this job does: all of them, since the work is synchronous."""
    return sum(
        part.gpus.bit_count() or part.size * fleet.racks[part.rack].spec.gpus_per_node
        for part in job.slices
    )


def weight(priority: int) -> float:
    """w(p) of the formula: 0.25 at priority 0, 1 at 50, 4 at 100."""
    return float(2.0 ** ((priority - 50) / 25))


def stall(fleet: Fleet, job: Job, seconds: float) -> float:
    """GPU-hours of the whole job standing still for so long."""
    return gpus_of(fleet, job) * seconds / HOUR * weight(job.spec.priority)


def lost_s(job: Job, now: float) -> float:
    """Seconds of work that are expected to be lost when the job ends at `now`.

    Half a checkpoint interval, or all there is of it when it takes none or has run for less.
    """
    if job.started == 0 or job.placed_at is None:
        return 0.0
    ran = max(0.0, now - job.placed_at)
    interval = job.spec.checkpoint.interval_s
    return ran if interval is None else min(ran, interval / 2)


def requeue_price(fleet: Fleet, job: Job, now: float, wait_s: float) -> float:
    """The whole job starts again, after `wait_s` seconds in the queue."""
    return stall(fleet, job, wait_s + job.spec.checkpoint.restart_s + lost_s(job, now))


def recently_stopped(job: Job, now: float) -> int:
    """How often it was preempted or moved for others in the last 24 hours."""
    return sum(1 for at in job.preempted if at > now - DAY)


def victim_loss(fleet: Fleet, job: Job, now: float, notice_s: float) -> float:
    """What evicting this job costs: its work since the last checkpoint, its restart, and the
    attention of its owner; dearer each time it happens within a day.

    Nothing is lost by one that saves within `notice_s` seconds of notice.
    """
    policy, checkpoint = fleet.policy, job.spec.checkpoint
    saves = checkpoint.on_notice_s is not None and checkpoint.on_notice_s <= notice_s
    lost = 0.0 if saves else lost_s(job, now)
    repeats = 1 + policy.defrag_repeat * recently_stopped(job, now)
    cost = stall(fleet, job, lost + checkpoint.restart_s)
    return cost * repeats + policy.defrag_victim_cost_gpu_h
