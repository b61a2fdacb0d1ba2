"""Work on lent spares and work without GPUs make room like any other, by the same rules."""

from typing import Any

import pytest

from rackwright.core.policy.defrag import Outcome, Verdict, judge
from rackwright.wire.entries.job import SlicePlacement
from rackwright.wire.ids import JobId, QueueName, RackId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.policy import Policy
from tests.support.fleets import Cell, cell, hardware
from tests.unit.core.policy.defrag_cells import HOUR, SAVES, block, fill, pass_time

SERVING = QueueName("serving")


def look(made: Cell) -> Verdict:
    return judge(made.fleet, made.job("p"), {}, made.fleet.time)


def lent(made: Cell, **spec: Any) -> None:
    """One node on a lent spare of r0."""
    made.sit("v", "r0", [2], lent=True, checkpoint=SAVES, **spec)


def without_gpus(made: Cell, **spec: Any) -> None:
    """Work without GPUs, which holds the share of one GPU of a node in r0."""
    fields: dict[str, Any] = {"gpus": 0, "cpus": 4.0, "queue": SERVING, "checkpoint": SAVES, **spec}
    made.queue("v", JobSpec(name=JobId("v"), **fields))
    part = SlicePlacement(
        index=0, first_rank=0, rack=RackId("r0"), nodes=1 << 2, gpus=0b1, lent=True
    )
    made.place("v", (part,))
    made.start("v")


def broken() -> Cell:
    """r0 needs one node more for p; r1 is a broken rack with room for v."""
    made = cell(2, policy=Policy(cpu_only_queues=(SERVING,)))
    for rack in made.fleet.racks.values():
        for node in rack.spec.nodes:
            made.join(node, hardware(node, cores=144, memory_gb=900.0))
    fill(made, "r0", [0, 1])
    fill(made, "r1", range(4))
    return made


@pytest.mark.parametrize("sit", [lent, without_gpus])
def test_it_makes_room_and_has_a_home(sit: Any) -> None:
    made = broken()
    sit(made)
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    found = look(made)
    assert found.outcome is Outcome.GO
    assert found.settled is not None
    assert [(home.job, [part.rack for part in home.homes]) for home in found.settled.homes] == [
        ("v", ["r1"])
    ]


@pytest.mark.parametrize("sit", [lent, without_gpus])
def test_not_when_it_was_disturbed_lately(sit: Any) -> None:
    made = broken()
    sit(made)
    block(made, "p", nodes=16)
    assert look(made).outcome is Outcome.NO_WAY
