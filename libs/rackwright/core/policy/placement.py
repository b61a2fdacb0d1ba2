"""Where a job goes: feasible, scored, chosen. The same fleet and job always give the same racks.

Slices of whole nodes are seated by `gangs`, work of one node by `small`, work that may be cut to
what is free by `scattered`; the order of preference is in `scoring`.
"""

from dataclasses import replace

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.policy.ask import Ask, ask_of, kept_for_wounded, kept_off, spare_racks
from rackwright.core.policy.cut import Cut, Piece, cut, least_replicas
from rackwright.core.policy.draft import Draft, Seat
from rackwright.core.policy.gangs import place_gang, variants
from rackwright.core.policy.nominal import scattered
from rackwright.core.policy.quota import over_quota
from rackwright.core.policy.scattered import Gang, gangs_of, scatter
from rackwright.core.policy.small import place_small
from rackwright.wire.entries.job import SlicePlacement
from rackwright.wire.jobs import JobSpec, TopologyNeed
from rackwright.wire.reasons import Reason

Slices = tuple[SlicePlacement, ...]


def place(fleet: Fleet, job: Job, keep_off: int = 0) -> Slices | None:
    """All slices of a queued job on this fleet, or None: it waits (`why_blocked` says why).

    `keep_off`: a set of racks to leave alone, besides those that are kept for recovery.
    """
    kept = kept_off(fleet, job.spec.priority)
    found = place_on(fleet, job, kept | keep_off)
    if found is None and fleet.policy.spare_racks and fleet.policy.lend_spare_racks:
        found = _on_a_spare_rack(fleet, job, keep_off)
    return found


def _on_a_spare_rack(fleet: Fleet, job: Job, keep_off: int) -> Slices | None:
    """A lent seat in a whole rack that is kept for the cell, where there is no other place."""
    racks = spare_racks(fleet)
    made = cut(job.spec, fleet.policy, fleet.topology)
    if not racks or not isinstance(made, Cut) or job.spec.gpus == 0:
        return None
    ask = ask_of(fleet, job, made, keep_off)
    if not ask.lendable or made.pieces[0].nodes >= ask.full:
        return None  # a full slice is too much to be killed with five seconds' notice
    wounded = kept_for_wounded(fleet, job.spec.priority) if fleet.wounded else 0
    found = place_on(fleet, job, fleet.topology.all_racks & ~racks | wounded | keep_off)
    return None if found is None else tuple(evolve(part, lent=True) for part in found)


def place_on(fleet: Fleet, job: Job, keep_off: int = 0) -> Slices | None:
    """As `place`, leaving alone the racks of the set `keep_off` and nothing else."""
    made = cut(job.spec, fleet.policy, fleet.topology)
    if not isinstance(made, Cut) or over_quota(fleet, job, made) is not None:
        return None
    found = _place_cut(fleet, job, made, keep_off)
    for replicas in _fewer(job.spec) if found is None else ():
        less = cut(job.spec, fleet.policy, fleet.topology, replicas)
        found = _place_cut(fleet, job, less, keep_off) if isinstance(less, Cut) else None
        if found is not None:
            break
    return found


def _fewer(spec: JobSpec) -> list[tuple[int, ...]]:
    """Replicas a service may do with when not all fit: as many as possible first."""
    least = least_replicas(spec)
    asked = tuple(group.replicas for group in spec.groups)
    most = max((a - b for a, b in zip(asked, least, strict=True)), default=0)
    return [
        tuple(max(b, a - less) for a, b in zip(asked, least, strict=True))
        for less in range(1, most + 1)
    ]


def _place_cut(fleet: Fleet, job: Job, made: Cut, keep_off: int) -> Slices | None:
    ask = ask_of(fleet, job, made, keep_off)
    if all(need is TopologyNeed.ANY for need in made.needs) and not made.pieces[0].gpus:
        return (
            _scattered(fleet, ask, made.pieces, broken_only=True)
            or _by_slice(fleet, ask, made.pieces)
            or _scattered(fleet, ask, made.pieces, broken_only=False)
        )
    found = _by_slice(fleet, ask, made.pieces)
    if found is None and scattered(made) and not made.pieces[0].gpus:
        return _scattered(fleet, ask, made.pieces, broken_only=False)
    return found


