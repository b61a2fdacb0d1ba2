"""Wishes of owners and operators, each answered once: by what was asked for, or by a reason.

A repeated submit (same id, same spec, same owner) needs no entry: the first was the answer. A swap
asked for by an owner drains the node of that rank: the spare-manager heals the rank elsewhere, and
the node stays out until it has passed a check, or somebody has looked at it.
"""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.fold import apply
from rackwright.core.jobs import JobState
from rackwright.core.legality import illegal
from rackwright.core.machine import Offer, Room, Wished
from rackwright.core.policy.admission import Admitted, admit
from rackwright.core.policy.checks import SWAP
from rackwright.core.policy.rights import forbidden
from rackwright.core.policy.swaps import too_many
from rackwright.placer.operators import (
    Settled,
    approve,
    close_breaker,
    define,
    hold,
    let_go,
    maintain,
    pause,
    pin,
    policy,
    refused,
    release,
    unpause,
    upgrade,
)
from rackwright.placer.state import State
from rackwright.wire.codec import canonical
from rackwright.wire.entries.job import (
    JobCancelled,
    JobQueued,
    JobRejected,
    JobResumed,
)
from rackwright.wire.entries.node import (
    NodeCordoned,
)
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.message import MAX_ENTRIES, Entry
from rackwright.wire.reasons import Reason
from rackwright.wire.wishes import (
    CELL_WISHES,
    JOB_WISHES,
    Approve,
    Cancel,
    CloseBreaker,
    DefineRacks,
    HoldRack,
    LetGo,
    Pause,
    Pin,
    ReleaseRack,
    Resume,
    ScheduleMaintenance,
    SetPolicy,
    Submit,
    Swap,
    Unpause,
    Unpin,
    Upgrade,
    Wish,
)

SERVICE = "placer"
LOOKED_AT = 256  # wishes a turn


def hear(state: State, fleet: Fleet, event: Wished) -> None:
    """A wish; those about nodes are the health-monitor's."""
    state.heard_to = max(state.heard_to, event.seq)
    mine = isinstance(event.wish, (*JOB_WISHES, *CELL_WISHES))
    if mine and not fleet.answered(SERVICE, event.seq):
        state.wishes[event.seq] = event


def answered_to(state: State, fleet: Fleet, besides: set[int]) -> int | None:
    """Up to which sequence every wish is answered once `besides` are; None: as far as known."""
    waiting = (seq for seq in sorted(state.wishes) if seq not in besides)
    floor = next(waiting, state.heard_to + 1) - 1
    answers = fleet.answers.get(SERVICE)
    return floor if floor > (answers.floor if answers is not None else 0) else None


def folded(state: State, entries: tuple[Entry, ...]) -> None:
    """A swap is answered by an entry that does not name it as a wish, only as its cause."""
    for entry in entries:
        if isinstance(entry, NodeCordoned) and entry.cause is not None:
            for seq in [seq for seq, one in state.wishes.items() if one.id == entry.cause]:
                del state.wishes[seq]


def answers(state: State, fleet: Fleet) -> tuple[Offer | None, Fleet]:
    """Answer the oldest wishes whose answers are of one type, and the fleet after that.

    A wish about a job of which an older wish is not answered waits; what is about the whole cell
    waits for all that is older, and all that is newer for it.
    """
    if not state.wishes:
        return None, fleet
    batch = Batch(fleet, state.room)
    for seq in sorted(state.wishes)[:LOOKED_AT]:
        wished = state.wishes[seq]
        alone = isinstance(wished.wish, (*CELL_WISHES, Swap))
        if fleet.answered(SERVICE, seq):
            del state.wishes[seq]
        elif alone and batch.begun:
            break
        elif not batch.answer(wished):
            del state.wishes[seq]
        if batch.full or (alone and batch.begun):
            break
    if not batch.entries:
        return None, fleet
    floor = answered_to(state, fleet, batch.answered)
    return Offer(entries=tuple(batch.entries), wishes_to=floor), batch.trial


class Batch:
    """Answers of one type, and the jobs of which a wish must wait for the next batch."""

    def __init__(self, fleet: Fleet, room: Room | None) -> None:
        self.trial = fleet
        self._room = room
        self.entries: list[Entry] = []
        self.answered: set[int] = set()
        self._busy: set[str] = set()

    @property
    def begun(self) -> bool:
        """Is something answered, or left for the next batch?"""
        return bool(self.entries or self._busy)

    @property
    def full(self) -> bool:
        """Is there no room for another entry?"""
        return len(self.entries) >= MAX_ENTRIES

    def answer(self, wished: Wished) -> bool:
        """Answer this wish, now or in a later batch; False if it needs no answer."""
        about = getattr(wished.wish, "job", "")
        if about in self._busy:
            return True
        full = _no_room(self._room, wished)
        made, trial = _made(self.trial, wished) if full is None else (full, None)
        if made is None:
            return False
        if self.entries and type(made[0]) is not type(self.entries[0]):
            self._busy.add(about)
            return True
        self.entries += made
        self.answered.add(wished.seq)
        self.trial = _after(self.trial, made) if trial is None else trial
        return True


def _after(fleet: Fleet, made: list[Entry]) -> Fleet:
    for entry in made:
        fleet = apply(fleet, entry)
    return fleet


def _no_room(room: Room | None, wished: Wished) -> list[Entry] | None:
    """Submits stop before the ledger is full, so that swaps never have to."""
    if room is None or room.used < room.refuse_at or not isinstance(wished.wish, Submit):
        return None
    numbers = {"used": round(room.used, 3), "limit": room.refuse_at}
    return [refused(wished, "ledger-full", **numbers)]


