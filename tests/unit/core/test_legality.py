"""What may not follow: a sentence for each rule that no other test meets, and the way out of it."""

from typing import Any

import pytest

from rackwright.core.fleet import Fleet
from rackwright.core.legality import RULES, illegal
from rackwright.wire.entries import ENTRIES
from rackwright.wire.entries.cell import (
    AutomationPaused,
    BreakerClosed,
    CellUpgraded,
    LedgerCreated,
    SnapshotVerified,
    WishRefused,
)
from rackwright.wire.entries.job import (
    JobApproved,
    JobGrown,
    JobPinned,
    JobPlaced,
    JobShrunk,
    JobStarted,
    SlicePlacement,
    WorkerFailed,
)
from rackwright.wire.entries.node import (
    MaintenanceEnded,
    MaintenanceScheduled,
    NodeCheckAsked,
    NodeChecked,
    NodeCleared,
    NodeCordoned,
    NodeFailed,
    NodeJoined,
    NodeSuspected,
    NodeUnfit,
    RackDefined,
    RackDegraded,
    RackHeld,
    RackIsolated,
)
from rackwright.wire.ids import JobId, LedgerId, NodeId, Owner, RackId, SessionId, WorkerId
from rackwright.wire.jobs import Group, JobClass, JobSpec
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Fitness, RackFitness, RackSpec, RepairAction
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.reasons import Reason
from rackwright.wire.versions import FOLD_VERSION
from tests.support.entries import swapped
from tests.support.fleets import Cell, cell, hardware, node_name, rack_spec

N = NodeId("r0-n01")
WHY = Reason(code="test")
OP = Owner("op")
A = JobId("a")


def small(**more: Any) -> Cell:
    """One rack of four nodes."""
    return cell(1, nodes=4, **more)


def seen(made: Cell, node: NodeId = N) -> dict[str, Any]:
    """What an observation of a node names."""
    return {"node": node, "of": made.fleet.node(node).last}


def session(made: Cell) -> SessionId:
    """The session of node N."""
    found = made.fleet.node(N).session
    assert found is not None
    return found


def no(made: Cell, entry: Entry) -> str:
    """Why it may not follow."""
    why = illegal(made.fleet, entry)
    assert why is not None
    return why


def yes(made: Cell, entry: Entry) -> None:
    """It may, and does."""
    assert illegal(made.fleet, entry) is None
    made.add(entry)


def test_the_cell() -> None:
    made = small()
    created = LedgerCreated(ledger=LedgerId("x"), fold_version=1, policy=Policy())
    assert no(made, created) == "this is ledger ledger"
    assert illegal(Fleet(), created) is None
    over = AutomationPaused(automation=Automation.SWAP, until=1.0, by=OP)
    assert no(made, over) == "a pause until 1.0 is over"
    assert no(made, BreakerClosed(culprits=1, by=OP)).startswith("no culprits are counted")
    assert illegal(made.fleet, SnapshotVerified(seq=1, sha256="0" * 64)) is None


def test_fold_versions_follow_each_other() -> None:
    made = small(fold_version=1)
    assert no(made, CellUpgraded(fold_version=3)) == "fold version 3 does not follow 1"
    yes(made, CellUpgraded(fold_version=2))
    assert no(made, CellUpgraded(fold_version=2)) == "fold version 2 does not follow 2"
    assert FOLD_VERSION >= 2


def test_a_wish_is_answered_once() -> None:
    made = small()
    answer = WishRefused(kind="wish.pin", owner=OP, subject="a", reason=WHY, wish=3)
    yes(made, answer)
    assert no(made, answer) == "wish 3 has been answered"


@pytest.mark.parametrize(("version", "starts"), [(1, False), (2, True)])
def test_a_job_whose_node_is_drained_is_started_since_version_two(
    version: int, starts: bool
) -> None:
    made = small(fold_version=version)
    made.sit("a", "r0", range(2), start=False)
    made.add(NodeCordoned(node=N, drain=True, by=OP))
    entry = JobStarted(job=A, membership=1)
    if starts:
        yes(made, entry)
    else:
        assert no(made, entry) == "job a is wounded"


@pytest.mark.parametrize("version", [1, 2])
def test_a_job_that_lost_a_node_is_never_started(version: int) -> None:
    made = small(fold_version=version)
    made.sit("a", "r0", range(2), start=False)
    made.unfit(N)
    assert no(made, JobStarted(job=A, membership=1)) == "job a is wounded"


