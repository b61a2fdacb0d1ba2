"""Cores and memory follow the GPUs; work without GPUs is lent the share of some."""

from typing import Any

from rackwright.core.legality import illegal
from rackwright.core.policy.admission import Admitted, admit
from rackwright.core.policy.causes import why_blocked
from rackwright.core.policy.checkplacement import check_placement
from rackwright.core.policy.placement import place
from rackwright.core.policy.resources import held_gpus, share, too_small
from rackwright.core.reasons import sentence
from rackwright.core.snapshot import dump, load
from rackwright.core.topology import Capacity
from rackwright.wire.entries.job import JobPlaced, SlicePlacement
from rackwright.wire.ids import JobId, QueueName, RackId
from rackwright.wire.jobs import Checkpoint, CheckpointPlace, JobClass, JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell, hardware, rack_spec
from tests.unit.core.policy.placing import put, racks

SERVING = QueueName("cpu")
TAKES = Policy(cpu_only_queues=(SERVING,))


def built(sizes: list[tuple[int, float]], *, nodes: int = 18, policy: Policy = TAKES) -> Cell:
    """One rack for each (cores, memory in GB) of its nodes."""
    made = cell(0, policy=policy)
    for turn, (cores, memory) in enumerate(sizes):
        spec = rack_spec(f"r{turn}", nodes)
        made.define(spec, join=False)
        for name in spec.nodes:
            made.join(name, hardware(name, cores=cores, memory_gb=memory))
    return made


def without_gpus(**more: Any) -> dict[str, Any]:
    return {"gpus": 0, "queue": SERVING} | more


def no(found: Admitted | Reason) -> tuple[str, str]:
    assert isinstance(found, Reason)
    return str(found.numbers["field"]), sentence(found)


def test_a_share_of_a_node_is_in_proportion_to_its_gpus() -> None:
    node = Capacity(144, 960.0)
    assert share(node, 1, 4) == (36, 240.0)
    assert share(node, 3, 4) == (108, 720.0)
    assert share(node, 0, 4) == share(node, 4, 4) == node
    assert share(Capacity(10, 7.0), 1, 4) == (2.5, 1.75)


def test_nodes_with_too_little_are_left_alone() -> None:
    made = built([(64, 256.0), (144, 960.0)])
    assert racks(put(made, "a", nodes=16)) == ["r0"]
    assert racks(put(made, "b", nodes=16, cpus=65.0)) == ["r1"]
    assert racks(put(made, "c", nodes=16, memory_gb=256.0)) == ["r0"]
    assert racks(put(made, "d", nodes=16, memory_gb=256.5)) == ["r1"]
    assert put(made, "e", nodes=32, cpus=65.0) is None


def test_a_part_of_a_node_must_have_it_in_its_share() -> None:
    made = built([(64, 256.0), (144, 960.0)])
    assert racks(put(made, "a", gpus=1, cpus=16.0)) == ["r0"]
    assert racks(put(made, "b", gpus=1, cpus=17.0)) == ["r1"]
    assert racks(put(made, "c", gpus=2, cpus=17.0)) == ["r0"]


def test_single_nodes_of_a_rack_may_be_too_small() -> None:
    made = built([(144, 960.0)])
    for name in rack_spec("r0").nodes[:5]:
        made.join(name, hardware(name, cores=144, memory_gb=480.0))
    found = put(made, nodes=13, memory_gb=500.0)
    assert found is not None
    assert [part.nodes for part in found] == [((1 << 18) - 1) & ~0b11111]
    assert put(made, "k", nodes=14, memory_gb=500.0) is None


def test_what_an_agent_did_not_say_is_not_enough() -> None:
    made = built([(0, 0.0), (8, 16.0)])
    assert racks(put(made, nodes=1, cpus=1.0)) == ["r1"]


def test_too_small_is_kept_in_step_and_made_anew_from_a_snapshot() -> None:
    made = built([(64, 256.0)], nodes=2)
    spec = JobSpec(name=JobId("j"), nodes=1, cpus=100.0)
    assert too_small(spec, made.fleet.topology, 0) == {0: 0b11}
    name = rack_spec("r0").nodes[1]
    made.join(name, hardware(name, cores=144, memory_gb=960.0))
    assert too_small(spec, made.fleet.topology, 0) == {0: 0b01}
    again = load(dump(made.fleet))
    assert again.topology == made.fleet.topology


