"""Giving a running job what it lacks: slices it went on without, replicas it started without.

Each is a gang that is placed whole, near what the job has. Nobody is moved or evicted for it.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, JobState, Shed
from rackwright.core.legality.sizes import Gang, elastic, gang_of
from rackwright.core.policy.ask import ask_of, kept_off
from rackwright.core.policy.cut import Cut, Piece, cut
from rackwright.core.policy.draft import Draft, Seat
from rackwright.core.policy.gangs import seat_all
from rackwright.core.policy.limits import ends_at
from rackwright.core.policy.placement import in_rank_order
from rackwright.core.policy.quota import over_quota
from rackwright.core.policy.replacements import driven_from, example_of
from rackwright.wire.entries.job import JobGrown, SlicePlacement
from rackwright.wire.jobs import JobClass
from rackwright.wire.reasons import Reason

Pieces = tuple[Piece, ...]


def lacks(job: Job) -> bool:
    """Has this placed job fewer slices or replicas than it asks for?"""
    if not job.slices:
        return False
    if job.shed:
        return True
    spec = job.spec
    if spec.job_class is not JobClass.SERVICE or not spec.groups:
        return False
    asked = sum(group.replicas for group in spec.groups)
    return len({gang_of(part) for part in job.slices}) < asked


def may_grow(fleet: Fleet, job: Job, now: float) -> bool:
    """Is it well, all up, in no plan, and not about to end anyway?"""
    if job.state is not JobState.RUNNING or job.wounds or job.plan is not None:
        return False
    if job.started != job.membership or not lacks(job):
        return False
    end = ends_at(fleet.policy, job)
    return end is None or end - now > fleet.policy.defrag_near_limit_s


def missing(fleet: Fleet, job: Job) -> list[Pieces]:
    """The gangs it lacks, in order; those that were never there come after all others."""
    shed = sorted(job.shed, key=lambda one: one.index)
    if elastic(job.spec):
        return [(_piece(one),) for one in shed]
    back = [tuple(_piece(one) for one in gang) for _, gang in groupby(shed, key=gang_of)]
    return back + list(_never_there(fleet, job))


def _piece(one: Shed) -> Piece:
    return Piece(
        index=one.index,
        group=one.group,
        replica=one.replica,
        first_rank=one.first_rank,
        nodes=one.size,
    )


def _never_there(fleet: Fleet, job: Job) -> Iterator[Pieces]:
    """Replicas that the job started without."""
    made = cut(job.spec, fleet.policy, fleet.topology)
    if not isinstance(made, Cut) or not job.spec.groups:
        return
    known: set[Gang] = {gang_of(part) for part in job.with_shed}
    for gang, pieces in groupby(made.pieces, key=lambda piece: (piece.group, piece.replica)):
        if gang not in known:
            yield tuple(pieces)


def grow(fleet: Fleet, job: Job, now: float, keep_off: int = 0) -> JobGrown | None:
    """What the job gets back now, None if nothing fits. `keep_off`: racks to leave alone."""
    if not may_grow(fleet, job, now):
        return None
    kept = kept_off(fleet, job.spec.priority)
    draft = _draft(fleet, job, now, kept | keep_off)
    last = job.with_shed[-1]
    index, rank = last.index + 1, last.first_rank + last.size
    found: list[SlicePlacement] = []
    asked: list[Piece] = []
    for pieces in missing(fleet, job):
        wanted = Cut(pieces=(*asked, *pieces), node_gpus=0, needs=())
        seats = None if over_quota(fleet, job, wanted) is not None else _seats(draft, job, pieces)
        if seats is None:
            continue
        asked += pieces
        if not _was_there(job, pieces[0]):
            pieces = tuple(_moved_up(pieces, index, rank))
            index, rank = pieces[-1].index + 1, pieces[-1].first_rank + pieces[-1].nodes
        found += [_placement(fleet, piece, seat) for piece, seat in _pairs(pieces, seats)]
    if not found:
        return None
    return JobGrown(
        job=job.id,
        membership=job.membership + 1,
        slices=tuple(sorted(found, key=lambda part: part.index)),
        reason=_why(fleet, job, found),
    )


def _was_there(job: Job, piece: Piece) -> bool:
    return any(one.index == piece.index and gang_of(one) == _gang(piece) for one in job.shed)


def _gang(piece: Piece) -> Gang:
    return piece.group, piece.replica


def _moved_up(pieces: Pieces, index: int, rank: int) -> Iterator[Piece]:
    """A gang that was never there: its slices and ranks come after all that are."""
    for piece in pieces:
        yield replace(piece, index=index, first_rank=rank)
        index, rank = index + 1, rank + piece.nodes


def _draft(fleet: Fleet, job: Job, now: float, keep_off: int) -> Draft:
    """What racks offer this job besides what it has."""
    spec = job.spec
    only = fleet.topology.gpus_per_node if spec.gpus is not None else 0
    ask = ask_of(fleet, job, Cut(pieces=(), node_gpus=only, needs=()), keep_off)
    counts: dict[int, int] = {}
    for part in job.slices:
        counts[part.rack] = counts.get(part.rack, 0) + 1
    racks = ask.racks
    for number, count in counts.items():
        full = spec.max_per_rack is not None and count >= spec.max_per_rack
        racks &= ~(1 << number) if full else -1
    barred = driven_from(fleet, job, now, ask.barred)
    ask = replace(ask, racks=racks, barred=barred, across=True)
    same = ask.same_of(example_of(fleet, job, None))
    return Draft(fleet=fleet, ask=ask, same=same, slices=counts)


def _seats(draft: Draft, job: Job, pieces: Pieces) -> list[list[Seat]] | None:
    """Seats for one gang, by size, in the lowest domain around the job that holds them. Changes the
    draft if there are any.
    """
    topology = draft.ask.topology
    by_size: dict[int, int] = {}
    for piece in pieces:
        by_size[piece.nodes] = by_size.get(piece.nodes, 0) + 1
    batches = sorted(by_size.items(), reverse=True)
    mine = {topology.paths[part.rack] for part in job.slices}
    for depth in range(topology.depth, -1, -1):
        for path in sorted({path[:depth] for path in mine}):
            trial = draft.fork()
            within = topology.domains[path] & draft.ask.racks
            seats = seat_all(trial, batches, (path, within))
            if seats is not None:
                draft.taken, draft.slices = trial.taken, trial.slices
                return [in_rank_order(draft.fleet, alike) for alike in seats]
    return None


def _pairs(pieces: Pieces, seats: list[list[Seat]]) -> Iterator[tuple[Piece, Seat]]:
    """Each piece with a seat of its size; `seats` are by size, the largest first."""
    sizes = sorted({piece.nodes for piece in pieces}, reverse=True)
    for size, alike in zip(sizes, seats, strict=True):
        yield from zip((p for p in pieces if p.nodes == size), alike, strict=True)


def _placement(fleet: Fleet, piece: Piece, seat: Seat) -> SlicePlacement:
    return SlicePlacement(
        index=piece.index,
        group=piece.group,
        replica=piece.replica,
        first_rank=piece.first_rank,
        rack=fleet.rack_name(seat.rack),
        nodes=seat.nodes,
        lent=seat.lent,
    )


def _why(fleet: Fleet, job: Job, found: list[SlicePlacement]) -> Reason:
    total = len(job.slices) + sum(len(pieces) for pieces in missing(fleet, job))
    numbers: dict[str, int | float | str] = {
        "slices": len(found),
        "has": len(job.slices) + len(found),
        "asked": total,
    }
    return Reason(code="grown", numbers=numbers)
