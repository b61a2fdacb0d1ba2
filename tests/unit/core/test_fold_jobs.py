"""How the fleet changes by job entries, and which are void: both outcomes of each rule."""

from typing import Any

import pytest

from rackwright.core.fold import apply, fold, refuses
from rackwright.core.jobs import JobState, WoundKind
from rackwright.core.legality import illegal
from rackwright.wire.entries.job import (
    JobBlocked,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobFinishing,
    JobPlaced,
    JobQueued,
    JobRejected,
    JobRequeued,
    JobResumed,
    JobStarted,
    JobSuspended,
    SlicePlacement,
    WorkerFailed,
)
from rackwright.wire.ids import CellName, JobId, LedgerId, MessageId, Owner, RackId, WorkerId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Commit, Entry
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell

J = JobId("j")
WHY = Reason(code="test")


def queued(name: str = "j", *, wish: int | None = None, **spec: Any) -> JobQueued:
    settings: dict[str, Any] = {"name": JobId(name), "nodes": 2, **spec}
    made = JobSpec(**settings)
    return JobQueued(
        job=JobId(name),
        owner=Owner("ann"),
        spec=made,
        spec_hash="h",
        submitted_at=1.0,
        wish=wish,
    )


def placed(*slices: SlicePlacement, membership: int = 1) -> JobPlaced:
    return JobPlaced(job=J, membership=membership, slices=slices, reason=WHY)


def at(rack: str, nodes: int, **more: Any) -> SlicePlacement:
    settings: dict[str, Any] = {
        "index": 0,
        "first_rank": 0,
        "rack": RackId(rack),
        "nodes": nodes,
        **more,
    }
    return SlicePlacement(**settings)


def why_not(made: Cell, entry: Entry) -> str:
    found = illegal(made.fleet, entry)
    assert found is not None
    return found


def test_a_job_is_queued_once_and_its_id_stays_used() -> None:
    made = cell(1, 4)
    assert illegal(made.fleet, queued()) is None
    made.add(queued())
    assert why_not(made, queued()) == "job id j is in use"
    made.add(JobCancelled(job=J, by=Owner("ann"), reason=WHY))
    assert why_not(made, queued()) == "job id j is in use"


def test_a_rejected_id_is_used_up() -> None:
    made = cell(1, 4)
    made.add(JobRejected(job=J, owner=Owner("ann"), spec_hash="h", reason=WHY))
    assert made.fleet.tombstones[J].state is JobState.REJECTED
    assert why_not(made, queued()) == "job id j is in use"


def test_a_cancel_before_the_submit_leaves_a_tombstone() -> None:
    made = cell(1, 4)
    made.add(JobCancelled(job=J, by=Owner("ann"), reason=WHY))
    assert made.fleet.tombstones[J].state is JobState.CANCELLED
    assert why_not(made, queued()) == "job id j is in use"


def test_a_placed_job_has_its_nodes_and_nobody_else_can_take_them() -> None:
    made = cell(1, 4)
    made.add(queued())
    made.add(queued("other"))
    made.add(placed(at("r0", 0b0011)))
    assert made.rack("r0").free == 0b1100
    entry = JobPlaced(job=JobId("other"), membership=1, slices=(at("r0", 0b0110),), reason=WHY)
    assert why_not(made, entry) == "node r0-n01 is taken"


@pytest.mark.parametrize(
    ("slices", "why"),
    [
        ((at("r9", 0b11),), "no rack r9"),
        ((at("r0", 0b110000),), "nodes 0x30 are not of rack r0"),
        ((at("r0", 0b1),), "1 ranks, 2 to 2 are wanted"),
        ((at("r0", 0b111),), "3 ranks, 2 to 2 are wanted"),
        ((at("r0", 0b11, first_rank=1),), "slice 0 at rank 1, expected 0 at 0"),
        ((at("r0", 0b11, gpus=1),), "whole nodes are wanted"),
        (
            (at("r0", 0b1), at("r0", 0b1, index=1, first_rank=1)),
            "node r0-n00 is taken",
        ),
    ],
)
def test_what_a_placement_may_not_be(slices: tuple[SlicePlacement, ...], why: str) -> None:
    made = cell(1, 4)
    made.add(queued())
    assert why_not(made, placed(*slices)) == why


def test_a_placement_must_be_the_next_membership() -> None:
    made = cell(1, 4)
    made.add(queued())
    assert why_not(made, placed(at("r0", 0b11), membership=2)) == "membership 2 of j must be 1"