def test_more_than_any_node_has_is_refused_with_what_would_be_right() -> None:
    made = built([(64, 960.0), (144, 256.0)])

    def asked(**spec: Any) -> tuple[str, str]:
        return no(admit(made.fleet, JobSpec(name=JobId("j"), **spec)))

    assert asked(nodes=1, cpus=145.0) == (
        "cpus",
        "cpus 145 is more than the 144 cores of a whole node; ask for 144 or fewer",
    )
    assert asked(gpus=1, memory_gb=241.0) == (
        "memory_gb",
        "memory_gb 241 is more than the 240 GB of 1 of 4 GPUs; ask for 240 or fewer, or more GPUs",
    )
    assert asked(nodes=1, cpus=100.0, memory_gb=500.0)[0] == "memory_gb"
    admitted = admit(made.fleet, JobSpec(name=JobId("j"), nodes=1, cpus=144.0))
    assert isinstance(admitted, Admitted)
    silent = cell(0)
    silent.define(rack_spec("r0"), join=False)
    unknown = admit(silent.fleet, JobSpec(name=JobId("j"), nodes=1, cpus=1000.0))
    assert isinstance(unknown, Admitted), "no node has joined: nobody knows what they have"


def test_why_it_waits_names_the_nodes_that_are_too_small() -> None:
    made = built([(64, 256.0), (144, 960.0)])
    known = made.queue("j", JobSpec(name=JobId("j"), nodes=32, memory_gb=300.0))
    assert place(made.fleet, known) is None
    found = why_blocked(made.fleet, known, made.fleet.time)
    assert found.code == "never"
    assert sentence(found) == (
        "can never fit: 300 GB are asked for on each node, 18 nodes have too little memory, 1 of 2"
        " slices fit the others"
    )
    made.sit("x", "r1", range(3))
    late = made.queue("k", JobSpec(name=JobId("k"), nodes=16, memory_gb=300.0))
    assert place(made.fleet, late) is None
    blocked = why_blocked(made.fleet, late, made.fleet.time)
    assert (blocked.code, blocked.numbers["nodes_too_small"]) == ("capacity", 18)


def test_work_without_gpus_holds_the_share_of_as_few_as_suffice() -> None:
    topology = built([(64, 256.0), (144, 960.0)]).fleet.topology

    def held(**spec: Any) -> int:
        return held_gpus(JobSpec(name=JobId("j"), gpus=0, **spec), topology)

    assert [held(), held(cpus=36.0), held(cpus=37.0)] == [1, 1, 2]
    assert held(cpus=8.0, memory_gb=700.0) == 3
    assert held(cpus=144.0) == 4


def test_work_without_gpus_goes_where_others_are_lent_then_to_spares_then_to_broken_racks() -> None:
    made = built([(144, 960.0)] * 3)
    made.sit("x", "r0", range(16))
    made.sit("y", "r1", range(6), restartable=False)
    first = put(made, "a", **without_gpus(cpus=40.0))
    assert first is not None
    assert [(part.rack, part.nodes, part.gpus, part.lent) for part in first] == [
        ("r0", 1 << 16, 0b11, True)
    ]
    made.place("a", first)
    second = put(made, "b", **without_gpus())
    assert second is not None
    assert [(part.nodes, part.gpus) for part in second] == [(1 << 16, 0b100)]
    made.sit("l", "r0", [17], lent=True)
    made.sit("m", "r0", [16], gpus=0b1100, lent=True)
    third = put(made, "c", **without_gpus(cpus=80.0))
    assert third is not None
    assert [(part.rack, part.gpus, part.lent) for part in third] == [("r1", 0b111, True)]


