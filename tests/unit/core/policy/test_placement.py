"""The order in which racks are preferred, one criterion at a time."""

from typing import Any

import pytest

from rackwright.core.policy.checkplacement import check_placement
from rackwright.core.policy.placement import place, why_placed
from rackwright.wire.entries.node import MaintenanceScheduled, RackDegraded, RackHeld
from rackwright.wire.ids import JobId, NodeId, Owner, QueueName, RackId
from rackwright.wire.jobs import Group, JobClass, JobSpec, TopologyNeed
from rackwright.wire.nodes import Fitness, RackFitness
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import cell, hardware, names, rack_spec, where
from tests.unit.core.policy.placing import put, racks

# Slices


def test_128_nodes_are_exactly_8_racks() -> None:
    assert where(put(cell(10), nodes=128)) == [(f"r{number}", 16) for number in range(8)]


@pytest.mark.parametrize("size", [8, 9, 16, 17, 18])
def test_slice_sizes_of_the_cell_and_of_a_queue(size: int) -> None:
    per_rack = 18 // size
    for policy in (
        Policy(slice_nodes=size, spares_small=0, spares_large=0),
        Policy(queue_slice_nodes={QueueName("default"): size}, spares_small=0, spares_large=0),
    ):
        found = put(cell(2, policy=policy), nodes=2 * per_rack * size, slice_nodes=size)
        assert where(found) == [("r0", size)] * per_rack + [("r1", size)] * per_rack


def test_sixteen_of_eighteen_start_with_what_is_healthy() -> None:
    made = cell(1)
    made.fail("r0-n00")
    made.fail("r0-n05")
    found = put(made, nodes=16)
    assert found is not None
    assert "r0-n00" not in names(made.fleet, found[0])
    made.fail("r0-n06")
    assert put(made, "k", nodes=16) is None


def test_ranks_follow_racks_and_positions() -> None:
    made = cell(4)
    made.sit("x", "r1", range(18))
    found = put(made, nodes=40)
    assert found is not None
    assert [(part.index, part.first_rank, part.rack) for part in found] == [
        (0, 0, "r0"),
        (1, 16, "r2"),
        (2, 32, "r3"),
    ]
    assert names(made.fleet, found[0])[:2] == ["r0-n00", "r0-n01"]


# The seven criteria of a protected slice


def test_1_a_slice_shares_the_rack_of_another_of_its_job_if_the_spares_fit() -> None:
    policy = Policy(slice_nodes=8)
    assert where(put(cell(4, policy=policy), nodes=16, slice_nodes=8)) == [("r0", 8)] * 2
    wide = Policy(slice_nodes=8, spares_large=3)
    assert where(put(cell(4, policy=wide), nodes=16, slice_nodes=8)) == [("r0", 8), ("r1", 8)]
    spread = put(cell(4, policy=policy), nodes=16, slice_nodes=8, max_per_rack=1)
    assert where(spread) == [("r0", 8), ("r1", 8)]


def test_1_also_where_another_rack_would_have_less_over() -> None:
    made = cell(2, policy=Policy(slice_nodes=4))
    made.sit("x", "r0", range(6), restartable=False)
    made.sit("y", "r1", range(15), restartable=False)
    parts = [("r0", 4), ("r0", 4), ("r0", 2)]
    assert where(put(made, nodes=10, slice_nodes=4)) == parts


def test_2_racks_that_keep_their_spares() -> None:
    made = cell(3)
    made.fail("r0-n00")
    assert racks(put(made, nodes=16)) == ["r1"]


def test_3_whole_racks_stay_whole() -> None:
    made = cell(3)
    made.sit("x", "r2", range(3))
    assert racks(put(made, nodes=4)) == ["r2"]
    full = cell(3)
    full.sit("x", "r2", range(14), restartable=False)
    assert racks(put(full, nodes=4)) == ["r2"], "though a spare is missing there"


def test_3_a_rack_that_cannot_take_a_full_slice_is_no_whole_rack() -> None:
    made = cell(3)
    for place_ in range(4):
        made.fail(f"r1-n{place_:02d}")
    made.sit("x", "r0", range(3))
    assert racks(put(made, nodes=4)) == ["r1"], "which leaves less over than one that is broken"


def test_4_racks_without_a_bad_history() -> None:
    made = cell(2)
    for fitness in (RackFitness.DEGRADED, RackFitness.GOOD):
        made.add(RackDegraded(rack=RackId("r0"), fitness=fitness, reason=Reason(code="x")))
    assert racks(put(made, nodes=16)) == ["r1"]


def test_4_but_a_missing_spare_weighs_more() -> None:
    made = cell(2)
    for fitness in (RackFitness.DEGRADED, RackFitness.GOOD):
        made.add(RackDegraded(rack=RackId("r0"), fitness=fitness, reason=Reason(code="x")))
    made.fail("r1-n00")
    assert racks(put(made, nodes=16)) == ["r0"]


def test_5_what_leaves_least_over() -> None:
    made = cell(3)
    made.sit("x", "r0", range(4), restartable=False)
    made.sit("y", "r1", range(8), restartable=False)
    assert racks(put(made, nodes=8)) == ["r1"]


