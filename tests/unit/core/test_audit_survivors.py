"""A recovery leaves every rank that it does not name its process; the audit sees one that does not.

The fold is right, so what the audit is to see is put into the fleet after it by hand.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from rackwright.core.audit import Audit
from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.fold import fold
from rackwright.core.jobs import Job
from rackwright.wire.ids import CellName, JobId, MessageId
from rackwright.wire.message import Commit, Entry
from tests.support.entries import moved, restarted, swapped
from tests.support.fleets import EPOCH, LEDGER, Cell, cell


def two_slices() -> Cell:
    """Job a on places 0 to 3 of r0 and of r1, two nodes of the first bad."""
    made = cell(3, nodes=8)
    made.spread("a", [("r0", range(4)), ("r1", range(4))], slice_nodes=4)
    made.unfit("r0-n01")
    made.unfit("r0-n02")
    return made


def audited(
    made: Cell, *entries: Entry, wrong: Callable[[Job], Job] = lambda job: job
) -> list[str]:
    """What the audit says of one commit of these entries; `wrong` changes job a after it."""
    before: Fleet = made.fleet
    commit: Commit[Entry] = Commit(
        id=MessageId("c"),
        type=entries[0].TYPE,
        v=1,
        at=EPOCH,
        source="spare-manager/0",
        cell=CellName("cell"),
        ledger=LEDGER,
        prev=before.last_id,
        entries=entries,
    )
    folding = fold(before, before.seq + 1, EPOCH, commit)
    assert not folding.void, folding.why
    after = folding.fleet
    job = after.jobs[JobId("a")]
    folding = replace(folding, fleet=evolve(after, jobs=after.jobs.set(job.id, wrong(job))))
    audit = Audit(every=1 << 60)
    audit.take(before, commit, folding)
    return [one.what for one in audit.violations]


def anew(index: int, place: int) -> Callable[[Job], Job]:
    """One rank more has a new process."""

    def change(job: Job) -> Job:
        part = job.slices[index]
        incarnations = list(part.incarnations)
        incarnations[place] = job.membership
        slices = list(job.slices)
        slices[index] = evolve(part, incarnations=tuple(incarnations))
        return evolve(job, slices=tuple(slices))

    return change


def without_its_last(job: Job) -> Job:
    return evolve(job, slices=job.slices[:-1])


@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize("index", [0, 1])
def test_a_swap_that_costs_another_rank_its_process(index: int, place: int) -> None:
    entry = swapped((1, 1, 4))
    assert audited(two_slices(), entry) == []
    assert audited(two_slices(), entry, wrong=anew(index, place)) == [
        f"a: rank {4 * index + place} lost its process to somebody else's recovery"
    ]


def test_the_ranks_of_several_swaps_of_one_commit_are_told_apart() -> None:
    entries = swapped((1, 1, 4)), swapped((2, 2, 5), membership=3)
    assert audited(two_slices(), *entries) == []
    assert audited(two_slices(), *entries, wrong=anew(1, 0)) == [
        "a: rank 4 lost its process to somebody else's recovery"
    ]


def test_a_moved_slice_has_new_processes_and_the_other_keeps_its_own() -> None:
    assert audited(two_slices(), moved("r2", 0b1111)) == []
    assert audited(two_slices(), moved("r2", 0b1111), wrong=anew(1, 2)) == [
        "a: rank 6 lost its process to somebody else's recovery"
    ]


def test_a_recovery_that_loses_a_slice() -> None:
    """The slices before and after are not as many; that hid it once."""
    assert audited(two_slices(), swapped((1, 1, 4)), wrong=without_its_last) == [
        f"a: rank {rank} lost its process to somebody else's recovery" for rank in range(4, 8)
    ]


def test_a_restart_in_place_names_its_ranks() -> None:
    made = cell(3, nodes=8)
    made.sit("a", "r0", range(4))
    made.join("r0-n01")
    assert audited(made, restarted(1)) == []
    assert audited(made, restarted(1), wrong=anew(0, 0)) == [
        "a: rank 0 lost its process to somebody else's recovery"
    ]


def test_a_job_that_was_swapped_and_then_made_room_in_one_commit_has_no_ranks_to_compare() -> None:
    """Two wounded jobs of one rack are healed by one commit: the first by a spare, the second by
    the nodes of the first, which goes into the queue with the membership of its swap."""
    made = cell(1, nodes=8)
    made.sit("b", "r0", range(4, 8), priority=90)
    made.sit("a", "r0", range(3), priority=10)
    made.unfit("r0-n01")
    made.unfit("r0-n05")
    heals_a = swapped((1, 1, 3))
    heals_b = swapped((1, 5, 0), job=JobId("b"), evicted=(JobId("a"),))
    assert audited(made, heals_a, heals_b) == []
