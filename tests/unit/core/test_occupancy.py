"""Every GPU is in one state, every node has one word, and what could start is counted right."""

from collections import Counter
from collections.abc import Iterable

import pytest

from rackwright.core.occupancy import (
    GpuState,
    NodeUse,
    block_fragmentation,
    gpu_states,
    node_use,
    occupancy,
    slurm_fragmentation,
    startable,
)
from rackwright.wire.entries.node import (
    MaintenanceScheduled,
    NodeCordoned,
    RackDegraded,
    RackHeld,
    RackIsolated,
)
from rackwright.wire.ids import NodeId, Owner, RackId
from rackwright.wire.nodes import RackFitness
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell, node_name, rack_spec


def states(made: Cell) -> Counter[GpuState]:
    found = gpu_states(made.fleet, made.fleet.time)
    assert sum(found.values()) == made.fleet.installed_gpus
    return found


def uses(made: Cell, rack: str) -> str:
    """First letters of the words of a rack's nodes."""
    found = made.rack(rack)
    return "".join(node_use(found, at, made.fleet.time).value[0] for at in range(len(found.nodes)))


def test_an_empty_cell_is_whole() -> None:
    made = cell(2)
    assert states(made) == {GpuState.WHOLE_FREE: 144}
    assert occupancy(states(made)) == 0.0


def test_a_slice_its_spares_and_the_rest() -> None:
    made = cell(2)
    made.sit("big", "r0", range(12))
    assert states(made) == {
        GpuState.USEFUL: 48,
        GpuState.SPARE: 8,
        GpuState.FRAGMENT: 16,
        GpuState.WHOLE_FREE: 72,
    }
    assert occupancy(states(made)) == pytest.approx(48 / 144)
    assert uses(made, "r0") == "u" * 12 + "ffff" + "ss"


def test_idle_nodes_of_a_spare_rack_of_the_cell_are_spares_and_of_no_other() -> None:
    made = cell(3, policy=Policy(spare_racks=1))
    assert states(made) == {GpuState.WHOLE_FREE: 144, GpuState.SPARE: 72}
    made.sit("small", "r2", range(4), lent=True)
    assert states(made) == {GpuState.WHOLE_FREE: 144, GpuState.LENT_USEFUL: 16, GpuState.SPARE: 56}
    made.sit("other", "r2", [5])
    assert states(made) == {
        GpuState.WHOLE_FREE: 72,
        GpuState.SPARE: 72,
        GpuState.USEFUL: 4,
        GpuState.LENT_USEFUL: 16,
        GpuState.FRAGMENT: 52,
    }, "another one is"


def test_part_of_a_node_and_lent_work() -> None:
    made = cell(1)
    made.sit("big", "r0", range(16))
    made.sit("small", "r0", [16], lent=True)
    made.sit("one", "r0", [17], gpus=0b1)
    assert states(made) == {
        GpuState.USEFUL: 65,
        GpuState.LENT_USEFUL: 4,
        GpuState.FRAGMENT: 3,
    }
    assert [node_use(made.rack("r0"), at, 0.0) for at in (16, 17)] == [NodeUse.LENT, NodeUse.PART]


def test_a_job_that_starts_and_one_that_is_wounded() -> None:
    made = cell(1)
    made.sit("coming", "r0", range(4), start=False)
    made.sit("hurt", "r0", range(4, 8))
    made.fail(node_name("r0", 5))
    assert states(made) == {
        GpuState.RESTARTING: 16,
        GpuState.STALLED: 12,
        GpuState.DOWN_NODE: 4,
        GpuState.SPARE: 8,
        GpuState.FRAGMENT: 32,
    }


