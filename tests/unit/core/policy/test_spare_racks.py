"""Whole racks that are kept as spares of the cell: queued work leaves them, recovery takes them."""

from typing import Any

import pytest

from rackwright.core.policy.ask import kept_off, spare_racks
from rackwright.core.policy.causes import why_blocked
from rackwright.core.policy.defrag import Outcome, Verdict, entry_of, judge
from rackwright.core.policy.placement import place
from rackwright.core.policy.settings import beyond_the_cell
from rackwright.core.reasons import sentence
from rackwright.wire.entries.slice import SliceMoved
from rackwright.wire.ids import JobId, PlanId, QueueName
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason, Rung
from tests.support.fleets import Cell, cell
from tests.support.recovery import decided
from tests.unit.core.policy.defrag_cells import HOUR, SAVES, block, fill, pass_time
from tests.unit.core.policy.placing import put, racks


def kept(racks: int = 3, count: int = 1) -> Cell:
    return cell(racks, policy=Policy(spare_racks=count))


def test_the_last_of_the_roomiest_whole_racks_are_kept() -> None:
    made = kept(4, count=2)
    assert spare_racks(made.fleet) == 0b1100
    made.unfit("r3-n00")
    assert spare_racks(made.fleet) == 0b0110
    made.sit("x", "r2", [0])
    assert spare_racks(made.fleet) == 0b0011, "a rack with a tenant is none"
    for rack in ("r0", "r1"):
        made.sit(f"on-{rack}", rack, range(18))
    assert spare_racks(made.fleet) == 0b1000, "as many as there are"


def why(made: Cell, job: str = "k", **spec: Any) -> Reason:
    known = made.queue(job, JobSpec(name=JobId(job), **spec))
    assert place(made.fleet, known) is None
    return why_blocked(made.fleet, known, made.fleet.time)


def test_none_by_default() -> None:
    assert kept_off(cell(2).fleet, 50) == 0


def test_queued_work_leaves_them_and_says_so() -> None:
    made = kept(3)
    assert racks(put(made, nodes=32)) == ["r0", "r1"]
    found = why(made, nodes=48)
    assert found.code == "capacity"
    assert sentence(found) == (
        "48 nodes are asked for, 36 are free outside 1 whole rack kept as a spare of the cell,"
        " and 0 nodes of them are kept as spares"
    )
    small = kept(1)
    assert put(small, nodes=1, restartable=False) is None


def test_held_is_who_would_fit_in_them_and_in_nothing_that_may_be_moved() -> None:
    """r2 is the spare rack; of r0 and r1 enough is free, but work that nobody may move is in both.
    The same work, if it may be moved, is the defragmenter's."""
    made = kept(3)
    fill(made, "r0", range(8))
    fill(made, "r1", range(8))
    found = why(made.copy(), nodes=16)
    assert sentence(found) == "would fit, but 1 whole rack is kept as a spare of the cell"
    assert found.code == "held"
    made = kept(3)
    for rack in ("r0", "r1"):
        made.sit(f"v-{rack}", rack, range(8))
    assert why(made, nodes=16).code == "topology.movable"


def strewn(spare: int, *, racks: int = 3) -> Cell:
    """r0 and r1 have three movable nodes each, r2 room for four: a 16-node job waits."""
    made = cell(racks, policy=Policy(spare_racks=spare))
    for rack in ("r0", "r1"):
        made.sit(f"v-{rack}", rack, range(3), checkpoint=SAVES)
    fill(made, "r2", range(14))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    return made


def looked(made: Cell) -> Verdict:
    return judge(made.fleet, made.job("p"), {}, made.fleet.time)


def test_a_plan_may_use_what_it_clears_though_no_rack_is_empty() -> None:
    """What it clears is not the cell's spare: without the plan it would not be one either."""
    entries = [entry_of(looked(strewn(spare)), PlanId("x")) for spare in (0, 1, 2)]
    assert entries[0] is not None
    assert entries[0].slices[0].rack == "r0"
    assert entries == [entries[0]] * 3


def test_a_plan_leaves_spare_racks_alone() -> None:
    made = strewn(1, racks=4)
    assert spare_racks(made.fleet) == 0b1000
    verdict = looked(made)
    assert verdict.outcome is Outcome.GO
    entry = entry_of(verdict, PlanId("x"))
    assert entry is not None
    taken = {part.rack for part in entry.slices}
    homes = {home.rack for victim in entry.victims for home in victim.homes}
    assert (taken, homes) == ({"r0"}, {"r2"})
    made.add(entry)
    assert spare_racks(made.fleet) == 0b1000


def test_no_victim_has_its_home_in_a_spare_rack() -> None:
    """The same cell with a spare rack and without: the empty rack would be the only home."""
    made = cell(3, policy=Policy(spare_racks=1))
    for rack in ("r0", "r1"):
        fill(made, rack, range(3, 4))
        made.sit(f"v-{rack}", rack, range(4, 18), checkpoint=SAVES)
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    assert looked(made).outcome is Outcome.NO_HOMES


