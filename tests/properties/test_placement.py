"""Random cells and jobs: what is placed is legal and whole, and always the same."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rackwright.core.legality import illegal
from rackwright.core.policy.causes import why_blocked
from rackwright.core.policy.checkplacement import check_placement
from rackwright.core.policy.placement import place, why_placed
from rackwright.wire.entries.cell import PolicySet
from rackwright.wire.entries.job import JobPlaced
from rackwright.wire.entries.node import MaintenanceScheduled, RackHeld
from rackwright.wire.ids import JobId, NodeId, Owner, QueueName, RackId
from rackwright.wire.jobs import (
    Checkpoint,
    CheckpointPlace,
    Group,
    JobClass,
    JobSpec,
    TopologyNeed,
    Uneven,
)
from rackwright.wire.nodes import Fitness
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Cause
from tests.support.fleets import Cell, cell, hardware, node_name, rack_spec

NODES = 6

policies = st.builds(
    Policy,
    slice_nodes=st.integers(2, NODES),
    spares_small=st.integers(0, 2),
    spares_large=st.integers(0, 3),
    lend_spares=st.booleans(),
    lent_max_nodes=st.integers(0, 2),
    queue_slice_nodes=st.dictionaries(st.just(QueueName("q")), st.integers(1, NODES), max_size=1),
    queue_gpus=st.dictionaries(st.just(QueueName("q")), st.integers(0, 40), max_size=1),
)

sizes = st.one_of(
    st.builds(lambda nodes: {"nodes": nodes}, st.integers(1, 14)),
    st.builds(lambda gpus: {"gpus": gpus}, st.sampled_from((0, 1, 2, 3, 4, 8, 12))),
    st.builds(
        lambda sizes: {
            "groups": tuple(
                Group(name=JobId(f"g{turn}"), nodes=nodes, replicas=replicas)
                for turn, (nodes, replicas) in enumerate(sizes)
            )
        },
        st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=2),
    ),
)

specs = st.builds(
    lambda size, **more: JobSpec(name=JobId("j"), **(size | more)),
    sizes,
    cpus=st.none() | st.sampled_from((8.0, 30.0, 100.0)),
    memory_gb=st.none() | st.sampled_from((60.0, 200.0)),
    slice_nodes=st.none() | st.integers(1, NODES),
    uneven=st.sampled_from(Uneven),
    max_per_rack=st.none() | st.integers(1, 2),
    topology=st.sampled_from(TopologyNeed),
    queue=st.sampled_from((QueueName("default"), QueueName("q"))),
    labels=st.sampled_from(({}, {"zone": "a"})),
    same=st.sampled_from((("gpu_model", "driver"), (), ("zone",))),
    exclude_nodes=st.lists(
        st.sampled_from([node_name(f"r{rack}", place) for rack in range(2) for place in range(3)]),
        max_size=2,
        unique=True,
    ).map(tuple),
    job_class=st.sampled_from(JobClass),
    preemptible=st.booleans(),
    restartable=st.booleans(),
    priority=st.sampled_from((10, 50, 90)),
    checkpoint=st.sampled_from((Checkpoint(), Checkpoint(where=CheckpointPlace.LOCAL))),
)

troubles = st.tuples(
    st.sampled_from(("unfit", "solo", "rack", "fail", "back", "cordon", "hold", "maintain")),
    st.integers(0, 4),
    st.integers(0, NODES - 1),
)


def build(policy: Policy, racks: int, kinds: list[int], draw: Any) -> Cell:
    """Racks in two blocks; `kinds` says which nodes have another driver, a label, or are small."""
    made = cell(0, policy=policy, sound=False)
    for number in range(racks):
        spec = rack_spec(f"r{number}", NODES, path=(f"b{number % 2}",))
        made.define(spec, join=False)
        for turn, name in enumerate(spec.nodes):
            kind = kinds[(number * NODES + turn) % len(kinds)]
            labels = {"zone": "a"} if kind != 1 else {}
            driver = "580" if kind == 2 else "570"
            cores, memory = (144, 960.0) if kind != 3 else (64, 256.0)
            more: dict[str, Any] = {"cores": cores, "memory_gb": memory}
            made.join(name, hardware(name, driver=driver, labels=labels, **more))
    for what, rack, at in draw:
        disturb(made, what, rack % racks, at)
    made.sound = True
    return made


def disturb(made: Cell, what: str, rack: int, at: int) -> None:
    """One of the things that happen to nodes and racks."""
    node = node_name(f"r{rack}", at)
    known = made.fleet.node(node)
    fit = known.session is not None and known.fitness is Fitness.FULL
    match what:
        case "unfit" | "solo" | "rack" if fit:
            kinds = {"unfit": Fitness.NONE, "solo": Fitness.SOLO, "rack": Fitness.RACK}
            made.unfit(node, kinds[what])
        case "fail" if fit:
            made.fail(node)
        case "back" if known.session is not None:
            made.recover(node, probation_s=600.0)
        case "hold":
            until = made.fleet.time + 600.0
            made.add(RackHeld(rack=RackId(f"r{rack}"), owner=Owner("op"), until=until))
        case "maintain":
            begin = made.fleet.time + 7_200.0
            made.add(
                MaintenanceScheduled(
                    nodes=(NodeId(node),), begin=begin, end=begin + 60.0, by=Owner("op")
                )
            )
        case _:
            return


@settings(max_examples=120)
@given(
    policy=st.builds(
        lambda policy, racks: replace(policy, spare_racks=racks), policies, st.integers(0, 2)
    ),
    racks=st.integers(1, 5),
    kinds=st.lists(st.sampled_from((0, 0, 0, 0, 1, 2, 3)), min_size=1, max_size=30),
    jobs=st.lists(specs, min_size=1, max_size=12),
    bad=st.lists(troubles, max_size=6),
)
def test_placements_are_legal_whole_and_repeatable(
    policy: Policy, racks: int, kinds: list[int], jobs: list[JobSpec], bad: Any
) -> None:
    made = build(policy, racks, kinds, bad)
    for turn, spec in enumerate(jobs):
        job = made.queue(f"j{turn}", spec)
        slices = place(made.fleet, job)
        assert place(made.fleet, job) == slices
        if slices is None:
            reason = why_blocked(made.fleet, job, made.fleet.time)
            assert reason.code in set(Cause), reason
            continue
        assert check_placement(made.fleet, job, slices) == []
        entry = JobPlaced(
            job=job.id,
            membership=job.membership + 1,
            slices=slices,
            reason=why_placed(made.fleet, job, slices),
        )
        assert illegal(made.fleet, entry) is None
        made.add(entry)


@given(spec=specs, jobs=st.lists(specs, max_size=6), policy=policies)
def test_more_room_never_hurts(spec: JobSpec, jobs: list[JobSpec], policy: Policy) -> None:
    """What fits beside others fits without them; work without GPUs needs others."""
    assume(spec.gpus != 0)
    made = build(policy, 4, [0], ())
    for turn, other in enumerate(jobs):
        job = made.queue(f"o{turn}", other)
        slices = place(made.fleet, job)
        if slices is not None:
            made.place(job.id, slices)
    if place(made.fleet, made.queue("j", spec)) is None:
        return
    alone = build(policy, 4, [0], ())
    assert place(alone.fleet, alone.queue("j", spec)) is not None


STORY = """
from rackwright.core.policy.placement import place
from rackwright.wire.jobs import JobSpec
from tests.support.fleets import cell, where
made = cell(6, 8, blocks=2, sound=False)
for turn in range(40):
    size = {"nodes": turn % 9 + 1} if turn % 3 else {"gpus": turn % 4 + 1}
    job = made.queue(f"j{turn}", JobSpec(name="j", slice_nodes=turn % 5 + 1, **size))
    found = place(made.fleet, job)
    print(found)
    if found is not None:
        made.place(job.id, found)
"""


def test_the_order_of_sets_decides_nothing() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", STORY],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(told) == 1


def test_a_policy_change_changes_placements() -> None:
    made = cell(2)
    made.add(PolicySet(policy=Policy(slice_nodes=9), by=Owner("op")))
    job = made.queue("j", JobSpec(name=JobId("j"), nodes=36, slice_nodes=9))
    placed = place(made.fleet, job)
    assert placed is not None
    assert [part.nodes.bit_count() for part in placed] == [9, 9, 9, 9]