def test_nodes_in_trouble_have_a_word_each() -> None:
    made = cell(1)
    made.define(rack_spec("away", 2), join=False)
    made.unfit(node_name("r0", 1))
    made.fail(node_name("r0", 2))
    made.join(node_name("r0", 2))
    made.recover(node_name("r0", 2), probation_s=600.0)
    made.fail(node_name("r0", 3))
    for place, drained in ((4, False), (5, True)):
        node = NodeId(node_name("r0", place))
        made.add(NodeCordoned(node=node, drain=drained, by=Owner("ann")))
    found = made.rack("r0")
    assert [node_use(found, place, made.fleet.time) for place in range(1, 6)] == [
        NodeUse.UNFIT,
        NodeUse.PROBATION,
        NodeUse.FAILED,
        NodeUse.CORDONED,
        NodeUse.DRAINING,
    ]
    assert node_use(made.rack("away"), 0, 0.0) is NodeUse.ABSENT
    assert states(made)[GpuState.DOWN_NODE] == 16
    assert states(made)[GpuState.PROBATION] == 4
    assert states(made)[GpuState.DRAINING] == 8


def test_racks_that_are_held_degraded_silent_or_in_maintenance() -> None:
    made = cell(4)
    reason = Reason(code="silence")
    now = made.fleet.time
    made.add(RackHeld(rack=RackId("r0"), owner=Owner("ann"), until=now + 60.0))
    made.add(RackDegraded(rack=RackId("r1"), fitness=RackFitness.DEGRADED, reason=reason))
    made.add(RackIsolated(rack=RackId("r2"), reason=reason))
    made.add(
        MaintenanceScheduled(racks=(RackId("r3"),), begin=now - 1, end=now + 60, by=Owner("ann"))
    )
    assert states(made) == {
        GpuState.HELD: 72,
        GpuState.DOWN_RACK: 144,
        GpuState.MAINTENANCE: 72,
    }
    assert gpu_states(made.fleet, now + 61.0)[GpuState.MAINTENANCE] == 0


def test_what_could_start() -> None:
    made = cell(3)
    made.sit("a", "r0", range(4))
    made.sit("b", "r1", range(4), job_class="interactive", preemptible=False)
    found = startable(made.fleet)
    assert found.slices == {1: 46, 2: 23, 4: 10, 8: 4, 16: 1, 17: 1, 18: 1}
    assert (found.whole, found.broken, found.pinned) == (1, 2, 1)
    assert found.room == made.fleet.index.room
    assert found.fragmentation == pytest.approx(1 - 16 / found.room)


def test_nothing_starts_in_spare_racks_of_the_cell() -> None:
    made = cell(3, policy=Policy(spare_racks=1))
    made.sit("a", "r0", range(4))
    found, without = startable(made.fleet), cell(2)
    without.sit("a", "r0", range(4))
    same = startable(without.fleet)
    assert found == same
    assert (found.whole, found.slices[16]) == (1, 1)


def test_a_cell_without_racks_has_no_fragmentation() -> None:
    assert startable(Cell().fleet).fragmentation == 0.0


@pytest.mark.parametrize(
    ("unavailable", "value"),
    [(range(32), 160), ((), 0), ((0,), 61), ((0, 1, 2), 63), ((0, 1, 2, 31), 92)],
)
def test_slurms_block_metric_has_the_values_of_its_own_test(
    unavailable: Iterable[int], value: int
) -> None:
    """Eight base blocks of four nodes: testsuite/python/check/topology/test_topology.c,
    test_fragmentation, at commit 284c3b95."""
    out = set(unavailable)
    blocks = [[4 * block + node not in out for node in range(4)] for block in range(8)]
    assert block_fragmentation(blocks) == value


def test_slurms_block_metric_of_a_cell() -> None:
    made = cell(3, nodes=4)
    assert slurm_fragmentation(made.fleet) == 0
    made.sit("a", "r2", [0])
    assert slurm_fragmentation(made.fleet) == 1 + 4, "no second pair: three racks"
    made.unfit("r0-n03")
    assert slurm_fragmentation(made.fleet) == 2 + 4 + 4 + 8
