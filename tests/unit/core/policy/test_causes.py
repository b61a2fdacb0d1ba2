"""Why a job waits: each of the seven causes, in order, with its numbers."""

from typing import Any

from rackwright.core.policy.causes import why_blocked
from rackwright.core.policy.placement import place
from rackwright.wire.entries.node import (
    MaintenanceScheduled,
    RackHeld,
    RepairRequested,
)
from rackwright.wire.ids import JobId, NodeId, Owner, QueueName, RackId
from rackwright.wire.jobs import Checkpoint, JobClass, JobSpec, TopologyNeed
from rackwright.wire.nodes import RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell, hardware, rack_spec


def why(made: Cell, job: str = "j", **spec: Any) -> tuple[str, dict[str, int | float | str]]:
    """Cause and numbers of a job that has no place."""
    known = made.queue(job, JobSpec(**({"name": JobId(job)} | spec)))
    assert place(made.fleet, known) is None
    found = why_blocked(made.fleet, known, made.fleet.time)
    return str(found.code), found.numbers


def test_never() -> None:
    code, numbers = why(cell(2), nodes=48)
    assert (code, numbers["asked_nodes"], numbers["cell_nodes"]) == ("never", 48, 36)
    code, numbers = why(cell(2), nodes=20, slice_nodes=19)
    assert (code, numbers["problem"]) == ("never", "spec.slice_nodes")


def test_never_by_labels() -> None:
    made = cell(0)
    made.define(rack_spec("r0", 4), join=False)
    for turn, name in enumerate(rack_spec("r0", 4).nodes):
        made.join(name, hardware(name, labels={"zone": "a" if turn else "b"}))
    code, numbers = why(made, nodes=2, labels={"zone": "b"})
    assert (code, numbers["labels"]) == ("never", "zone=b")


def test_quota() -> None:
    made = cell(2, policy=Policy(queue_gpus={QueueName("default"): 100}))
    made.sit("x", "r0", range(16))
    assert why(made, nodes=16) == (
        "quota",
        {"limit": "queue_gpus", "queue": "default", "asked": 64, "used": 64, "most": 100},
    )


def test_quota_does_not_count_what_is_lent() -> None:
    made = cell(2, policy=Policy(queue_gpus={QueueName("default"): 64}))
    made.sit("x", "r0", range(16), queue=QueueName("other"))
    made.sit("lent", "r0", [16], lent=True)
    known = made.queue("j", JobSpec(name=JobId("j"), nodes=16))
    assert place(made.fleet, known) is not None


def test_health_names_repairs_and_when_the_next_is_due() -> None:
    made = cell(2)
    for rack in ("r0", "r1"):
        for turn in range(3):
            made.unfit(f"{rack}-n{turn:02d}")
    last = made.fleet.node(NodeId("r1-n02")).last
    eta = made.fleet.time + 600.0
    made.add(
        RepairRequested(
            node=NodeId("r1-n02"),
            of=last,
            action=RepairAction.REPLACE,
            eta=eta,
            reason=Reason(code="x"),
        )
    )
    code, numbers = why(made, nodes=16)
    assert code == "health"
    assert numbers["fits_when_empty"] == 0
    assert numbers["nodes_out"] == 6
    assert numbers["repairs"] == "r1-n02 replace, r0-n00 reboot, r0-n01 reboot"
    assert numbers["next_due_s"] == 600.0


def test_capacity_is_free_beyond_the_spares() -> None:
    made = cell(4)
    for turn in range(4):
        made.sit(f"x{turn}", f"r{turn}", range(16))
    code, numbers = why(made, nodes=16)
    assert code == "capacity"
    assert (numbers["free"], numbers["keep"], numbers["room"]) == (8, 8, 0)


def test_a_full_cell_with_lent_spares_lacks_capacity() -> None:
    made = cell(1)
    made.sit("x", "r0", range(16))
    made.sit("lent", "r0", [16, 17], lent=True)
    code, numbers = why(made, nodes=2)
    assert (code, numbers["free"], numbers["keep"]) == ("capacity", 2, 2)


def test_capacity_in_gpus() -> None:
    made = cell(1, 2)
    made.sit("x", "r0", [0], gpus=0b111, preemptible=False)
    made.sit("y", "r0", [1], preemptible=False)
    code, numbers = why(made, gpus=2)
    assert (code, numbers["free_gpus"], numbers["gpus"]) == ("capacity", 1, 2)


