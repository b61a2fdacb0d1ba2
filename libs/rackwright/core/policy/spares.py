"""Recovery: what is to be done for a wounded job, one decision for each wounded slice.

Each kind of unanswered work in the fleet has one owner, so that no two services act on it:

| work | owner | what becomes of it |
|---|---|---|
| process gone or hanging, node good | spare-manager | restarted in place, at once |
| the same, charged, retry budget used up | placer | job.failed |
| node bad, or drained | spare-manager | the ladder, at once |
| drained and no better place | spare-manager | stays until there is one |
| drained replica, too few others serve | spare-manager | stays until its turn |
| drained replica without a place, maintenance near | spare-manager | job.shrunk, it alone |
| other drained work without a place, maintenance near | placer | job.requeued |
| rank not up within swap_start_s, gates open | placer | worker.failed: another node is taken |
| process gone on a suspected node | health-monitor | cleared or failed, then one of the above |
| bad node, breaker open, failure inferred | a person, or time | healed when the breaker closes |
| bad node of an isolated rack | health-monitor | rack.restored, or node.failed: then the ladder |
| wound of a job that is not restartable | placer | job.failed |
| wound of a finishing job | placer | the other ranks end, or the time limit ends it |
| wound of a job in a plan | spare-manager | the ladder, as for any assigned slice |
| requeued job | placer | placed anew, at the head of its band |
| suspended job | owner or operator | job.resumed |
"""

from collections.abc import Iterable

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.fold import apply
from rackwright.core.jobs import Job, JobState, Slice, Wound, WoundKind
from rackwright.core.legality import illegal
from rackwright.core.policy.beside import Healing
from rackwright.core.policy.breaker import breaker_open
from rackwright.core.policy.ladder import Climb
from rackwright.core.policy.prices import gpus_of
from rackwright.core.policy.probation import SILENCE
from rackwright.core.policy.replacements import case_of
from rackwright.core.policy.turns import its_turn
from rackwright.wire.entries.job import JobRequeued, JobSuspended
from rackwright.wire.entries.slice import SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.message import Entry
from rackwright.wire.reasons import Reason

RECOVERED = frozenset({JobState.PLACED, JobState.RUNNING})


def urgency(fleet: Fleet, job: Job) -> tuple[int, int, str]:
    """Which wounded job is first: priority, then GPUs that stand still, then id. Smaller first."""
    stalled = any(wound.kind is not WoundKind.DRAIN for wound in job.wounds)
    return (-job.spec.priority, -gpus_of(fleet, job) if stalled else 0, job.id)


def recover(fleet: Fleet, job: Job, now: float) -> list[Entry]:
    """The entries that heal this job as far as it can be, in the order in which they follow."""
    return heal(fleet, job, now)[0]


def heal(fleet: Fleet, job: Job, now: float) -> tuple[list[Entry], Fleet]:
    """As `recover`, with the fleet as it will be then."""
    wounds = to_heal(fleet, job, now)
    if not wounds:
        return [], fleet
    suspect = suspicion(fleet, job, wounds, now)
    if suspect is not None:
        suspended = JobSuspended(job=job.id, reason=suspect)
        return [suspended], apply(fleet, suspended)
    made: list[Entry] = []
    trial, charged = fleet, False
    for index, of_slice in _by_slice(job, wounds):
        if all(part.index != index for part in trial.jobs[job.id].slices):
            continue  # it left with another slice of its replica
        for entry in _climb(trial, job, index, of_slice, now):
            if isinstance(entry, JobRequeued):
                return [entry], apply(fleet, entry)
            entry = evolve(entry, membership=trial.jobs[job.id].membership + 1)
            if isinstance(entry, SliceRestarted):
                # One incident is one try, in however many slices.
                entry = evolve(entry, charge=entry.charge and not charged)
                charged = charged or entry.charge
            made.append(entry)
            trial = apply(trial, entry)
    return made, trial


def _climb(
    fleet: Fleet, job: Job, index: int, wounds: tuple[Wound, ...], now: float
) -> list[Healing]:
    now_job = fleet.jobs[job.id]
    part = now_job.part(index)
    if in_doubt(fleet, part) or waits_its_turn(fleet, now_job, part, wounds, now):
        return []
    return Climb(case_of(fleet, now_job, part, wounds, now)).entries()


def waits_its_turn(
    fleet: Fleet, job: Job, part: Slice, wounds: Iterable[Wound], now: float
) -> bool:
    """Is it a replica that should leave, and too few others would serve meanwhile?"""
    only_drained = all(wound.kind is WoundKind.DRAIN for wound in wounds)
    return only_drained and its_turn(fleet, job, part, now) is not None


def drain_waits(fleet: Fleet, job: Job, index: int, now: float) -> Reason | None:
    """Why a slice that only drains have wounded stays where it is for now; None: it does not, or
    for want of room.
    """
    part = job.part(index)
    mine = [wound for wound in to_heal(fleet, job, now) if job.slice_of(wound.rank) is part]
    only_drained = bool(mine) and all(wound.kind is WoundKind.DRAIN for wound in mine)
    return its_turn(fleet, job, part, now) if only_drained else None