def test_recovery_takes_them() -> None:
    made = kept(2)
    made.sit("a", "r0", range(18))
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, SliceMoved)
    assert entry.rack == "r1"


def test_not_as_many_as_there_are() -> None:
    fleet = cell(2).fleet
    assert beyond_the_cell(fleet, Policy(spare_racks=1)) is None
    found = beyond_the_cell(fleet, Policy(spare_racks=2))
    assert found is not None
    assert sentence(found) == (
        "spare_racks 2 leaves none of the 2 racks of the cell to work; ask for 1 or fewer"
    )


# Lent meanwhile


def full_but_for_the_spare(**policy: Any) -> Cell:
    """r0 is full of a protected slice, r1 is the spare rack of the cell."""
    made = cell(2, policy=Policy(spare_racks=1, **policy))
    made.sit("a", "r0", range(18))
    return made


@pytest.mark.parametrize("nodes", [1, 2, 8, 15])
def test_a_spare_rack_is_lent_to_work_of_one_slice_that_can_be_killed(nodes: int) -> None:
    made = full_but_for_the_spare()
    found = put(made, nodes=nodes)
    assert found is not None
    assert [(part.rack, part.lent) for part in found] == [("r1", True)]
    assert spare_racks(made.fleet) == 0b10
    made.place("j", found)
    made.start("j")
    assert spare_racks(made.fleet) == 0b10, "it is the cell's all the same"
    assert put(made, "k", gpus=2) is not None
    assert sum(use.lent for use in made.fleet.usage.values()) == 4 * nodes, "and charged as lent"


@pytest.mark.parametrize(
    "spec",
    [
        {"nodes": 1, "preemptible": False},
        {"nodes": 1, "restartable": False},
        {"nodes": 1, "job_class": JobClass.INTERACTIVE},
        {"nodes": 1, "job_class": JobClass.SERVICE},
        {"nodes": 4, "slice_nodes": 2},
        {"nodes": 16},
        {"gpus": 0, "cpus": 1.0},
    ],
    ids=lambda spec: " ".join(map(str, spec)),
)
def test_and_to_no_other(spec: dict[str, Any]) -> None:
    assert put(full_but_for_the_spare(), **spec) is None


def test_not_where_the_operator_keeps_them_idle_or_the_queue_has_its_share() -> None:
    for policy in (
        {"lend_spare_racks": False},
        {"lend_spares": False},
        {"queue_lent_gpus": {QueueName("default"): 3}},
    ):
        assert put(full_but_for_the_spare(**policy), nodes=1) is None


def test_only_where_there_is_no_other_place() -> None:
    made = kept(2)
    found = put(made, nodes=1)
    assert found is not None
    assert [(part.rack, part.lent) for part in found] == [("r0", False)]


def lent_out() -> Cell:
    """The spare rack is lent to three jobs; the protected slice has nobody beside it."""
    made = full_but_for_the_spare()
    for name, places in (("x", range(8)), ("y", range(8, 17)), ("z", [17])):
        made.sit(name, "r1", places, lent=True)
    return made


def test_recovery_takes_a_lent_rack_back_at_once() -> None:
    made = lent_out()
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, SliceMoved)
    assert (entry.rack, entry.nodes, sorted(entry.evicted)) == (
        "r1",
        (1 << 18) - 1,
        ["x", "y", "z"],
    )
    taken = entry.rungs[-1]
    assert (taken.rung, taken.reason.code) == (Rung.FREE_RACK, "lent-rack")
    assert "which was lent, has 18 nodes once its tenants are gone: r1" in sentence(taken.reason)
    made.add(entry)
    leaving = made.rack("r1").leaving
    assert {(one.notice_s, one.grace_s) for one in leaving} == {(0.0, 5.0)}, "a bounded return"
    assert {made.job(name).requeues for name in "xyz"} == {1}


def test_no_more_of_its_tenants_go_than_must() -> None:
    made = cell(2, policy=Policy(spare_racks=1))
    made.sit("a", "r0", range(8))
    fill(made, "r0", range(8, 18))
    for name, places in (("x", range(8)), ("y", range(8, 17))):
        made.sit(name, "r1", places, lent=True)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, SliceMoved)
    assert len(entry.evicted) == 1


def test_a_small_job_takes_no_lent_rack_back() -> None:
    made = lent_out()
    made.unfit("r1-n17")
    entries = decided(made, "z")
    assert all(not isinstance(one, SliceMoved) or not one.evicted for one in entries)


def test_a_rack_with_another_tenant_is_not_the_cells_any_more() -> None:
    made = cell(3, policy=Policy(spare_racks=1))
    made.sit("x", "r2", range(4), lent=True)
    assert spare_racks(made.fleet) == 0b100
    made.sit("y", "r2", [5])
    assert spare_racks(made.fleet) == 0b010