def test_held_by_an_operator() -> None:
    made = cell(2)
    made.sit("x", "r1", range(4))
    until = made.fleet.time + 60.0
    made.add(RackHeld(rack=RackId("r0"), owner=Owner("op"), until=until))
    code, numbers = why(made, nodes=16)
    assert code == "held"
    assert (numbers["racks"], numbers["by"], numbers["for_s"]) == ("r0", "op", 60.0)


def test_held_by_maintenance() -> None:
    made = cell(1)
    begin = made.fleet.time + 60.0
    made.add(
        MaintenanceScheduled(racks=(RackId("r0"),), begin=begin, end=begin + 1, by=Owner("op"))
    )
    code, numbers = why(made, nodes=1, restartable=False)
    assert (code, numbers["maintenance"]) == ("held", 1)


def test_held_for_a_wounded_slice() -> None:
    made = cell(2)
    made.sit("x", "r0", range(16))
    made.fail("r0-n00")
    code, numbers = why(made, nodes=16)
    assert (code, numbers["kept_for_wounded"]) == ("held", 2)


def test_topology_movable() -> None:
    made = cell(2)
    for rack in ("r0", "r1"):
        made.sit(f"x-{rack}", rack, range(4), priority=40)
    code, numbers = why(made, nodes=16)
    assert code == "topology.movable"
    assert (numbers["racks_that_fit"], numbers["fits_when_moved"]) == (0, 1)


def test_topology_pinned_names_the_pins() -> None:
    made = cell(2)
    for rack in ("r0", "r1"):
        made.sit(f"x-{rack}", rack, range(2), job_class=JobClass.INTERACTIVE, preemptible=False)
        made.sit(f"y-{rack}", rack, [2])
    code, numbers = why(made, nodes=16, slice_nodes=16)
    assert code == "topology.movable"
    for rack in ("r0", "r1"):
        made.sit(f"z-{rack}", rack, [3], restartable=False)
    code, numbers = why(made, "k", nodes=16)
    assert code == "topology.pinned"
    assert (numbers["pinned_racks"], numbers["pins"]) == (2, "x-r0, z-r0, x-r1")


def test_higher_priority_and_equals_as_large_are_pins() -> None:
    for priority, wanted in (
        (40, "topology.movable"),
        (50, "topology.pinned"),
        (60, "topology.pinned"),
    ):
        made = cell(2)
        for rack in ("r0", "r1"):
            made.sit(f"x-{rack}", rack, range(10), priority=priority)
        code, _ = why(made, nodes=10, slice_nodes=10, preemptible=False)
        assert code == wanted, priority


def test_part_of_a_node_is_blocked_by_topology_too() -> None:
    made = cell(1, 2)
    for place_ in (0, 1):
        made.sit(f"x{place_}", "r0", [place_], gpus=0b111, priority=40)
    assert why(made, gpus=2)[0] == "topology.movable"
    high = cell(1, 2)
    for place_ in (0, 1):
        high.sit(f"x{place_}", "r0", [place_], gpus=0b111, restartable=False)
    assert why(high, gpus=2)[0] == "topology.pinned"


def test_scattered_work_waits_for_nodes_only() -> None:
    made = cell(2)
    made.sit("x", "r0", range(16), restartable=False)
    made.sit("y", "r1", range(10), restartable=False)
    known = made.queue("j", JobSpec(name=JobId("j"), nodes=10, topology=TopologyNeed.ANY))
    assert place(made.fleet, known) is not None
    assert why(made, "k", nodes=11, topology=TopologyNeed.ANY)[0] == "capacity"


def test_work_whose_checkpoints_are_overdue_is_a_pin() -> None:
    made = cell(2, sound=False)
    for rack in ("r0", "r1"):
        saves = Checkpoint(interval_s=600.0)
        made.sit(f"x-{rack}", rack, range(4), priority=40, checkpoint=saves)
    made.wait(1300.0)
    job = made.queue("j", JobSpec(name=JobId("j"), nodes=16))
    now = made.fleet.time
    assert why_blocked(made.fleet, job, now).code == "topology.pinned"
    told = {JobId("x-r0"): now - 100.0}
    assert why_blocked(made.fleet, job, now, told).code == "topology.movable"