def test_a_node_that_is_cordoned_suspected_unfit_or_absent_takes_nothing() -> None:
    made = cell(1, 4)
    made.add(queued())
    made.fail("r0-n00")
    assert why_not(made, placed(at("r0", 0b11))) == "node r0-n00 has no session"
    made.unfit("r0-n01")
    assert "is fit for none" in why_not(made, placed(at("r0", 0b110)))
    assert illegal(made.fleet, placed(at("r0", 0b1100))) is None


def test_parts_of_a_node_are_shared_by_gpu() -> None:
    made = cell(1, 1)
    made.sit("a", "r0", (0,), gpus=0b0011)
    made.add(queued("j", nodes=None, gpus=2))
    assert why_not(made, placed(at("r0", 1, gpus=0b0110))) == "node r0-n00 is taken"
    assert why_not(made, placed(at("r0", 1, gpus=0b1000))) == "1 GPUs, 2 are wanted"
    made.add(placed(at("r0", 1, gpus=0b1100)))
    assert made.rack("r0").taken_gpus(0) == 0b1111


def test_a_leaving_worker_gates_the_next_one_on_its_gpus_until_it_has_started() -> None:
    made = cell(1, 4)
    made.sit("a", "r0", (0, 1))
    made.add(JobCancelled(job=JobId("a"), by=Owner("ann"), reason=WHY))
    made.add(queued())
    made.add(placed(at("r0", 0b0110)))
    part = made.job("j").slices[0]
    assert part.gates == ((0, (WorkerId("a/1/1"),)),)
    made.start("j")
    assert made.job("j").slices[0].gates == ()
    assert set(made.fleet.leaving) == {"a/0/1"}


def test_a_requeued_job_gates_on_its_own_earlier_ranks_wherever_they_were() -> None:
    made = cell(2, 4)
    made.sit("j", "r0", (0, 1))
    made.add(JobRequeued(job=J, reason=WHY))
    made.add(placed(at("r1", 0b0011), membership=2))
    assert made.job("j").slices[0].gates == (
        (0, (WorkerId("j/0/1"),)),
        (1, (WorkerId("j/1/1"),)),
    )
    assert made.job("j").worker(0) == "j/0/2"


def test_job_started_wants_the_newest_membership_unwounded_and_once() -> None:
    made = cell(1, 4)
    made.sit("j", "r0", (0, 1), start=False)
    assert why_not(made, JobStarted(job=J, membership=2)) == "j is at membership 1, started 0"
    made.start("j")
    assert made.job("j").state is JobState.RUNNING
    assert why_not(made, JobStarted(job=J, membership=1)) == "j is at membership 1, started 1"


def test_the_end_of_a_job_frees_its_nodes_and_leaves_no_worker_behind() -> None:
    made = cell(1, 4)
    made.sit("j", "r0", (0, 1))
    made.add(JobFinishing(job=J))
    made.add(JobFinished(job=J))
    assert (made.rack("r0").free, dict(made.fleet.leaving)) == (0b1111, {})
    assert made.fleet.tombstones[J].state is JobState.FINISHED


def test_a_failed_job_leaves_its_living_workers_to_be_stopped() -> None:
    made = cell(1, 4)
    made.sit("j", "r0", (0, 1))
    worker = made.job("j").worker(0)
    made.add(WorkerFailed(job=J, rank=0, worker=worker, code=1, reason=Reason(code="exit.1")))
    made.add(JobFailed(job=J, reason=WHY))
    assert set(made.fleet.leaving) == {"j/1/1"}


def test_a_verdict_names_the_current_worker_and_comes_once() -> None:
    made = cell(1, 4)
    made.sit("j", "r0", (0, 1))
    old = WorkerFailed(job=J, rank=0, worker=WorkerId("j/0/7"), code=1, reason=WHY)
    assert why_not(made, old) == "j/0/7 is old, rank 0 is j/0/1"
    verdict = WorkerFailed(job=J, rank=0, worker=WorkerId("j/0/1"), code=1, reason=WHY)
    made.add(verdict)
    assert [wound.kind for wound in made.job("j").wounds] == [WoundKind.PROCESS]
    assert why_not(made, verdict) == "rank 0 has no process already"


def test_a_job_that_is_not_restartable_is_not_requeued() -> None:
    made = cell(1, 4)
    made.sit("j", "r0", (0, 1), restartable=False)
    assert why_not(made, JobRequeued(job=J, reason=WHY)) == "job j is not restartable"


