"""Bugs that peers shipped in their hot swaps, lessons 13 to 19, each as a story of this cell."""

from rackwright.core.fold import apply
from rackwright.core.jobs import JobState
from rackwright.wire.entries.slice import SliceMoved
from rackwright.wire.ids import JobId, WorkerId
from tests.support.fleets import Cell, cell
from tests.support.recovery import cordon, decided, drain, swap


def gang() -> Cell:
    """A slice of 16 in a rack of 18, and a free rack beside it."""
    made = cell(2)
    made.sit("a", "r0", range(16), retry_budget=1)
    return made


def test_13_second_failure_does_not_evict_the_job() -> None:
    made = gang()
    made.unfit("r0-n03")
    made.add(*decided(made))
    made.unfit("r0-n05")
    (entry,) = decided(made)
    assert swap(entry) == [(5, 5, 17)]
    made.add(entry)
    assert made.job("a").state is JobState.RUNNING


def test_14_swap_does_not_return_the_same_bad_node() -> None:
    made = gang()
    made.unfit("r0-n03")
    made.add(*decided(made))
    made.recover("r0-n03")
    made.unfit("r0-n05")
    assert swap(decided(made)[0]) == [(5, 5, 17)]


def test_15_swap_burns_no_try_of_the_budget() -> None:
    made = gang()
    for place, code in ((3, "xid.79"), (5, "xid.48")):
        made.unfit(f"r0-n{place:02d}", code=code)
        made.add(*decided(made))
    assert (made.job("a").retries, made.job("a").swap_count) == (0, 2)


def test_16_silence_alone_is_no_death_and_a_slot_waits_for_its_old_worker() -> None:
    made = gang()
    made.suspect("r0-n03")
    assert made.job("a").wounds == ()
    assert decided(made) == []
    made.clear("r0-n03")
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert apply(made.fleet, entry).jobs[JobId("a")].slices[0].gates_of(3) == ("a/3/1",)


def test_17_returning_node_does_not_enlarge_the_job() -> None:
    made = gang()
    made.fail("r0-n03")
    made.add(*decided(made))
    made.join("r0-n03", running=(WorkerId("a/3/1"),))
    made.recover("r0-n03")
    job = made.job("a")
    assert (job.ranks, job.worker(3), job.slices[0].nodes[3]) == (16, "a/3/2", 16)
    assert not made.rack("r0").tenants_at(3)


def test_18_who_left_is_in_the_membership_that_survivors_are_told() -> None:
    made = gang()
    before = made.job("a")
    made.unfit("r0-n03")
    (entry,) = decided(made)
    after = apply(made.fleet, entry).jobs[JobId("a")]
    assert (before.membership, after.membership, after.started) == (1, 2, 1)
    changed = [rank for rank in range(16) if before.worker(rank) != after.worker(rank)]
    assert changed == [3]


def test_19_drain_counts_at_once_and_a_cordon_does_not() -> None:
    made = gang()
    cordon(made, "r0-n03")
    assert decided(made) == []
    drain(made, "r0-n03")
    assert swap(decided(made)[0]) == [(3, 3, 16)]


def test_19_drain_moves_one_slice_to_another_rack() -> None:
    made = cell(3)
    made.spread("a", [("r0", range(16)), ("r1", range(18))])
    drain(made, "r1-n03")
    (entry,) = decided(made)
    assert isinstance(entry, SliceMoved)
    assert (entry.index, entry.rack) == (1, "r2")