def test_jobs() -> None:
    made = small()
    made.queue("q", JobSpec(name=JobId("q"), nodes=1))
    over = JobApproved(job=JobId("q"), until=1.0, by=OP)
    assert no(made, over) == "an approval until 1.0 is over"
    made.sit("a", "r0", range(2))
    lost = WorkerFailed(job=A, rank=7, worker=WorkerId("a/7/1"), reason=WHY)
    assert no(made, lost) == "job a has no rank 7"
    nobody = WorkerFailed(job=JobId("x"), rank=0, worker=WorkerId("x/0/1"), reason=WHY)
    assert no(made, nobody) == "no job x"


def test_part_of_a_node_is_of_one_node() -> None:
    made = small()
    made.queue("a", JobSpec(name=A, gpus=2))
    part = SlicePlacement(index=0, first_rank=0, rack=RackId("r0"), nodes=0b11, gpus=0b11)
    why = no(made, JobPlaced(job=A, membership=1, slices=(part,), reason=WHY))
    assert why == "2 ranks, 1 to 1 are wanted"


def test_a_pinned_tenant_is_not_evicted() -> None:
    made = cell(1, nodes=5)
    made.sit("b", "r0", [4])
    made.sit("a", "r0", range(4))
    made.unfit(N)
    made.add(JobPinned(job=JobId("b"), pinned=True, by=OP))
    why = no(made, swapped((1, 1, 4), evicted=(JobId("b"),)))
    assert why == "job b is pinned by op"


def test_sessions() -> None:
    made = small()
    join: dict[str, Any] = {"boot": "b", "hardware": hardware(N)}
    nobody = NodeJoined(node=NodeId("x"), of=0, session=SessionId("s"), **join)
    assert no(made, nobody) == "no node x"
    again = NodeJoined(**seen(made), session=session(made), **join)
    assert no(made, again) == f"session {session(made)} of {N} is known"
    other = SessionId("other")
    assert "is not the current one" in no(
        made, NodeSuspected(**seen(made), session=other, reason=WHY)
    )
    assert "is not suspected" in no(made, NodeCleared(**seen(made), session=session(made)))
    failed: dict[str, Any] = {"session": session(made), "reason": WHY}
    assert "nothing has recalled" in no(made, NodeFailed(**seen(made), fenced=True, **failed))
    not_ours = NodeFailed(**seen(made), session=other, fenced=False, reason=WHY)
    assert "is not the current one" in no(made, not_ours)
    made.suspect(N)
    suspected = NodeSuspected(**seen(made), session=session(made), reason=WHY)
    assert no(made, suspected) == f"node {N} is suspected already"
    dead = session(made)
    made.add(NodeFailed(**seen(made), fenced=True, session=dead, reason=WHY))
    made.join(N)
    over = NodeJoined(**seen(made), session=dead, **join)
    assert "is over for good" in no(made, over)


def test_fitness_and_checks() -> None:
    made = small()
    unfit: dict[str, Any] = {"action": RepairAction.RESET, "reason": WHY}
    assert "at most already" in no(made, NodeUnfit(**seen(made), fitness=Fitness.FULL, **unfit))
    assert "has no check to make" in no(made, NodeCheckAsked(**seen(made), why="idle"))
    made.join(N, hardware(N, checks=True))
    asked = NodeCheckAsked(**seen(made), why="idle")
    yes(made, asked)
    again = NodeCheckAsked(**seen(made), why="idle")
    assert "asked for a check already (idle)" in no(made, again)
    wrong = NodeChecked(**seen(made), asked=1, passed=True, reason=WHY)
    assert ", not at 1" in no(made, wrong)
    nobody = NodeCordoned(node=NodeId("x"), by=OP)
    assert no(made, nobody) == "no node x"


def test_racks() -> None:
    made = small()
    old = made.rack("r0").spec

    def defined(**changes: Any) -> str:
        spec: dict[str, Any] = {
            "rack": old.rack,
            "path": old.path,
            "nodes": old.nodes,
            "gpus_per_node": 4,
        }
        return no(made, RackDefined(rack=RackSpec(**(spec | changes))))

    assert defined() == "rack r0 is defined so already"
    assert defined(path=("b1",)) == "rack r0 is at , it cannot move"
    assert defined(nodes=old.nodes[::-1]) == "rack r0: nodes are only added at the end"
    assert defined(nodes=(*old.nodes, N)) == "rack r0 names a node twice"
    new = NodeId("r0-n09")
    yes(made, RackDefined(rack=rack_spec("r8", 1)))
    assert defined(nodes=(*old.nodes, new, node_name("r8", 0))) == "node r8-n00 is in rack r8"
    good = RackDegraded(rack=old.rack, fitness=RackFitness.GOOD, reason=WHY)
    assert no(made, good) == "rack r0 is good already"
    yes(made, RackIsolated(rack=old.rack, reason=WHY))
    assert no(made, RackIsolated(rack=old.rack, reason=WHY)) == "rack r0 is isolated"
    assert no(made, RackIsolated(rack=RackId("x"), reason=WHY)) == "no rack x"
    assert no(made, RackHeld(rack=old.rack, owner=OP, until=1.0)) == "a hold until 1.0 is over"


