"""Homes for all victims of a set, found on the fleet as it would be: no set without all of them.

The victims leave, the blocked job is placed whole, then each victim is placed by placement's own
order, the largest first. Nobody else moves, so no home needs a further victim. Spares stay spares:
only what sat on lent spares may do so again.
"""

from collections import Counter
from dataclasses import dataclass, replace

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.fold.seats import give_back, leave, seat
from rackwright.core.jobs import Job, Slice, is_movable
from rackwright.core.legality.beside import not_free
from rackwright.core.policy.ask import Ask, Same, ask_of, kept_for_wounded, spare_racks
from rackwright.core.policy.cut import Cut, Piece, cut
from rackwright.core.policy.defrag_cost import Blocked, move_of, terms
from rackwright.core.policy.defrag_racks import Left
from rackwright.core.policy.defrag_search import Chosen
from rackwright.core.policy.draft import Draft, Seat
from rackwright.core.policy.gangs import choose
from rackwright.core.policy.guarantees import counting, falls_short
from rackwright.core.policy.placement import Slices, place_on
from rackwright.core.policy.small import place_small
from rackwright.wire.entries.job import SlicePlacement
from rackwright.wire.entries.slice import CostTerms, VictimMove
from rackwright.wire.ids import JobId, QueueName
from rackwright.wire.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """One victim: the slices that leave, where they go, and what it costs. `overlaps`: it serves on
    until it runs there."""

    job: JobId
    move: VictimMove
    homes: tuple[SlicePlacement, ...]
    cost: CostTerms
    overlaps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A set with a place for everybody; `cost` in GPU-hours, the held racks' idle time included."""

    slices: tuple[SlicePlacement, ...]
    homes: tuple[Home, ...]
    hold: float
    cost: float


def settle(case: Blocked, chosen: Chosen) -> Settled | Reason:
    """Places for the blocked job and all victims, or what has none."""
    leaves, trial = chosen.leaves, without(case.fleet, chosen.leaves)
    slices = _served(case, trial)
    if slices is None:
        return Reason(code="no-fit", numbers={"job": case.job.id})
    needed = tuple(left for left in leaves if _in_the_way(case, left, slices))
    if needed != leaves:
        # Who is not in the way may still be one whose spares are.
        fewer = without(case.fleet, needed)
        again = _served(case, fewer)
        if again is not None:
            leaves, trial, slices = needed, fewer, again
    for one in slices:
        seat(trial, case.job, one, case.job.membership + 1)
    homes: list[Home] = []
    gone: Counter[QueueName] = Counter()
    for name, indexes in _largest_first(case, leaves):
        victim = case.fleet.jobs[name]
        home = _home(case, trial, victim, indexes) or evicted(case, victim, gone)
        if home is None:
            return Reason(code="no-home", numbers={"job": name})
        homes.append(home)
    cost = chosen.hold + sum(home.cost.total for home in homes)
    ordered = tuple(sorted(homes, key=lambda home: home.job))
    return Settled(slices=slices, homes=ordered, hold=chosen.hold, cost=cost)


def _served(case: Blocked, trial: Fleet) -> Slices | None:
    """Where the blocked job goes. What a plan clears is not for the cell's spare racks, though too
    few are empty: those that are, stay."""
    job = case.job
    kept = kept_for_wounded(trial, job.spec.priority) if trial.wounded else 0
    return place_on(trial, job, kept | spare_racks(case.fleet))


def trial_of(fleet: Fleet) -> Fleet:
    """A fleet of the caller's own, to be changed by functions of the fold."""
    return evolve(fleet, touched_racks=set(), touched_jobs=set())


def without(fleet: Fleet, leaves: tuple[Left, ...]) -> Fleet:
    """The fleet once these slices have been told to leave, as the fold would have it."""
    trial = trial_of(fleet)
    for name, index in leaves:
        job = fleet.jobs[name]
        part = job.part(index)
        ranks = range(part.first_rank, part.first_rank + part.size)
        leave(trial, job, part, ranks, 0.0, 0.0)
        give_back(trial, name, part)
    return trial


def _in_the_way(case: Blocked, left: Left, slices: tuple[SlicePlacement, ...]) -> bool:
    """Does the blocked job take anything that this slice has?"""
    part = case.fleet.jobs[left[0]].part(left[1])
    name = case.fleet.racks[part.rack].spec.rack
    return any(
        one.rack == name
        and one.nodes & part.mask
        and (not one.gpus or not part.gpus or one.gpus & part.gpus)
        for one in slices
    )


def _largest_first(case: Blocked, leaves: tuple[Left, ...]) -> list[tuple[JobId, tuple[int, ...]]]:
    by_job: dict[JobId, tuple[int, ...]] = {}
    for name, index in leaves:
        by_job[name] = (*by_job.get(name, ()), index)

    def order(one: tuple[JobId, tuple[int, ...]]) -> tuple[int, int, JobId]:
        parts = [case.fleet.jobs[one[0]].part(index) for index in one[1]]
        gpus = sum(part.gpus.bit_count() for part in parts)
        return (-sum(part.size for part in parts), -gpus, one[0])

    return sorted(by_job.items(), key=order)


