"""The placer's mind: answers wishes, places what fits, says what became of jobs and why some wait.

It looks at the fleet, not at the message that woke it. At each turn it offers, in this order:
answers, what sets nodes free, placements on what is then free, and blocks.
"""

from heapq import heappush

from rackwright.core.fleet import Answers, Fleet
from rackwright.core.fold import apply
from rackwright.core.jobs import JobState
from rackwright.core.legality import illegal
from rackwright.core.machine import (
    Acked,
    Effect,
    Event,
    Folded,
    Offer,
    Refused,
    Room,
    StatusSeen,
    TrimWishes,
    Turn,
    WakeAt,
    Wished,
    WishSkipped,
)
from rackwright.core.pace import fewer, more
from rackwright.core.policy.cut import whole_slice
from rackwright.core.policy.limits import ends_at
from rackwright.core.policy.regrow import lacks
from rackwright.core.racks import Rack
from rackwright.placer.blocks import blocks, to_tell
from rackwright.placer.course import COURSE, course
from rackwright.placer.hangs import to_watch
from rackwright.placer.idle import to_look
from rackwright.placer.placing import may_place, placements
from rackwright.placer.starts import to_start
from rackwright.placer.state import Standing, State
from rackwright.placer.verdicts import note_blame
from rackwright.placer.windows import windows
from rackwright.placer.wishes import answers, folded, hear
from rackwright.wire.entries.job import JobBlocked, JobGrown, JobPlaced
from rackwright.wire.entries.node import NodeCleared, NodeJoined
from rackwright.wire.ids import JobId
from rackwright.wire.message import Entry
from rackwright.wire.policy import Automation

TRIM_S = 60.0
ANSWERERS = ("placer", "health-monitor")


class Placer:
    """See the package."""

    service = "placer"

    def start(self, copy: int) -> State:
        """The first turn looks over the whole fleet."""
        return State(copy=copy)

    def handle(self, state: State, fleet: Fleet, event: Event) -> tuple[State, list[Effect]]:
        """Take one event."""
        match event:
            case Folded():
                _folded(state, fleet, event)
            case Wished():
                hear(state, fleet, event)
            case WishSkipped(seq=seq):
                state.heard_to = max(state.heard_to, seq)
            case StatusSeen():
                state.reports.see(fleet, event)
            case Refused():
                return state, _refused(state, fleet, event)
            case Acked():
                state.group = more(state.group)
            case Room():
                state.room = event
                return state, []
            case Turn():
                return state, _turn(state, fleet, event)
            case _:
                pass
        return state, []


def _folded(state: State, fleet: Fleet, event: Folded) -> None:
    """Keep up with what a commit touched."""
    if state.fleet is None:
        return
    if fleet.seq != state.fleet.seq + 1 or fleet.fold_version != state.fleet.fold_version:
        # Commits were passed over, or there are other rules now: look over the whole fleet.
        state.fleet = None
        return
    for name in sorted(fleet.touched_jobs):
        _know(state, fleet, name, event)
    if helps(state.fleet, fleet):
        state.queue.helped()
    if not event.void:
        note_blame(state, fleet, event)
        for entry in event.entries:
            if isinstance(entry, NodeJoined | NodeCleared):
                state.reports.trust(fleet, entry.node)
        folded(state, event.entries)
    state.fleet = fleet


def _look_over(state: State, fleet: Fleet, event: Event) -> None:
    """Everything anew, from the fleet alone."""
    for name in [name for name in state.queue.where if name not in fleet.jobs]:
        state.queue.drop(name)
    for name in sorted(fleet.jobs):
        _know(state, fleet, name, event)
    state.queue.helped()
    state.fleet = fleet


def _know(state: State, fleet: Fleet, name: JobId, event: Event) -> None:
    """A job is new, or something happened to it."""
    job = fleet.jobs.get(name)
    if job is None or job.state is not JobState.QUEUED:
        state.queue.drop(name)
    if state.standing is not None and _had_room_kept(state.standing, fleet, name):
        state.standing = None  # others may have that room now
        state.queue.helped()
    if job is None:
        state.queue.lacks(name, False)
        state.reports.forget(name)
        for known in (state.causes, state.limits, state.startable, state.charged):
            known.pop(name, None)
        return
    state.queue.lacks(name, lacks(job))
    if job.state is JobState.QUEUED:
        if name not in state.queue.where:
            state.causes[name] = fleet.last_id
            state.queue.put(job, event.now)
            to_tell(state, name, event.mono)
        return
    if job.slices:
        state.reports.know(job)
        state.reports.dirty.setdefault(name, fleet.last_id)
        if name in fleet.starting:
            to_start(state, name, event.mono)
        to_watch(state, job, event.mono)
        to_look(state, job, event.mono)
        end = ends_at(fleet.policy, job)
        if end is not None and state.limits.get(name) != end:
            state.limits[name] = end
            heappush(state.ends, (end, name))


def _had_room_kept(known: Standing, fleet: Fleet, name: JobId) -> bool:
    """May fewer racks be kept after what happened to this job?"""
    if name in known.owed or any(one.job == name for one in known.kept):
        return True
    job = fleet.jobs.get(name)
    if job is None or job.state is JobState.QUEUED:
        return False
    waiting = (fleet.jobs.get(one) for one in known.owed)
    return any(one is not None and one.spec.queue == job.spec.queue for one in waiting)