def test_windows() -> None:
    made = small()
    now = made.fleet.time
    times: dict[str, Any] = {"begin": now + 60, "end": now + 120, "by": OP}
    assert no(made, MaintenanceScheduled(**times)) == "maintenance of nothing"
    assert no(made, MaintenanceScheduled(racks=(RackId("x"),), **times)) == "no rack x"
    assert no(made, MaintenanceScheduled(nodes=(NodeId("x"),), **times)) == "no node x"
    back: dict[str, Any] = {**times, "end": now + 30}
    assert "ends before it begins" in no(made, MaintenanceScheduled(nodes=(N,), **back))
    yes(made, MaintenanceScheduled(nodes=(N,), **times))
    assert no(made, MaintenanceEnded(of=1)) == "no maintenance 1"


def shrunk(*indexes: int, membership: int = 2) -> JobShrunk:
    """Without these slices."""
    return JobShrunk(job=A, membership=membership, indexes=indexes, reason=WHY)


def grown(*slices: SlicePlacement, membership: int = 2) -> JobGrown:
    """With these too."""
    return JobGrown(job=A, membership=membership, slices=slices, reason=WHY)


def test_an_elastic_job_keeps_its_least() -> None:
    made = cell(3, nodes=2)
    made.spread("a", [(f"r{n}", range(2)) for n in range(3)], slice_nodes=2, min_slices=3)
    made.unfit(N)
    assert no(made, shrunk(0)) == "2 slices are fewer than 3"
    part = SlicePlacement(index=0, first_rank=0, rack=RackId("r0"), nodes=3)
    assert no(made, grown(part)) == "job a is wounded, starting or in a plan"


def service(replicas: int, *, nodes: int = 2, **group: Any) -> Cell:
    """Replicas of `nodes` nodes in slices of two, all in r0, which has room for more."""
    made = cell(2, nodes=nodes * replicas + 4)
    one = Group(name=A, nodes=nodes, replicas=replicas, slice_nodes=2, **group)
    made.queue("a", JobSpec(name=A, groups=(one,), job_class=JobClass.SERVICE))
    parts = tuple(
        SlicePlacement(
            index=at,
            replica=at * 2 // nodes,
            first_rank=2 * at,
            rack=RackId("r0"),
            nodes=3 << 2 * at,
        )
        for at in range(replicas * nodes // 2)
    )
    made.place("a", parts)
    made.start("a")
    return made


def test_replicas_leave_whole_wounded_and_not_all() -> None:
    made = service(2, nodes=4)
    made.unfit(N)
    assert no(made, shrunk(0)) == "replica 0 of group 0 would be left in part"
    assert no(made, shrunk(2, 3)) == "replica 1 of group 0 is not wounded"
    yes(made, shrunk(0, 1))


def test_a_group_keeps_a_replica() -> None:
    made = cell(1, nodes=4)
    groups = tuple(Group(name=JobId(name), nodes=1) for name in ("x", "y"))
    made.queue("a", JobSpec(name=A, groups=groups, job_class=JobClass.SERVICE))
    made.place(
        "a",
        tuple(
            SlicePlacement(index=at, group=at, first_rank=at, rack=RackId("r0"), nodes=1 << at)
            for at in range(2)
        ),
    )
    made.start("a")
    made.unfit(N)
    assert no(made, shrunk(1)) == "group 1 would be left without a replica"


def test_replicas_come_once_and_no_more_than_wanted() -> None:
    made = service(2)

    def more(index: int, replica: int, nodes: int, first_rank: int = 4) -> SlicePlacement:
        rack = RackId("r0")
        return SlicePlacement(
            index=index, replica=replica, first_rank=first_rank, rack=rack, nodes=nodes
        )

    there = more(2, 1, 0b110000)
    assert no(made, grown(there)) == "replica 1 of group 0 is there"
    assert no(made, grown(more(2, 2, 0b110000))) == "6 ranks, at most 4 are wanted"
    assert no(made, grown(more(3, 2, 0b110000))) == "slice 3 at rank 4, expected 2 at 4"
    made.unfit(N)
    yes(made, shrunk(0))
    made.start("a")
    back = more(0, 0, 0b110000, first_rank=0)
    twice = grown(back, back, membership=3)
    assert no(made, twice) in ("a slice is given twice", "slice 0 at rank 0, expected 2 at 4")
    yes(made, grown(back, membership=3))


def test_every_entry_type_has_its_rule() -> None:
    assert set(RULES) == set(ENTRIES)