def test_6_near_the_other_slices() -> None:
    made = cell(6, blocks=2)
    made.sit("x", "r0", range(18))
    made.sit("y", "r3", range(18))
    assert racks(put(made, nodes=48)) == ["r1", "r4", "r5"]


def test_7_the_first_rack_of_equals() -> None:
    made = cell(12)
    assert racks(put(made, nodes=16)) == ["r0"]
    made.sit("x", "r0", range(16))
    assert racks(put(made, "k", nodes=16)) == ["r1"]


# Subtrees


def test_the_lowest_level_that_holds_all_slices() -> None:
    made = cell(8, blocks=4)
    made.sit("x", "r0", range(18))
    assert racks(put(made, nodes=64)) == ["r4", "r5", "r6", "r7"]
    assert racks(put(made, "k", nodes=80)) == ["r1", "r4", "r5", "r6", "r7"]


def test_among_equals_the_domain_with_the_fewest_whole_racks_left() -> None:
    made = cell(8, blocks=4)
    made.sit("x", "r4", range(18))
    made.sit("y", "r5", range(18))
    assert racks(put(made, nodes=32)) == ["r6", "r7"]


def test_rack1_is_not_in_the_domain_of_rack10() -> None:
    made = cell(0)
    for number, path in enumerate((("b1",), ("b10",), ("b1",), ("b10",))):
        made.define(rack_spec(f"r{number}", path=path))
    made.sit("x", "r0", range(18))
    assert racks(put(made, nodes=32)) == ["r1", "r3"]


def test_deeper_trees_climb_one_level_at_a_time() -> None:
    made = cell(0)
    for number in range(8):
        path = (f"s{number // 4}", f"b{number // 2}")
        made.define(rack_spec(f"r{number}", path=path))
    made.sit("x", "r0", range(18))
    assert racks(put(made, nodes=32)) == ["r2", "r3"]
    made.sit("y", "r2", range(18))
    assert racks(put(made, "k", nodes=48)) == ["r4", "r5", "r6"]


# Constraints


def test_a_node_without_its_network_port_serves_one_rack() -> None:
    made = cell(2)
    for place_ in range(3):
        made.unfit(f"r0-n{place_:02d}", Fitness.RACK)
    assert put(made, nodes=32) is None
    one = put(made, "k", nodes=16)
    assert one is not None
    assert names(made.fleet, one[0])[:3] == ["r0-n00", "r0-n01", "r0-n02"]


def test_a_kind_of_gpu_is_asked_for_by_a_label() -> None:
    made = cell(0)
    made.define(rack_spec("r0", 4), rack_spec("r1", 4), join=False)
    for rack, model in (("r0", "GB200"), ("r1", "GB300")):
        for place_ in range(4):
            node = f"{rack}-n{place_:02d}"
            made.join(node, hardware(node, model=model, driver="580"))
    assert racks(put(made, nodes=2, labels={"gpu_model": "GB300"})) == ["r1"]
    assert put(made, "k", nodes=2, labels={"gpu_model": "GB300", "driver": "570"}) is None


def test_labels_and_exclusions() -> None:
    made = cell(0)
    made.define(rack_spec("r0", 4), rack_spec("r1", 4), join=False)
    for rack in ("r0", "r1"):
        for place_ in range(4):
            node = f"{rack}-n{place_:02d}"
            made.join(node, hardware(node, labels={"zone": rack}))
    assert racks(put(made, nodes=2, labels={"zone": "r1"})) == ["r1"]
    assert put(made, "k", nodes=1, labels={"zone": "x"}) is None
    found = put(made, "l", nodes=3, exclude_nodes=(NodeId("r0-n00"), NodeId("r0-n01")))
    assert racks(found) == ["r1"]


def test_one_driver_in_a_gang_in_a_rack_and_across() -> None:
    made = cell(0)
    made.define(rack_spec("r0", 4), rack_spec("r1", 4), rack_spec("r2", 4), join=False)
    for rack in range(3):
        for place_ in range(4):
            node = f"r{rack}-n{place_:02d}"
            driver = "580" if rack == 1 or (rack == 0 and place_ == 0) else "570"
            made.join(node, hardware(node, driver=driver))
    assert where(put(made, nodes=4, slice_nodes=4)) == [("r1", 4)]
    assert put(made, "k", nodes=8, slice_nodes=4) is None
    assert put(made, "l", nodes=8, slice_nodes=4, same=("gpu_model",)) is not None


def test_maintenance_before_the_limit() -> None:
    made = cell(2)
    begin = made.fleet.time + 3600.0
    made.add(
        MaintenanceScheduled(
            racks=(RackId("r0"),), begin=begin, end=begin + 60.0, notice_s=600.0, by=Owner("op")
        )
    )
    assert racks(put(made, nodes=16, restartable=False)) == ["r1"]
    short = put(made, "k", nodes=16, restartable=False, time_limit_s=3000.0)
    assert racks(short) == ["r0"]
    assert racks(put(made, "l", nodes=16)) == ["r0"]
    made.wait(3100.0)
    assert racks(put(made, "m", nodes=16)) == ["r1"]