def test_suspended_work_is_off_its_nodes_until_it_is_resumed() -> None:
    made = cell(1, 4)
    made.sit("j", "r0", (0, 1))
    made.add(JobSuspended(job=J, reason=WHY))
    assert made.rack("r0").free == 0b1111
    assert why_not(made, placed(at("r0", 0b11), membership=2)) == (
        "job j is suspended: no job.placed from there"
    )
    made.add(JobResumed(job=J, by=Owner("ann")))
    assert illegal(made.fleet, placed(at("r0", 0b11), membership=2)) is None


def test_a_block_counts_from_its_first_entry_while_the_cause_is_the_same() -> None:
    made = cell(1, 4)
    made.add(queued())
    made.add(JobBlocked(job=J, reason=Reason(code="capacity")))
    since = made.job("j").blocked_since
    made.wait(10.0)
    made.add(JobBlocked(job=J, reason=Reason(code="capacity", numbers={"free": 1})))
    assert made.job("j").blocked_since == since
    made.add(JobBlocked(job=J, reason=Reason(code="health")))
    assert made.job("j").blocked_since == made.fleet.time


def test_a_wish_is_answered_once_and_the_floor_passes_it() -> None:
    made = cell(1, 4)
    made.add(queued(wish=5), source="placer/0")
    assert why_not(made, queued("other", wish=5)) == "wish 5 has been answered"
    made.add(queued("third", wish=7), source="placer/0", wishes_to=6)
    answers = made.fleet.answers["placer"]
    assert (answers.floor, answers.above) == (6, frozenset({7}))
    assert why_not(made, queued("fourth", wish=6)) == "wish 6 has been answered"


def commit(made: Cell, entry: Entry, **more: Any) -> Commit[Any]:
    settings: dict[str, Any] = {
        "id": MessageId("x"),
        "type": entry.TYPE,
        "v": 1,
        "at": 0.0,
        "source": "placer/0",
        "cell": CellName("cell"),
        "ledger": made.fleet.ledger,
        "prev": made.fleet.last_id,
        "entries": (entry,),
    }
    return Commit(**(settings | more))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"prev": MessageId("other")}, "chain broken"),
        ({"ledger": LedgerId("other")}, "made for ledger other"),
        ({"prev": None}, "must be compared"),
    ],
)
def test_a_commit_that_breaks_the_chain_is_void(more: dict[str, Any], why: str) -> None:
    made = cell(1, 4)
    before = made.fleet
    folding = fold(before, before.seq + 1, before.time, commit(made, queued(), **more))
    assert folding.void
    assert why in folding.why
    assert refuses(before, before.time, commit(made, queued(), **more)) == folding.why
    assert (folding.fleet.seq, folding.fleet.voids) == (before.seq + 1, before.voids + 1)
    assert folding.fleet.jobs == before.jobs


def test_a_commit_with_one_illegal_entry_has_no_effect_at_all() -> None:
    made = cell(1, 4)
    twice = queued()
    both = commit(made, twice, entries=(twice, twice))
    folding = fold(made.fleet, made.fleet.seq + 1, made.fleet.time, both)
    assert folding.void
    assert J not in folding.fleet.jobs
    assert refuses(made.fleet, made.fleet.time, both) == folding.why


def test_what_the_fold_would_take_is_not_refused_and_asking_changes_nothing() -> None:
    made = cell(1, 4)
    before = made.fleet
    assert refuses(before, before.time, commit(made, queued())) is None
    assert (made.fleet is before, J in before.jobs) == (True, False)
    assert not fold(before, before.seq + 1, before.time, commit(made, queued())).void


def test_a_wild_clock_moves_ledger_time_by_a_minute_at_most() -> None:
    made = cell(1, 4)
    before = made.fleet
    folding = fold(before, before.seq + 1, before.time + 86_400.0, commit(made, queued()))
    assert folding.late
    assert folding.fleet.time == before.time + 60.0
    back = fold(before, before.seq + 1, before.time - 5.0, commit(made, queued()))
    assert back.fleet.time == before.time


def test_apply_leaves_the_fleet_it_was_given_as_it_was() -> None:
    made = cell(1, 4)
    made.add(queued())
    before = made.fleet
    after = apply(before, placed(at("r0", 0b11)))
    assert after.jobs[J].state is JobState.PLACED
    assert before.jobs[J].state is JobState.QUEUED
    assert before.racks[0].free == 0b1111
