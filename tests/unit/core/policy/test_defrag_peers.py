"""Situations that peers test their consolidation with, in our terms: their nodes are racks of four
nodes here, their GPUs nodes, their tasks slices.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from rackwright.core.policy.defrag import Outcome, Verdict, judge
from rackwright.wire.jobs import Checkpoint
from rackwright.wire.policy import Policy
from tests.support.fleets import Cell, cell, rack_spec
from tests.unit.core.policy.defrag_cells import HOUR, PINNED, block, pass_time

QUICK = Checkpoint(on_notice_s=60.0, restart_s=60.0)


def racks(*sizes: int) -> Cell:
    """Racks r0, r1, ... of these sizes, without spares."""
    made = cell(0, policy=Policy(spares_large=0, spares_small=0, defrag_max_share=1.0))
    for number, nodes in enumerate(sizes):
        made.define(rack_spec(f"r{number}", nodes))
    return made


def verdict(made: Cell, priority: int = 50, **spec: Any) -> Verdict:
    pass_time(made, HOUR)
    block(made, "pending", priority=priority, **spec)
    return judge(made.fleet, made.job("pending"), {}, made.fleet.time)


def moved(found: Verdict) -> list[tuple[str, int, str]]:
    """Job, slice and new rack of everything that moves."""
    assert found.outcome is Outcome.GO, found.outcome
    assert found.settled is not None
    return [(h.job, one.index, one.rack) for h in found.settled.homes for one in h.homes]


def seats(found: Verdict) -> list[str]:
    assert found.settled is not None
    return [part.rack for part in found.settled.slices]


def test_one_of_two_jobs_moves_and_the_large_one_fits() -> None:
    made = racks(4, 4)
    made.sit("job0", "r0", range(2), checkpoint=QUICK)
    made.sit("job1", "r1", range(1), checkpoint=QUICK)
    made.sit("job2", "r1", range(1, 3), checkpoint=QUICK)
    found = verdict(made, nodes=3)
    assert moved(found) == [("job2", 0, "r0")]
    assert seats(found) == ["r1"]


def test_a_pair_that_cannot_sit_together_keeps_the_third_waiting() -> None:
    made = racks(4, 4)
    made.sit("job0", "r0", range(3), checkpoint=QUICK)
    made.sit("job1", "r1", range(3), checkpoint=QUICK)
    assert verdict(made, nodes=2).outcome is Outcome.NO_WAY
    made = racks(4, 4)
    made.sit("job0", "r0", range(3), checkpoint=QUICK)
    made.sit("job1", "r1", range(3), checkpoint=QUICK)
    assert verdict(made, nodes=2, priority=60).outcome is Outcome.NO_HOMES


def test_nothing_moves_for_a_job_that_fits() -> None:
    made = racks(4, 4)
    made.sit("job0", "r0", range(1), checkpoint=QUICK)
    made.sit("job1", "r1", range(1), checkpoint=QUICK)
    assert verdict(made, nodes=2).outcome is Outcome.FITS


@pytest.mark.parametrize("priority", [50, 60])
def test_nothing_moves_in_a_full_cell(priority: int) -> None:
    made = racks(2, 2)
    made.sit("job0", "r0", [0], checkpoint=QUICK)
    made.sit("job1", "r0", [1], checkpoint=QUICK)
    made.sit("job2", "r1", range(2), checkpoint=QUICK)
    found = verdict(made, nodes=1, priority=priority)
    assert found.outcome in {Outcome.NO_WAY, Outcome.NO_HOMES}


def test_one_slice_of_a_spread_job_joins_the_other() -> None:
    made = racks(4, 3)
    made.spread("wide", [("r0", range(2)), ("r1", range(2))], slice_nodes=2, checkpoint=QUICK)
    found = verdict(made, nodes=3)
    assert moved(found) == [("wide", 1, "r0")]
    assert seats(found) == ["r1"]


def test_a_spread_job_of_which_not_all_can_stay_is_left_alone() -> None:
    made = racks(4, 3)
    parts: list[tuple[str, Iterable[int]]] = [
        ("r0", range(2)),
        ("r0", range(2, 4)),
        ("r1", range(2)),
    ]
    made.spread("wide", parts, slice_nodes=2, checkpoint=QUICK)
    assert verdict(made, nodes=3).outcome is Outcome.NO_HOMES


def test_a_slice_of_one_node_makes_room_for_a_whole_rack() -> None:
    made = racks(4, 4)
    made.spread("wide", [("r0", [0]), ("r1", [0])], slice_nodes=1, checkpoint=QUICK)
    found = verdict(made, nodes=4)
    assert len(moved(found)) == 1


def test_a_gang_of_two_slices_needs_two_racks_and_no_more_than_two_moves() -> None:
    made = racks(4, 4, 4, 4)
    for number in range(8):
        made.sit(f"job{number}", f"r{number % 4}", [number // 4], checkpoint=QUICK)
    found = verdict(made, nodes=6, slice_nodes=3)
    assert len(moved(found)) == 2
    assert len(set(seats(found))) == 2


def test_work_that_may_not_be_moved_is_not() -> None:
    made = racks(2, 2)
    made.sit("job0", "r0", [0], **PINNED)
    made.sit("job1", "r1", [0], **PINNED)
    assert verdict(made, nodes=2).outcome is Outcome.NO_WAY


def test_gpus_of_shared_nodes_are_consolidated_too() -> None:
    """Nodes of four GPUs in one rack: two and three of them are free, three are wanted."""
    made = racks(2)
    made.sit("job0", "r0", [0], gpus=0b0011, checkpoint=QUICK)
    made.sit("job1", "r0", [1], gpus=0b0001, checkpoint=QUICK)
    made.sit("job2", "r0", [1], gpus=0b0110, checkpoint=QUICK)
    found = verdict(made, gpus=3)
    assert moved(found) == [("job2", 0, "r0")]
