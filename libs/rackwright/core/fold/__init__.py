"""The fold: the only way a fleet changes. No policy in it, so old ledgers fold the same for ever.

A commit is folded whole or not at all. One that breaks the chain or holds an illegal entry is void:
it moves the sequence on and does nothing else, the same in every copy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rackwright.core.evolve import changer
from rackwright.core.fleet import Answers, Fleet
from rackwright.core.fold import cell, checks, ends, jobs, nodes, sizes, slices
from rackwright.core.legality import answering, illegal
from rackwright.core.legality.apart import apart
from rackwright.wire.entries import ENTRIES
from rackwright.wire.entries.cell import CellUpgraded, LedgerCreated
from rackwright.wire.entries.node import Observation
from rackwright.wire.message import Commit, Entry
from rackwright.wire.quick import quick
from rackwright.wire.versions import FOLD_VERSION

MAX_STEP_S = 60.0
SLEW = 0.5  # of the server's pace, while its clock is behind ledger time
VERSIONED = frozenset({LedgerCreated.TYPE, CellUpgraded.TYPE})
UNCOMPARED = frozenset(
    {kind.TYPE for kind in ENTRIES.values() if issubclass(kind, Observation)}
    | {"ledger.ticked", "rack.isolated", "rack.degraded", "rack.restored"}
)

STEPS: dict[str, Callable[[Fleet, Any], None]] = {
    "ledger.created": cell.ledger_created,
    "cell.upgraded": cell.cell_upgraded,
    "ledger.ticked": cell.ledger_ticked,
    "snapshot.verified": cell.snapshot_verified,
    "policy.set": cell.policy_set,
    "automation.paused": cell.automation_paused,
    "automation.resumed": cell.automation_resumed,
    "breaker.closed": cell.breaker_closed,
    "wish.refused": cell.wish_refused,
    "job.queued": jobs.job_queued,
    "job.rejected": jobs.job_rejected,
    "job.placed": jobs.job_placed,
    "job.blocked": jobs.job_blocked,
    "job.started": jobs.job_started,
    "job.finishing": jobs.job_finishing,
    "job.finished": jobs.job_finished,
    "job.failed": ends.job_failed,
    "job.released": ends.job_released,
    "job.cancelled": jobs.job_cancelled,
    "job.requeued": jobs.job_requeued,
    "job.shrunk": sizes.job_shrunk,
    "job.grown": sizes.job_grown,
    "job.suspended": jobs.job_suspended,
    "job.resumed": jobs.job_resumed,
    "job.notified": jobs.job_notified,
    "job.pinned": jobs.job_pinned,
    "job.approved": jobs.job_approved,
    "worker.failed": jobs.worker_failed,
    "slice.swapped": slices.slice_swapped,
    "slice.moved": slices.slice_moved,
    "slice.restarted": slices.slice_restarted,
    "defrag.planned": slices.defrag_planned,
    "defrag.withdrawn": slices.defrag_withdrawn,
    "defrag.finished": slices.defrag_finished,
    "node.joined": nodes.node_joined,
    "node.unfit": nodes.node_unfit,
    "node.suspected": nodes.node_suspected,
    "node.cleared": nodes.node_cleared,
    "node.failed": nodes.node_failed,
    "node.recovered": nodes.node_recovered,
    "node.cleaning": nodes.node_cleaning,
    "node.repair_requested": nodes.repair_requested,
    "node.check_asked": checks.node_check_asked,
    "node.checked": checks.node_checked,
    "node.cordoned": nodes.node_cordoned,
    "node.uncordoned": nodes.node_uncordoned,
    "rack.defined": nodes.rack_defined,
    "rack.degraded": nodes.rack_degraded,
    "rack.isolated": nodes.rack_isolated,
    "rack.restored": nodes.rack_restored,
    "rack.held": nodes.rack_held,
    "rack.released": nodes.rack_released,
    "maintenance.scheduled": nodes.maintenance_scheduled,
    "maintenance.ended": nodes.maintenance_ended,
}


_NEXT = changer(Fleet, "touched_racks", "touched_jobs", "seq", "last_id")
_OWN = changer(Fleet, "touched_racks", "touched_jobs")


class StoppedAt(Exception):
    """The fold cannot go past this sequence: stay alive, say so, decide nothing."""

    def __init__(self, seq: int, problem: str) -> None:
        super().__init__(f"stopped at {seq}: {problem}")
        self.seq = seq
        self.problem = problem


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """The fleet after a commit; `void` when the commit had no effect, and why. `late` when the
    stored time was more than a minute ahead and ledger time was held back."""

    fleet: Fleet
    void: bool = False
    why: str = ""
    late: bool = False


def fold(fleet: Fleet, seq: int, at: float, commit: Commit[Any]) -> Folding:
    """Fold the commit stored at `seq` at `at` (the server's time, seconds since the epoch).

    Raises StoppedAt for a fold version that this software does not have.
    """
    after, late = _begun(fleet, seq, at, commit)
    why = _broken_chain(fleet, commit)
    if why is None:
        nodes.expire(after)
        why = _steps(after, commit)
        if why is None:
            return Folding(fleet=after, late=late)
        # What the steps before the illegal one did is thrown away.
        after, _ = _begun(fleet, seq, at, commit)
        nodes.expire(after)
    after.voids += 1
    return Folding(fleet=after, void=True, why=why, late=late)


def refuses(fleet: Fleet, at: float, commit: Commit[Any]) -> str | None:
    """Why `fold` would find this commit void as the next one at `at`; None if it would not.

    Much less than folding it: nobody asks what the fleet is after its last entry, and entries that
    are about different things are judged one by one.
    """
    after, _ = _begun(fleet, fleet.seq + 1, at, commit)
    why = _broken_chain(fleet, commit)
    if why is not None:
        return why
    nodes.expire(after)
    if commit.type not in VERSIONED and apart(after, commit.entries):
        found = (illegal(after, entry) for entry in commit.entries)
        return next((why for why in found if why is not None), None)
    return _steps(after, commit, whole=False)


def _begun(fleet: Fleet, seq: int, at: float, commit: Commit[Any]) -> tuple[Fleet, bool]:
    """A fleet of its own at the new sequence and time, before any entry; was time held back?"""
    after = _NEXT(fleet, touched_racks=set(), touched_jobs=set(), seq=seq, last_id=commit.id)
    return after, _advance(after, at)


def _steps(fleet: Fleet, commit: Commit[Any], *, whole: bool = True) -> str | None:
    """Take the entries one by one up to one that is illegal; the last only if `whole`."""
    if commit.type in VERSIONED:
        _check_version(fleet.seq, commit.entries)
    taken = len(commit.entries) if whole else len(commit.entries) - 1
    for place, entry in enumerate(commit.entries):
        why = illegal(fleet, entry)
        if why is not None:
            return why
        if place < taken:
            step(fleet, entry)
    if commit.wishes_to is not None:
        _answered_to(fleet, commit.source.partition("/")[0], commit.wishes_to)
    return None


def _check_version(seq: int, entries: tuple[LedgerCreated | CellUpgraded, ...]) -> None:
    for entry in entries:
        if entry.fold_version > FOLD_VERSION:
            why = f"fold version {entry.fold_version}, this software has {FOLD_VERSION}"
            raise StoppedAt(seq, why)


def _advance(fleet: Fleet, at: float) -> bool:
    """Ledger time: the stored message's, never back, and at most a minute further per commit.

    One wild clock then ends no probation; a cell that slept for an hour has caught up after sixty
    commits, which health-monitors write one a second of. True when it was held back. While the
    server's clock is behind, since it was set back, ledger time goes on at half its pace until the
    two meet: if it stood still instead, nothing that waits for a time would end for so long.
    """
    ahead = fleet.time - at
    if fleet.fold_version >= 2 and fleet.seq > 1:  # the first entry says the version
        before, fleet.stored_at = fleet.stored_at, at
        if ahead > 0.0:
            passed = min(at - before, MAX_STEP_S) if before else 0.0
            fleet.time += max(0.0, passed) * SLEW
            return False
    if ahead < -MAX_STEP_S and fleet.time > 0.0:
        fleet.time += MAX_STEP_S
        return True
    if ahead < 0.0:
        fleet.time = at
    return False


def _broken_chain(fleet: Fleet, commit: Commit[Any]) -> str | None:
    if fleet.last_id is None:
        return None if commit.type == LedgerCreated.TYPE else "the first entry must create a ledger"
    if commit.ledger != fleet.ledger:
        return f"made for ledger {commit.ledger}, this is {fleet.ledger}"
    if commit.prev is None:
        return None if commit.type in UNCOMPARED else f"{commit.type} must be compared"
    if commit.prev != fleet.last_id:
        return f"chain broken: made after {commit.prev}, stored after {fleet.last_id}"
    return None


def step(fleet: Fleet, entry: Entry) -> None:
    """Change a fleet that is the caller's own by one legal entry."""
    STEPS[entry.TYPE](fleet, entry)
    if entry.wish is not None:
        _answer(fleet, answering(entry), entry.wish)


def apply(fleet: Fleet, entry: Entry) -> Fleet:
    """What the fleet would be after this entry, for decisions that build on each other."""
    after = _OWN(fleet, touched_racks=set(), touched_jobs=set())
    step(after, entry)
    return after


def _answer(fleet: Fleet, service: str, wish: int) -> None:
    answers = fleet.answers.get(service, Answers())
    made = Answers(floor=answers.floor, above=answers.above | {wish})
    fleet.answers = fleet.answers.set(service, made)


def _answered_to(fleet: Fleet, service: str, floor: int) -> None:
    answers = fleet.answers.get(service, Answers())
    if floor > answers.floor:
        above = frozenset(seq for seq in answers.above if seq > floor)
        fleet.answers = fleet.answers.set(service, Answers(floor=floor, above=above))