def helps(before: Fleet, after: Fleet) -> bool:
    """Could a job that did not fit before fit now?"""
    return (
        before.policy is not after.policy
        or before.maintenance != after.maintenance
        or before.topology is not after.topology
        or any(name not in after.wounded for name in before.wounded)
        or any(
            _gained(before.racks[number], after.racks[number])
            or _broken(before.racks[number], after)
            for number in after.touched_racks
            if number in before.racks
        )
    )


def _broken(before: Rack, after: Fleet) -> bool:
    """Can this rack take a full slice no more? Work without GPUs may go there then."""
    if not after.policy.cpu_only_queues:
        return False
    whole = whole_slice(after.policy, after.topology)
    return before.shape.usable >= whole > after.racks[before.number].shape.usable


def _gained(before: Rack, after: Rack) -> bool:
    """Has this rack nodes or GPUs to give that it had not, or fewer spares to keep?"""
    if before is after:
        return False
    room, had = after.free & after.takes_one, before.free & before.takes_one
    if room & ~had or after.usable & ~before.usable:
        return True
    if after.shape.target < before.shape.target or after.shape.full > before.shape.full:
        return True
    return any(taken & ~after.taken_gpus(place) for place, taken in before.partial)


def _turn(state: State, fleet: Fleet, event: Turn) -> list[Effect]:
    if state.fleet is None:
        _look_over(state, fleet, event)
    for name in list(state.queue.due(event.now)):
        _know(state, fleet, name, event)
    if _fewer_kept(state, fleet):
        state.queue.helped()
    state.turned_at = fleet.time
    effects: list[Effect] = []
    offer, trial = answers(state, fleet)
    if offer is not None:
        effects.append(offer)
    elif state.wishes:
        # An offer brings a turn when it is settled; while a copy has patience none comes sooner.
        effects.append(WakeAt(mono=event.mono))
    until = fleet.paused_until(Automation.ALL, event.now)
    if until is not None:  # read only: what was refused is said, and nothing else
        return [*effects, WakeAt(mono=event.mono + until - event.now)]
    for step in (course, placements):
        made, trial = step(state, trial, event)
        effects += made
    effects += blocks(state, trial, event)
    effects += windows(fleet, event)
    effects += _trim(state, fleet, event)
    return [*effects, *_wakes(state, event)]


def _fewer_kept(state: State, fleet: Fleet) -> bool:
    """Has a wound become so old that fewer racks are kept for it?"""
    if not fleet.wounded:
        return False
    patience = fleet.policy.swap_start_s
    return any(state.turned_at <= at + patience < fleet.time for at in fleet.wounded.values())


def _trim(state: State, fleet: Fleet, event: Event) -> list[Effect]:
    """Once a minute: wishes that both services which answer any have answered are not kept."""
    if event.mono < state.trim_at:
        return []
    state.trim_at = event.mono + TRIM_S
    floors = [fleet.answers.get(service, Answers()).floor for service in ANSWERERS]
    effects: list[Effect] = [WakeAt(mono=state.trim_at)]
    if min(floors) > state.trimmed:
        state.trimmed = min(floors)
        effects.append(TrimWishes(to=state.trimmed))
    return effects


def _wakes(state: State, event: Event) -> list[Effect]:
    """When something is due by itself: a time limit, a back-off, a start, a verdict."""
    ledger = [heap[0][0] for heap in (state.ends, state.queue.later) if heap]
    own = [heap[0][0] for heap in (state.starts, state.again, state.hangs, state.idles) if heap]
    due = [event.mono + at - event.now for at in ledger] + own
    return [WakeAt(mono=max(at, event.mono)) for at in due]


def _refused(state: State, fleet: Fleet, event: Refused) -> list[Effect]:
    """Somebody else's commit came first: offer again what still holds, judge the rest anew."""
    offer = event.offer
    match offer.entries[0]:
        case JobPlaced() | JobBlocked() | JobGrown():
            return _queue_refused(state, fleet, event)
        case first if first.TYPE in COURSE:
            for entry in offer.entries:
                _judge_anew(state, entry, event)
            return []
        case _:
            kept = _legal(fleet, offer.entries)
            return [offer] if len(kept) == len(offer.entries) else []


def _queue_refused(state: State, fleet: Fleet, event: Refused) -> list[Effect]:
    entries = event.offer.entries
    for entry in entries:
        if isinstance(entry, JobPlaced | JobBlocked):
            to_tell(state, entry.job, event.mono)
    if isinstance(entries[0], JobPlaced | JobGrown):
        state.group = fewer(state.group, len(entries))
        entries = entries[: state.group]
        state.queue.helped()  # shapes that failed beside these placements may fit without them
        if may_place(fleet, event) is not None:
            return []
    kept = _legal(fleet, entries)
    return [Offer(entries=kept)] if kept else []


def _judge_anew(state: State, entry: Entry, event: Event) -> None:
    name = getattr(entry, "job", None)
    if name is not None:
        state.reports.dirty.setdefault(name, entry.cause)
        heappush(state.ends, (event.now, name))


def _legal(fleet: Fleet, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    kept = []
    for entry in entries:
        if illegal(fleet, entry) is None:
            kept.append(entry)
            fleet = apply(fleet, entry)
    return tuple(kept)