def _by_slice(fleet: Fleet, ask: Ask, pieces: tuple[Piece, ...]) -> Slices | None:
    """Every slice as it was cut."""
    draft = Draft(fleet=fleet, ask=ask)
    first = pieces[0]
    if len(pieces) == 1 and first.nodes == 1:
        seat = place_small(draft, first.gpus)
        return None if seat is None else (_placement(fleet, first, seat),)
    by_size: dict[int, list[Piece]] = {}
    for piece in pieces:
        by_size.setdefault(piece.nodes, []).append(piece)
    batches = sorted(by_size.items(), reverse=True)
    seated = place_gang(draft, [(size, len(alike)) for size, alike in batches])
    if seated is None:
        return None
    pairs = [
        (piece, seat)
        for (_, alike), seats in zip(batches, seated.seats, strict=True)
        for piece, seat in zip(alike, in_rank_order(fleet, seats), strict=True)
    ]
    pairs.sort(key=lambda pair: pair[0].index)
    return tuple(_placement(fleet, piece, seat) for piece, seat in pairs)


def in_rank_order(fleet: Fleet, seats: list[Seat]) -> list[Seat]:
    """Ranks follow racks: slices next to each other in rank are next to each other in the tree."""
    paths = fleet.topology.paths
    return sorted(seats, key=lambda seat: (paths[seat.rack], seat.rack, seat.nodes))


def _placement(fleet: Fleet, piece: Piece, seat: Seat) -> SlicePlacement:
    return SlicePlacement(
        index=piece.index,
        group=piece.group,
        replica=piece.replica,
        first_rank=piece.first_rank,
        rack=fleet.racks[seat.rack].spec.rack,
        nodes=seat.nodes,
        gpus=seat.gpus,
        lent=seat.lent,
    )


def _scattered(
    fleet: Fleet, ask: Ask, pieces: tuple[Piece, ...], *, broken_only: bool
) -> Slices | None:
    across = replace(ask, across=True)
    gangs = gangs_of(pieces)
    for same in variants(Draft(fleet=fleet, ask=across), 1):
        draft = Draft(fleet=fleet, ask=across, same=same)
        found = scatter(draft, gangs, broken_only=broken_only)
        if found is not None:
            return _parts(fleet, gangs, found)
    return None


def _parts(fleet: Fleet, gangs: list[Gang], found: list[list[Seat]]) -> Slices:
    parts: list[SlicePlacement] = []
    rank = 0
    for gang, seats in zip(gangs, found, strict=True):
        for seat in in_rank_order(fleet, seats):
            size = seat.nodes.bit_count()
            piece = Piece(
                index=len(parts),
                group=gang.group,
                replica=gang.replica,
                first_rank=rank,
                nodes=size,
            )
            parts.append(_placement(fleet, piece, seat))
            rank += size
    return tuple(parts)


def why_placed(fleet: Fleet, job: Job, slices: Slices) -> Reason:
    """What the owner is told of a placement: racks, domains, spares missing, and if it was cut."""
    made = cut(job.spec, fleet.policy, fleet.topology)
    racks = {part.rack for part in slices}
    numbers: dict[str, int | float | str] = {
        "nodes": sum(part.nodes.bit_count() for part in slices),
        "slices": len(slices),
        "racks": len(racks),
    }
    if fleet.topology.depth:
        paths = {fleet.topology.paths[fleet.rack_numbers[rack]] for rack in racks}
        numbers["domains"] = len(paths)
    if any(part.lent for part in slices):
        numbers["lent"] = sum(part.nodes.bit_count() for part in slices if part.lent)
    if isinstance(made, Cut):
        asked = [(piece.group, piece.replica, piece.nodes) for piece in made.pieces]
        found = [(part.group, part.replica, part.nodes.bit_count()) for part in slices]
        if found != asked:
            fewer = sum(size for _, _, size in found) < sum(size for _, _, size in asked)
            code = "placed.fewer" if fewer else "placed.scattered"
            return Reason(code=code, numbers=numbers | {"slices_asked": len(asked)})
    return Reason(code="placed", numbers=numbers)
