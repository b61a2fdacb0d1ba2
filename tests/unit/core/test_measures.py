"""Waits, blocks, recoveries and faults, measured from the ledger."""

from dataclasses import dataclass, field

import pytest

from rackwright.core.fold import Folding
from rackwright.core.measures import Family, Measures
from rackwright.wire.entries.cell import LedgerCreated
from rackwright.wire.entries.job import JobBlocked, JobRequeued
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.message import Entry
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Cause, Reason, Rung, RungTaken
from rackwright.wire.versions import FOLD_VERSION
from tests.support.entries import swapped
from tests.support.fleets import LEDGER, Cell, rack_spec
from tests.support.recovery import crash, decided


@dataclass(slots=True, kw_only=True)
class Measured(Cell):
    """As Cell, and measured."""

    measures: Measures = field(default_factory=Measures)

    def add(self, *entries: Entry, source: str = "test/0", wishes_to: int | None = None) -> Folding:
        before = self.fleet
        folding = Cell.add(self, *entries, source=source, wishes_to=wishes_to)
        self.measures.take(entries, before, self.fleet)
        return folding


@pytest.fixture
def made() -> Measured:
    cell = Measured(sound=False)
    cell.add(LedgerCreated(ledger=LEDGER, fold_version=FOLD_VERSION, policy=Policy()))
    cell.define(rack_spec("r0"), rack_spec("r1"))
    cell.sound = True
    return cell


def sums(family: Family) -> dict[tuple[str, ...], tuple[int, float]]:
    """How many and their sum, by labels."""
    return {labels: (one.number, round(one.total, 3)) for labels, one in family.by.items()}


def test_a_wait_ends_with_the_first_start_and_no_other(made: Measured) -> None:
    made.sit("a", "r0", range(4), start=False)
    made.wait(30.0)
    made.start("a")
    made.unfit("r0-n01")
    made.add(swapped((1, 1, 4)))
    made.wait(10.0)
    made.start("a")
    assert sums(made.measures.queue_wait) == {("5-32", "batch", "default"): (1, 30.0)}


def test_slowdown_of_a_job_that_waited_as_long_as_it_ran(made: Measured) -> None:
    made.sit("a", "r0", [0], start=False)
    made.wait(1200.0)
    made.start("a")
    made.wait(1200.0)
    made.finish("a")
    made.sit("short", "r0", [1])
    made.wait(60.0)
    made.finish("short")
    assert sums(made.measures.slowdown) == {("1-4",): (2, 2.1)}


def test_blocks_by_cause_and_what_they_cost(made: Measured) -> None:
    made.queue("a", JobSpec(name=JobId("a"), nodes=16))
    made.add(JobBlocked(job=JobId("a"), reason=Reason(code=Cause.CAPACITY)))
    made.wait(60.0)
    made.add(JobBlocked(job=JobId("a"), reason=Reason(code=Cause.TOPOLOGY_MOVABLE)))
    made.wait(10.0)
    made.sit("b", "r1", [0])  # of no concern to it
    made.add(JobBlocked(job=JobId("a"), reason=Reason(code=Cause.TOPOLOGY_MOVABLE)))
    assert made.measures.blocked_s == {
        ("capacity", "33-64"): 60.0,
        ("topology.movable", "33-64"): 10.0,
    }
    assert made.measures.blocked_gpu_s["capacity", "33-64"] == 64 * 60.0


def test_recoveries_by_rung(made: Measured) -> None:
    made.sit("a", "r0", range(16), retry_budget=1)
    made.unfit("r0-n01")
    made.wait(5.0)
    made.add(*decided(made))
    made.wait(20.0)
    made.start("a")
    crash(made, "a", 0)
    made.add(*decided(made))
    made.start("a")
    assert sums(made.measures.to_recover) == {("spare",): (1, 25.0), ("restart",): (1, 0.0)}
    assert (made.measures.exhausted, dict(made.measures.faults)) == (0, {"xid.79": 1})


def test_a_rack_without_spares_is_exhausted(made: Measured) -> None:
    made.sit("a", "r0", range(16))
    made.sit("p", "r0", [16, 17], restartable=False)
    made.unfit("r0-n01")
    made.add(*decided(made))
    assert made.measures.exhausted == 1


def test_a_rank_that_did_not_start_in_time(made: Measured) -> None:
    made.sit("a", "r0", range(2), start=False)
    crash(made, "a", 0, code=None, why="start-timeout")
    crash(made, "a", 1, code=1, why="symptom")
    assert made.measures.dead_spares == 1


def test_a_small_slice_breaks_a_whole_rack_and_a_full_one_does_not(made: Measured) -> None:
    made.sit("small", "r0", range(4))
    made.sit("next", "r0", range(4, 6))
    made.sit("full", "r1", range(16))
    assert dict(made.measures.broke_whole) == {"batch": 1}


def test_two_stretches_of_a_ledger_are_one(made: Measured) -> None:
    made.queue("a", JobSpec(name=JobId("a"), nodes=4))
    made.add(JobBlocked(job=JobId("a"), reason=Reason(code=Cause.CAPACITY)))
    made.wait(60.0)
    made.unfit("r0-n00")
    first, made.measures = made.measures, Measures()
    made.unfit("r0-n01")
    first.join(made.measures)
    assert dict(first.faults) == {"xid.79": 2}


def test_a_slice_that_moves_to_another_rack_stalls_its_job_until_it_is_up(made: Measured) -> None:
    made.sit("a", "r0", range(18))
    made.wait(1000.0)
    made.unfit("r0-n01")
    made.wait(36.0)
    (entry,) = decided(made)
    made.add(entry)
    made.wait(36.0)
    made.start("a")
    assert sums(made.measures.to_rack) == {("moved",): (1, 36.0)}
    assert made.measures.stalled_gpu_h == {("free-rack",): pytest.approx(72 * 72 / 3600)}


def test_a_job_that_goes_back_to_the_queue_stalls_until_then(made: Measured) -> None:
    for rack in ("r0", "r1"):
        made.sit(f"on-{rack}", rack, range(18), job_class=JobClass.SERVICE)
    made.finish("on-r1")
    made.sit("a", "r1", range(18))
    made.unfit("r1-n01")
    made.wait(100.0)
    why = Reason(code="no-place")
    taken = RungTaken(rung=Rung.REQUEUE, taken=True, reason=why)
    made.add(JobRequeued(job=JobId("a"), reason=why, rungs=(taken,)))
    made.wait(500.0)
    assert made.measures.stalled_gpu_h == {("requeue",): pytest.approx(72 * 100 / 3600)}