def test_work_without_gpus_spoils_no_whole_rack_and_no_node_in_use() -> None:
    made = built([(144, 960.0)] * 2)
    made.sit("x", "r0", [0], gpus=0b1)
    known = made.queue("j", JobSpec(name=JobId("j"), **without_gpus(cpus=4.0)))
    assert place(made.fleet, known) is None
    found = why_blocked(made.fleet, known, made.fleet.time)
    assert sentence(found) == (
        "work without GPUs needs the cores and memory of 1 GPU of one node, lent, and in 0 racks"
        " that take no full slice none is free"
    )
    wrong = SlicePlacement(
        index=0, group=0, replica=0, first_rank=0, rack=RackId("r1"), nodes=1, gpus=1, lent=True
    )
    assert check_placement(made.fleet, known, [wrong]) == ["r1: could take a full slice"]


def test_work_without_gpus_is_placed_lent_or_not_at_all() -> None:
    made = built([(144, 960.0)])
    made.sit("x", "r0", range(16))
    made.queue("j", JobSpec(name=JobId("j"), **without_gpus()))

    def entry(**more: Any) -> JobPlaced:
        seat: dict[str, Any] = {"index": 0, "first_rank": 0, "rack": RackId("r0")}
        part = SlicePlacement(**(seat | {"nodes": 1 << 16, "gpus": 1, "lent": True} | more))
        why = Reason(code="placed")
        return JobPlaced(job=JobId("j"), membership=1, slices=(part,), reason=why)

    why = "work without GPUs is lent the share of some GPUs of one node"
    assert illegal(made.fleet, entry()) is None
    assert illegal(made.fleet, entry(lent=False)) == why
    assert illegal(made.fleet, entry(gpus=0)) == why


def test_only_queues_that_say_so_take_work_without_gpus_and_only_what_may_be_killed() -> None:
    made = built([(144, 960.0)])

    def asked(policy: Policy = TAKES, **spec: Any) -> tuple[str, str]:
        made.fleet.policy = policy
        wanted = JobSpec(**({"name": JobId("j")} | without_gpus(**spec)))
        return no(admit(made.fleet, wanted))

    assert asked(queue=QueueName("default")) == (
        "gpus",
        "gpus 0 is work without GPUs, which queue default does not take; ask for queue cpu",
    )
    assert asked(Policy())[1].endswith("ask for 1 GPU or more (cpu_only_queues is empty)")
    off = Policy(cpu_only_queues=(SERVING,), lend_spares=False)
    assert asked(off)[1] == "gpus 0 is lent work, and lend_spares is off; ask for 1 GPU or more"
    local = Checkpoint(where=CheckpointPlace.LOCAL)
    for more in (
        {"restartable": False},
        {"preemptible": False},
        {"job_class": JobClass.INTERACTIVE},
        {"job_class": JobClass.SERVICE},
        {"checkpoint": local},
    ):
        assert asked(**more)[1].startswith("gpus 0 is lent work, which may be killed")
    assert asked(cpus=145.0)[1] == (
        "cpus 145 is more than the 144 cores of 4 of 4 GPUs; ask for 144 or fewer"
    )
    made.fleet.policy = TAKES
    taken = admit(made.fleet, JobSpec(name=JobId("j"), **without_gpus(cpus=4.0)))
    assert isinstance(taken, Admitted)


def test_lent_gpus_of_a_queue_bound_work_without_gpus() -> None:
    made = built([(144, 960.0)])
    made.fleet.policy = Policy(cpu_only_queues=(SERVING,), queue_lent_gpus={SERVING: 2})
    made.sit("x", "r0", range(16))
    made.place("a", put(made, "a", **without_gpus(cpus=72.0)) or ())
    known = made.queue("b", JobSpec(name=JobId("b"), **without_gpus()))
    assert place(made.fleet, known) is None
    found = why_blocked(made.fleet, known, made.fleet.time)
    assert (found.code, found.numbers["limit"]) == ("quota", "queue_lent_gpus")
    wanted = JobSpec(name=JobId("c"), **without_gpus(cpus=100.0))
    assert no(admit(made.fleet, wanted))[1] == (
        "gpus 0 asks for 3 GPUs, queue_lent_gpus allows 2; ask for 2 GPUs or fewer"
    )
