"""A commit whose entries are about different things is judged as the fold would judge it."""

import itertools
from typing import Any

import pytest

from rackwright.core.fold import fold, refuses
from rackwright.core.legality.apart import apart
from rackwright.wire.entries.node import NodeSuspected, NodeUnfit
from rackwright.wire.entries.slice import NodeSwap, SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.ids import JobId, NodeId, RackId, SessionId
from rackwright.wire.nodes import Fitness, RepairAction
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell
from tests.support.recovery import crash


def made() -> Cell:
    """Three jobs in three racks, two of them wounded, the third in both of its slices."""
    made = cell(5)
    made.sit("a", "r0", range(8))
    made.sit("b", "r0", range(8, 14))
    made.spread("wide", [("r1", range(16)), ("r2", range(16))])
    for node in ("r0-n03", "r0-n09", "r1-n03", "r2-n03"):
        made.unfit(node)
    crash(made, "a", 5)
    return made


def swap(job: str, membership: int, index: int, rank: int, old: int, new: int) -> SliceSwapped:
    swaps = (NodeSwap(rank=rank, old=old, new=new),)
    return SliceSwapped(job=JobId(job), membership=membership, index=index, swaps=swaps, rungs=())


SWAPS = (
    swap("a", 2, 0, 3, 3, 16),
    swap("b", 2, 0, 1, 9, 17),
    swap("b", 2, 0, 1, 9, 16),
    swap("wide", 2, 0, 3, 3, 17),
    swap("wide", 3, 1, 19, 3, 17),
    swap("wide", 3, 1, 19, 4, 17),
    swap("nobody", 2, 0, 0, 0, 1),
)
MOVES = tuple(
    SliceMoved(
        job=JobId(job), membership=number, index=index, rack=RackId(rack), nodes=mask, rungs=()
    )
    for job, number, index, rack, mask in (
        ("a", 2, 0, "r3", 0xFF),
        ("b", 2, 0, "r3", 0x3F),
        ("b", 2, 0, "r4", 0x3F),
        ("wide", 2, 0, "r4", 0xFFFF),
        ("wide", 2, 0, "r9", 0xFFFF),
    )
)
RESTARTS = tuple(
    SliceRestarted(
        job=JobId("a"), membership=number, index=0, ranks=(rank,), charge=False, rungs=()
    )
    for number, rank in ((2, 5), (3, 5), (2, 6))
)


def unfit(made: Cell, node: str, of: int = 0) -> NodeUnfit:
    known = made.fleet.node(NodeId(node)).last
    return NodeUnfit(
        node=NodeId(node),
        of=of or known,
        fitness=Fitness.NONE,
        action=RepairAction.REBOOT,
        gpu=0,
        observed_at=made.fleet.time,
        reason=Reason(code="xid.79"),
    )


def agrees(made: Cell, entries: tuple[Any, ...]) -> bool:
    """Trial and fold say the same of this commit; whether its entries are apart."""
    offered = made.commit(*entries)
    folding = fold(made.fleet, made.fleet.seq + 1, made.fleet.time, offered)
    assert (refuses(made.fleet, made.fleet.time, offered) or "") == folding.why, entries
    return apart(made.fleet, entries)


@pytest.mark.parametrize("kinds", [SWAPS, MOVES, RESTARTS], ids=["swaps", "moves", "restarts"])
def test_recovery_is_judged_as_the_fold_judges_it(kinds: tuple[Any, ...]) -> None:
    found = {agrees(made(), entries) for entries in itertools.permutations(kinds, 2)}
    found |= {agrees(made(), (entry,)) for entry in kinds}
    assert found == {False, True}


def test_observations_of_different_nodes_are_apart_of_one_they_are_not() -> None:
    cell = made()
    one, other = unfit(cell, "r4-n00"), unfit(cell, "r4-n01")
    assert agrees(cell, (one, other))
    assert agrees(cell, (one, unfit(cell, "r4-n02", of=1)))
    assert not agrees(cell, (one, one))
    known = cell.fleet.node(NodeId("r4-n03"))
    suspected = NodeSuspected(
        node=known.name, of=known.last, session=SessionId("other"), reason=Reason(code="silence")
    )
    assert agrees(cell, (suspected,))


def test_what_meets_in_a_rack_or_a_job_is_not_apart() -> None:
    fleet = made().fleet
    a, b, taken, wide = SWAPS[:4]
    assert apart(fleet, (a, wide))
    assert not apart(fleet, (a, b))  # in one rack
    assert not apart(fleet, (wide, SWAPS[4]))  # of one job
    assert not apart(fleet, (MOVES[0], MOVES[1]))  # to one rack
    assert not apart(fleet, (MOVES[0], taken))  # out of the rack in which the other stays