def test_held_racks_are_left_alone() -> None:
    made = cell(2)
    until = made.fleet.time + 60.0
    made.add(RackHeld(rack=RackId("r0"), owner=Owner("op"), until=until))
    assert racks(put(made, nodes=16)) == ["r1"]
    made.wait(61.0)
    assert racks(put(made, "k", nodes=16)) == ["r0"]


def test_small_slices_leave_the_spares_of_others() -> None:
    made = cell(1)
    made.sit("x", "r0", range(14))
    assert put(made, nodes=4, preemptible=False) is None
    assert where(put(made, "k", nodes=2, preemptible=False)) == [("r0", 2)]


def test_quota() -> None:
    made = cell(2, policy=Policy(queue_gpus={QueueName("default"): 72}))
    made.sit("x", "r0", range(16))
    assert put(made, nodes=4) is None
    assert put(made, "k", nodes=2) is not None
    assert put(made, "l", nodes=16, queue=QueueName("other")) is not None


# Groups, preferred and any


def test_groups_start_together_or_not_at_all() -> None:
    lead, work = Group(name=JobId("lead"), nodes=1), Group(name=JobId("work"), nodes=16, replicas=2)
    assert where(put(cell(2), groups=(lead, work))) == [("r0", 1), ("r0", 16), ("r1", 16)]
    assert put(cell(1), groups=(lead, work)) is None


def test_a_service_starts_with_as_many_replicas_as_fit() -> None:
    group = Group(name=JobId("g"), nodes=16, replicas=4, min_replicas=2)
    found = put(cell(3), groups=(group,), job_class=JobClass.SERVICE)
    assert racks(found) == ["r0", "r1", "r2"]
    assert put(cell(1), groups=(group,), job_class=JobClass.SERVICE) is None


def test_replicas_are_spread() -> None:
    group = Group(name=JobId("g"), nodes=1, replicas=4)
    assert racks(put(cell(4), groups=(group,))) == ["r0"] * 4
    assert racks(put(cell(4), groups=(group,), max_per_rack=2)) == ["r0", "r0", "r1", "r1"]


def test_preferred_is_required_while_it_fits_then_the_fewest_racks() -> None:
    made = cell(3)
    assert where(put(made, nodes=16, topology=TopologyNeed.PREFERRED)) == [("r0", 16)]
    for rack in range(3):
        made.sit(f"x{rack}", f"r{rack}", range(4 + 2 * rack), restartable=False)
    made.unfit("r0-n17")
    made.queue("p", JobSpec(name=JobId("p"), nodes=24, topology=TopologyNeed.PREFERRED))
    found = place(made.fleet, made.job("p"))
    assert where(found) == [("r0", 13), ("r1", 11)]
    assert found is not None
    assert why_placed(made.fleet, made.job("p"), found).code == "placed.scattered"


@pytest.mark.parametrize("topology", [TopologyNeed.PREFERRED, TopologyNeed.ANY])
def test_several_parts_may_be_in_one_rack(topology: TopologyNeed) -> None:
    made = cell(2)
    made.sit("x", "r0", range(3), restartable=False, topology=TopologyNeed.ANY)
    made.sit("y", "r1", range(16), restartable=False, topology=TopologyNeed.ANY)
    spec: dict[str, Any] = {"slice_nodes": 8, "topology": topology}
    assert where(put(made, nodes=16, **spec)) == [("r0", 8), ("r0", 7), ("r1", 1)]
    assert put(made, "k", nodes=16, max_per_rack=1, **spec) is None


def test_any_takes_broken_racks_first() -> None:
    made = cell(3)
    made.sit("x", "r1", range(10), restartable=False)
    made.sit("y", "r2", range(12), restartable=False)
    assert where(put(made, nodes=14, topology=TopologyNeed.ANY)) == [("r1", 8), ("r2", 6)]
    assert where(put(made, "k", nodes=16, topology=TopologyNeed.ANY)) == [("r0", 16)]


# Ties and checks


def test_equal_cells_equal_placements() -> None:
    found = [put(cell(9, blocks=3), nodes=36, slice_nodes=9) for _ in range(2)]
    assert found[0] == found[1]


def test_the_check_sees_what_is_wrong() -> None:
    made = cell(2)
    job = made.queue("j", JobSpec(name=JobId("j"), nodes=32))
    found = place(made.fleet, job)
    assert found is not None
    first, second = found
    part = type(first)
    halves = [
        part(index=0, first_rank=0, rack=first.rack, nodes=(1 << 17) - 1),
        part(index=1, first_rank=17, rack=second.rack, nodes=(1 << 15) - 1),
    ]
    assert any("cut into [17, 15]" in one for one in check_placement(made.fleet, job, halves))
    twice = (first, part(index=1, first_rank=16, rack=first.rack, nodes=first.nodes))
    assert any("given twice" in one for one in check_placement(made.fleet, job, twice))
    made.fail("r0-n00")
    assert any("not in service" in one for one in check_placement(made.fleet, job, found))