def _made(fleet: Fleet, wished: Wished) -> tuple[list[Entry] | None, Fleet | None]:
    """The entries that answer this wish on this fleet; None: it needs none. With them the fleet
    after them, where they had to be tried."""
    wish = wished.wish
    assert isinstance(wish, Wish)
    if wish.not_after is not None and wished.at > wish.not_after:
        late = {"late_s": wished.at - wish.not_after}
        return [refused(wished, "too-late", **late)], None
    problem = forbidden(fleet, wished.owner, wish)
    if problem is not None:
        return [refused(wished, problem.code, **problem.numbers)], None
    try:
        made = ANSWERS[wish.TYPE](fleet, wished, wish)
    except Settled:
        return None, None
    trial = fleet
    for entry in made:
        why = illegal(trial, entry)
        if why is not None:
            return [refused(wished, "not-possible", why=why)], None
        trial = apply(trial, entry)
    return made, trial


def spec_hash(spec: JobSpec) -> str:
    """Tells a repeated submit from another one."""
    return sha256(canonical(spec)).hexdigest()[:32]


def _submit(fleet: Fleet, wished: Wished, wish: Submit) -> list[Entry]:
    mark = spec_hash(wish.spec)
    known = fleet.jobs.get(wish.job) or fleet.tombstones.get(wish.job)
    if known is not None:
        if (known.spec_hash, known.owner) == (mark, wished.owner):
            raise Settled
        if known.state is JobState.CANCELLED and not known.spec_hash:
            return [refused(wished, "cancelled-before", by=known.owner)]
        return [refused(wished, "id-taken", state=known.state.value, owner=known.owner)]
    found = admit(fleet, wish.spec)
    if isinstance(found, Admitted):
        return [
            JobQueued(
                job=wish.job,
                owner=wished.owner,
                spec=found.spec,
                spec_hash=mark,
                submitted_at=wished.at,
                warnings=found.warnings,
                wish=wished.seq,
                cause=wished.id,
            )
        ]
    return [
        JobRejected(
            job=wish.job,
            owner=wished.owner,
            spec_hash=mark,
            reason=found,
            wish=wished.seq,
            cause=wished.id,
        )
    ]


def _cancel(fleet: Fleet, wished: Wished, wish: Cancel) -> list[Entry]:
    stone = fleet.tombstones.get(wish.job)
    hurry = wish.force and wish.job in fleet.leaving_of
    if stone is not None and not hurry:
        return [refused(wished, "already-ended", state=stone.state.value)]
    code = "cancelled" if wish.job in fleet.jobs or stone is not None else "cancelled-ahead"
    reason = Reason(code=code, numbers={"why": wish.why} if wish.why else {})
    return [
        JobCancelled(
            job=wish.job,
            by=wished.owner,
            reason=reason,
            force=wish.force,
            wish=wished.seq,
            cause=wished.id,
        )
    ]


def _resume(fleet: Fleet, wished: Wished, wish: Resume) -> list[Entry]:
    job = fleet.jobs.get(wish.job)
    if job is None:
        stone = fleet.tombstones.get(wish.job)
        if stone is not None:
            return [refused(wished, "not-suspended", state=stone.state.value)]
        return [refused(wished, "unknown-job", job=wish.job)]
    if job.state is not JobState.SUSPENDED:
        return [refused(wished, "not-suspended", state=job.state.value)]
    return [JobResumed(job=job.id, by=wished.owner, wish=wished.seq, cause=wished.id)]


def _swap(fleet: Fleet, wished: Wished, wish: Swap) -> list[Entry]:
    job = fleet.jobs.get(wish.job)
    if job is None:
        stone = fleet.tombstones.get(wish.job)
        if stone is not None:
            return [refused(wished, "swap.not-running", state=stone.state.value)]
        return [refused(wished, "unknown-job", job=wish.job)]
    if job.state not in (JobState.PLACED, JobState.RUNNING):
        return [refused(wished, "swap.not-running", state=job.state.value)]
    if not job.has_rank(wish.rank):
        return [refused(wished, "swap.no-such-rank", ranks=job.ranks)]
    if not job.spec.restartable or job.spec.job_class is JobClass.INTERACTIVE:
        return [refused(wished, "swap.not-restartable")]
    part = job.slice_of(wish.rank)
    if part.gpus:
        return [refused(wished, "swap.part-of-node")]
    over = too_many(fleet, job.id, wished.owner)
    if over is not None:
        return [refused(wished, "swap.too-many", **over)]
    node = fleet.node_at(part.rack, part.nodes[wish.rank - part.first_rank])
    why = f"{wished.owner} asked to swap rank {wish.rank} of {job.id}"
    why = f"{why}: {wish.why}"[:1024] if wish.why else why
    order = NodeCordoned(node=node.name, drain=True, by=wished.owner, why=why, cause=wished.id)
    if fleet.fold_version < 2:
        return [order]
    return [replace(order, because=SWAP, job=job.id)]


ANSWERS: dict[str, Callable[[Fleet, Wished, Any], list[Entry]]] = {
    Submit.TYPE: _submit,
    Cancel.TYPE: _cancel,
    Resume.TYPE: _resume,
    Swap.TYPE: _swap,
    ScheduleMaintenance.TYPE: maintain,
    Pause.TYPE: pause,
    Unpause.TYPE: unpause,
    CloseBreaker.TYPE: close_breaker,
    HoldRack.TYPE: hold,
    ReleaseRack.TYPE: release,
    LetGo.TYPE: let_go,
    Pin.TYPE: pin,
    Unpin.TYPE: pin,
    Approve.TYPE: approve,
    DefineRacks.TYPE: define,
    SetPolicy.TYPE: policy,
    Upgrade.TYPE: upgrade,
}
