"""A slice whose rack has run out of spares moves, if nothing comes back and it is worth it."""

from typing import Any

from rackwright.core.fold import apply
from rackwright.core.invariants import check
from rackwright.core.legality import illegal
from rackwright.core.policy.spares import recover
from rackwright.core.policy.zero_spares import planned_move
from rackwright.wire.entries.node import MaintenanceScheduled, NodeCordoned, RepairRequested
from rackwright.wire.entries.slice import SliceMoved
from rackwright.wire.ids import JobId, NodeId, Owner, RackId
from rackwright.wire.jobs import Checkpoint, JobClass
from rackwright.wire.nodes import RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell
from tests.unit.core.policy.defrag_cells import pass_time

A = JobId("a")
DAY = 86_400.0
SAVES = Checkpoint(interval_s=1800.0)


def bare(racks: int = 2, policy: Policy | None = None, **spec: Any) -> Cell:
    """Job a on 16 nodes of r0, whose two spares are used up; both wait for a repair."""
    made = cell(racks, policy=policy, sound=False)
    made.sit("a", "r0", range(16), **{"checkpoint": SAVES, "time_limit_s": 30 * DAY, **spec})
    for place in (0, 1):
        made.unfit(f"r0-n{place:02d}")
        made.add(*recover(made.fleet, made.job("a"), made.fleet.time))
        made.start("a")
        ask(made, place)
    return made


def ask(made: Cell, place: int, eta: float | None = None) -> None:
    node = made.fleet.node(NodeId(f"r0-n{place:02d}"))
    why = Reason(code="xid.79")
    made.add(
        RepairRequested(
            node=node.name, of=node.last, action=RepairAction.REPLACE, eta=eta, reason=why
        )
    )


def move(made: Cell, saved: float | None = 0.0) -> SliceMoved | None:
    """What is decided when the job saved that many seconds ago; legal and sound."""
    now = made.fleet.time
    told = {} if saved is None else {A: now - saved}
    entry = planned_move(made.fleet, told, now)
    if entry is not None:
        assert illegal(made.fleet, entry) is None
        check(apply(made.fleet, entry))
    return entry


def days(made: Cell, count: float) -> None:
    pass_time(made, count * DAY)


def test_it_moves_just_after_a_checkpoint_when_no_spare_is_due() -> None:
    made = bare()
    assert move(made) is None  # the repairs may still come
    days(made, 1.1)
    entry = move(made)
    assert entry is not None
    assert (entry.index, entry.rack, entry.planned) == (0, "r1", True)
    assert entry.rungs[0].reason == Reason(code="zero-spares", numbers={"rack": "r1", "spares": 2})
    assert entry.rungs[0].price_gpu_h == 64 * 180 / 3600
    after = apply(made.fleet, entry).jobs[A]
    assert (after.state, after.membership, after.wounds) == ("running", 4, ())


def test_not_in_the_middle_between_two_checkpoints() -> None:
    made = bare()
    days(made, 1.1)
    assert move(made, saved=900.0) is None
    assert move(made, saved=None) is None
    assert move(made, saved=120.0) is not None


def test_at_any_time_if_it_saves_on_notice() -> None:
    made = bare(checkpoint=Checkpoint(interval_s=None, on_notice_s=30.0))
    days(made, 1.1)
    assert move(made, saved=None) is not None


def test_a_repair_with_a_date_is_waited_for_up_to_the_limit() -> None:
    made = bare()
    days(made, 1.1)
    ask(made, 0, eta=made.fleet.time + 3 * DAY)
    assert move(made) is None
    ask(made, 0, eta=made.fleet.time + 5 * DAY)
    entry = move(made)
    assert entry is not None
    assert entry.rungs[0].reason.numbers["due_h"] == 120.0


def test_a_spare_that_is_away_for_a_while_is_due_when_that_is_over() -> None:
    made = bare()
    days(made, 1.1)
    begin, rack = made.fleet.time, RackId("r0")
    node = NodeId("r0-n00")
    window: dict[str, Any] = {"begin": begin + 60.0, "by": Owner("op")}
    made.add(MaintenanceScheduled(nodes=(node,), end=begin + DAY, **window))
    assert move(made) is not None, "a window alone brings no node back that is out for a repair"
    made.add(NodeCordoned(node=node, drain=True, by=Owner("op"), because="maintenance"))
    assert move(made) is None
    longer = bare()
    days(longer, 1.1)
    longer.add(MaintenanceScheduled(racks=(rack,), end=begin + 9 * DAY, **window))
    longer.add(NodeCordoned(node=node, drain=True, by=Owner("op"), because="maintenance"))
    assert move(longer) is not None


def test_it_does_not_move_onto_the_spares_of_others() -> None:
    made = cell(2, sound=False)
    made.sit("a", "r0", range(2), checkpoint=SAVES, time_limit_s=30 * DAY)
    made.sit("x", "r0", range(2, 18), checkpoint=SAVES, time_limit_s=DAY)
    made.sit("y", "r1", range(14), checkpoint=SAVES, time_limit_s=DAY)
    made.unfit("r0-n17")
    made.add(*recover(made.fleet, made.job("x"), made.fleet.time))
    days(made, 1.1)
    entry = move(made)
    assert entry is None or not entry.lent


def test_not_when_the_job_ends_sooner() -> None:
    made = bare(time_limit_s=5 * DAY)
    days(made, 1.1)
    assert move(made) is None


def test_not_to_a_rack_that_leaves_it_no_spare() -> None:
    made = bare()
    days(made, 1.1)
    made.unfit("r1-n00")
    assert move(made) is not None
    made.unfit("r1-n01")
    assert move(made) is None


def test_lent_spares_are_spares() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16), checkpoint=SAVES, time_limit_s=30 * DAY)
    made.sit("b", "r0", [16], lent=True)
    made.unfit("r0-n17")
    days(made, 1.1)
    assert move(made) is None


def test_a_rack_that_is_full_by_choice_is_left_alone() -> None:
    made = cell(2)
    made.sit("a", "r0", range(18), checkpoint=SAVES, time_limit_s=30 * DAY)
    days(made, 1.1)
    assert move(made) is None


def test_pinned_and_wounded_work_stays() -> None:
    pinned = bare(job_class=JobClass.SERVICE, time_limit_s=None)
    days(pinned, 1.1)
    assert move(pinned) is None
    wounded = bare()
    days(wounded, 1.1)
    wounded.unfit("r0-n05")
    assert move(wounded) is None


def test_a_planned_move_of_a_job_that_is_not_settled_is_illegal() -> None:
    made = bare()
    days(made, 1.1)
    entry = move(made)
    assert entry is not None
    made.unfit("r0-n05")
    assert illegal(made.fleet, entry) == "job a is not settled"
