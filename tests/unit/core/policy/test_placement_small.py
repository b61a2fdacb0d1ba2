"""Where small work goes: partly used nodes, lendable spares, broken racks, then the whole rack that
loses least.
"""

from rackwright.wire.jobs import JobClass
from rackwright.wire.nodes import Fitness
from rackwright.wire.policy import Policy
from tests.support.fleets import cell, names, rack_spec, where
from tests.unit.core.policy.placing import put, racks


def test_s1_the_partly_used_node_with_least_left_over() -> None:
    made = cell(2)
    made.sit("x", "r0", [0], gpus=0b1, preemptible=False)
    made.sit("y", "r1", [3], gpus=0b11, preemptible=False)
    found = put(made, gpus=2)
    assert found is not None
    assert [(part.rack, part.nodes, part.gpus) for part in found] == [("r1", 8, 0b1100)]
    three = put(made, "k", gpus=3)
    assert three is not None
    assert [(part.rack, part.nodes, part.gpus) for part in three] == [("r0", 1, 0b1110)]


def test_s2_lendable_spares_then_nothing_of_them_for_others() -> None:
    made = cell(2)
    made.sit("x", "r1", range(16))
    found = put(made, nodes=1)
    assert found is not None
    assert [(part.rack, part.lent) for part in found] == [("r1", True)]
    for spec in (
        {"preemptible": False},
        {"restartable": False},
        {"job_class": JobClass.INTERACTIVE},
        {"job_class": JobClass.SERVICE},
    ):
        other = put(made, f"k{min(spec)}{len(made.fleet.jobs)}", nodes=1, **spec)
        assert racks(other) == ["r0"]


def test_s2_a_slice_of_a_larger_job_is_never_lent() -> None:
    """Who is on lent spares is killed whole: 18 nodes would be lost for 2 spares."""
    made = cell(3, nodes=18)
    made.sit("x", "r0", range(16))
    found = put(made, nodes=18, slice_nodes=16, max_per_rack=1)
    assert found is not None
    assert [(part.rack, part.lent) for part in found] == [("r1", False), ("r2", False)]


def test_s2_spares_may_be_kept_in_every_rack() -> None:
    for idle in (1, 2, 3):
        made = cell(2, policy=Policy(spares_idle=idle))
        assert racks(put(made, nodes=15)) == ["r0"]
        assert racks(put(made, "k", nodes=2)) == ["r0"]


def test_s2_lending_is_a_knob() -> None:
    made = cell(2, policy=Policy(lend_spares=False))
    made.sit("x", "r1", range(16))
    assert racks(put(made, nodes=1)) == ["r0"]
    small = cell(2, policy=Policy(lent_max_nodes=0))
    small.sit("x", "r1", range(16))
    assert racks(put(small, nodes=1)) == ["r0"]


def test_s2_a_small_protected_slice_is_lent_only_before_it_would_break_a_whole_rack() -> None:
    made = cell(2)
    made.sit("x", "r1", range(16))
    found = put(made, nodes=2)
    assert found is not None
    assert [(part.rack, part.lent) for part in found] == [("r1", True)]
    made.define(rack_spec("r2"))
    made.sit("y", "r2", range(3), restartable=False)
    assert where(put(made, "k", nodes=2)) == [("r2", 2)]


def test_s2_a_lent_slice_wants_no_spares() -> None:
    made = cell(1)
    made.sit("x", "r0", range(16))
    made.sit("lent", "r0", [16, 17], lent=True)
    assert made.rack("r0").shape.target == 2


def test_s2_nobody_joins_a_lent_node_who_may_not_be_lent() -> None:
    made = cell(2)
    made.sit("x", "r1", range(16))
    made.sit("lent", "r1", [16], gpus=0b1, lent=True)
    found = put(made, gpus=1)
    assert found is not None
    assert [(part.rack, part.nodes, part.lent) for part in found] == [("r1", 1 << 16, True)]
    assert racks(put(made, "k", gpus=1, preemptible=False)) == ["r0"]


def test_s3_pinned_work_goes_to_the_pinned_and_movable_work_away_from_it() -> None:
    made = cell(3)
    made.sit("x", "r1", [0, 1], restartable=False)
    made.sit("y", "r2", [0, 1, 2, 3, 4])
    assert racks(put(made, nodes=1, restartable=False)) == ["r1"]
    assert racks(put(made, "k", nodes=1)) == ["r2"]


def test_s4_least_left_over() -> None:
    made = cell(3)
    made.sit("x", "r0", range(3), restartable=False)
    made.sit("y", "r1", range(3), restartable=False)
    made.sit("z", "r1", range(3, 9), preemptible=True)
    assert racks(put(made, nodes=1, restartable=False)) == ["r1"]


def test_s5_the_whole_rack_that_loses_least_is_broken() -> None:
    made = cell(4)
    for node in ("r1-n00", "r2-n00", "r2-n01", "r3-n00", "r3-n01", "r3-n02"):
        made.fail(node)
    broken = [put(made, f"j{turn}", nodes=1) for turn in range(1)]
    assert racks(broken[0]) == ["r3"]
    made.sit("a", "r3", range(3, 18))
    assert racks(put(made, "k", nodes=1, restartable=False)) == ["r2"]
    made.sit("b", "r2", range(2, 18))
    assert racks(put(made, "l", nodes=1, restartable=False)) == ["r1"]


def test_s5_no_whole_rack_is_broken_while_a_broken_one_has_room() -> None:
    made = cell(2)
    made.sit("x", "r1", [0], restartable=False)
    assert racks(put(made, nodes=1, restartable=False)) == ["r1"]
    made.sit("y", "r1", range(1, 18))
    assert racks(put(made, "k", nodes=1, restartable=False)) == ["r0"], "at once when there is none"


def test_probation_and_solo_nodes_take_small_work_only() -> None:
    made = cell(1, 2)
    made.unfit("r0-n00", Fitness.SOLO)
    made.fail("r0-n01")
    made.join("r0-n01")
    made.recover("r0-n01", probation_s=600.0)
    assert put(made, nodes=2) is None
    assert put(made, "a", nodes=1, restartable=False) is None
    one = put(made, "b", nodes=1)
    assert one is not None
    assert names(made.fleet, one[0]) == ["r0-n01"]
    gpu = put(made, "c", gpus=1)
    assert gpu is not None
    assert names(made.fleet, gpu[0]) == ["r0-n00"]