def in_doubt(fleet: Fleet, part: Slice) -> bool:
    """Is the slice in an isolated rack, and not known yet which of its nodes there are dead?

    The rack may be back in a moment, all of it. Nodes that are declared dead will not be, and once
    none is in doubt any more there is nothing to wait for: the slice leaves the rack.
    """
    rack = fleet.racks[part.rack]
    if not rack.isolated:
        return False
    nodes = [rack.nodes[place] for place in part.nodes]
    return any(node.suspected for node in nodes) or not any(node.failed for node in nodes)


def _by_slice(job: Job, wounds: Iterable[Wound]) -> list[tuple[int, tuple[Wound, ...]]]:
    found: dict[int, list[Wound]] = {}
    for wound in wounds:
        found.setdefault(job.slice_of(wound.rank).index, []).append(wound)
    return [(index, tuple(found[index])) for index in sorted(found)]


def to_heal(fleet: Fleet, job: Job, now: float) -> tuple[Wound, ...]:
    """The wounds that are this policy's work now; see the table above for the others."""
    if job.state not in RECOVERED or not job.spec.restartable:
        return ()
    charged = any(wound.charge for wound in job.wounds)
    if charged and job.retries >= job.spec.retry_budget:
        return ()
    wounds = tuple(wound for wound in job.wounds if not _undecided(fleet, job, wound))
    if any(inferred(wound) for wound in wounds) and breaker_open(fleet, now):
        wounds = tuple(wound for wound in wounds if not inferred(wound))
    return wounds


def _undecided(fleet: Fleet, job: Job, wound: Wound) -> bool:
    """A process that ended on a suspected node: in seconds it is known whose fault that was."""
    if wound.kind is not WoundKind.PROCESS:
        return False
    part = job.slice_of(wound.rank)
    return fleet.node_at(part.rack, part.nodes[wound.rank - part.first_rank]).suspected != 0


def inferred(wound: Wound) -> bool:
    """Concluded from a signal or from silence; an open breaker keeps recovery from acting on it.

    A worker that is known to be gone confirms a signal; a lease that ran out confirms no silence.
    """
    return wound.kind is WoundKind.NODE and (not wound.ended or wound.code == SILENCE)


def suspicion(fleet: Fleet, job: Job, wounds: Iterable[Wound], now: float) -> Reason | None:
    """Does this job drive node after node out by one signal? Nodes lost at one moment count once:
    what takes several at a time is more likely the rack than the work.
    """
    policy = fleet.policy
    for code in sorted({wound.code for wound in wounds if _accuses(wound)}):
        past = [
            one for one in job.swaps if one.code == code and one.at > now - policy.poison_window_s
        ]
        count = min(len({one.at for one in past}), len({one.node for one in past}))
        if count >= policy.poison_swaps:
            numbers: dict[str, int | float | str] = {
                "signal": code,
                "swaps": count,
                "window_s": policy.poison_window_s,
            }
            return Reason(code="suspect_workload", numbers=numbers)
    return None


def _accuses(wound: Wound) -> bool:
    """Is this wound about the node? An exit is about the work, a drain about neither."""
    return wound.kind is WoundKind.NODE or (wound.kind is WoundKind.PROCESS and not wound.ended)


def holds(fleet: Fleet, entry: Entry, now: float) -> bool:
    """Is a decision that was refused still the right one on this fleet?

    It must be legal, answer exactly the wounds its slice has now, and still be on the lowest rung:
    one that evicts, requeues or suspends is decided anew, since others may have made room.
    """
    if not isinstance(entry, SliceSwapped | SliceMoved | SliceRestarted):
        return False
    if illegal(fleet, entry) is not None:
        return False
    job = fleet.jobs[entry.job]
    part = job.part(entry.index)
    wounds = tuple(w for w in to_heal(fleet, job, now) if job.slice_of(w.rank) is part)
    if not wounds or in_doubt(fleet, part) or suspicion(fleet, job, wounds, now):
        return False
    if waits_its_turn(fleet, job, part, wounds, now):
        return False
    climb = Climb(case_of(fleet, job, part, wounds, now))
    match entry:
        case SliceRestarted(ranks=ranks):
            return set(ranks) == {wound.rank for wound in climb.triage.restart}
        case SliceSwapped(swaps=swaps, evicted=()):
            free = all(swap.new in climb.case.spares for swap in swaps)
            return free and {wound.rank for wound in climb.triage.leave} <= {
                swap.rank for swap in swaps
            }
        case SliceMoved(gpus=0, evicted=()):
            rack = fleet.rack(entry.rack)
            return not climb.stays_possible() and not entry.nodes & ~rack.usable
        case _:
            return False