def _home(case: Blocked, trial: Fleet, victim: Job, indexes: tuple[int, ...]) -> Home | None:
    """Seat these slices of a victim on the trial fleet."""
    parts = [victim.part(index) for index in indexes]
    draft = _draft(case, trial, victim, parts)
    homes: list[SlicePlacement] = []
    for part in parts:
        found = _seat(draft, part, alone=len(victim.slices) == 1)
        if found is None:
            return None
        home = SlicePlacement(
            index=part.index,
            group=part.group,
            replica=part.replica,
            first_rank=part.first_rank,
            rack=trial.racks[found.rack].spec.rack,
            nodes=found.nodes,
            gpus=found.gpus,
            lent=found.lent,
        )
        homes.append(home)
    service = is_movable(victim.spec)
    if service and not all(_clear(case.fleet, home) for home in homes):
        return None  # the new one is to run before the old one goes
    for home in homes:
        seat(trial, victim, home, victim.membership + 1)
    free = all(_free_now(case.fleet, home) for home in homes)
    drain_s = 0.0 if free else case.fleet.policy.defrag_drain_s
    cost = terms(case, victim, drain_s)
    return Home(
        job=victim.id, move=move_of(victim), homes=tuple(homes), cost=cost, overlaps=service
    )


def evicted(case: Blocked, victim: Job, gone: Counter[QueueName]) -> Home | None:
    """No home: work of lower priority may wait for one, where capacity or starvation asks for it,
    and work that has more than its queue is promised, where somebody is owed it.

    Nobody is evicted otherwise for work of equal priority, and no service at all; and for another
    queue's work nobody whose queue is left with less than it is promised. `gone`: GPUs by queue of
    those that are evicted already.
    """
    queue = victim.spec.queue
    lower = victim.spec.priority < case.job.spec.priority
    if not case.evicts or not (lower or case.takes_back(victim, gone[queue])):
        return None
    if queue != case.job.spec.queue and falls_short(case.fleet, victim, gone[queue]):
        return None
    if is_movable(victim.spec):
        return None
    gone[queue] += counting(case.fleet, victim)
    cost = terms(case, victim, 0.0, VictimMove.QUEUE)
    return Home(job=victim.id, move=VictimMove.QUEUE, homes=(), cost=cost)


def _draft(case: Blocked, trial: Fleet, victim: Job, parts: list[Slice]) -> Draft:
    """What the racks offer a victim whose other slices stay where they are."""
    moving = {part.index for part in parts}
    staying = [part for part in victim.slices if part.index not in moving]
    ask = _ask(trial, victim, spare_racks(case.fleet))
    if not all(part.lent for part in parts):
        ask = replace(ask, lendable=False)
    draft = Draft(fleet=trial, ask=ask, same=_same(trial, ask, staying))
    for part in staying:
        draft.take(Seat(part.rack, part.mask))
    return draft


def _ask(trial: Fleet, victim: Job, keep_off: int) -> Ask:
    """Its constraints, for the slices it has: its cut may have been another one."""
    pieces = tuple(
        Piece(
            index=part.index,
            group=part.group,
            replica=part.replica,
            first_rank=part.first_rank,
            nodes=part.size,
            gpus=part.gpus.bit_count(),
        )
        for part in victim.slices
    )
    made = cut(victim.spec, trial.policy, trial.topology)
    only = made.node_gpus if isinstance(made, Cut) else 0
    return ask_of(trial, victim, Cut(pieces=pieces, node_gpus=only, needs=()), keep_off)


def _same(trial: Fleet, ask: Ask, staying: list[Slice]) -> Same | None:
    if not staying:
        return None
    return ask.same_of(trial.node_at(staying[0].rack, staying[0].nodes[0]))


def _seat(draft: Draft, part: Slice, *, alone: bool) -> Seat | None:
    """The best seat for one slice; takes it."""
    if alone and part.size == 1:
        return place_small(draft, part.gpus.bit_count())
    seats = choose(draft, part.size, 1, ((), draft.ask.racks))
    return seats[0] if seats else None


def _clear(fleet: Fleet, home: SlicePlacement) -> bool:
    """Is it free, and has everybody who is to leave it left?"""
    return not_free(fleet.rack(home.rack), home.nodes, home.gpus) is None


def _free_now(fleet: Fleet, home: SlicePlacement) -> bool:
    """Is this home free as things are, and not only once the plan is carried out?"""
    rack = fleet.rack(home.rack)
    wanted = home.gpus or -1
    return not any(
        rack.taken_gpus(place) & wanted
        for place in range(home.nodes.bit_length())
        if home.nodes >> place & 1
    )
