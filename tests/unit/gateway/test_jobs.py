"""Answers about jobs."""

import pytest

from rackwright.core.jobs import JobState
from rackwright.gateway import asked
from rackwright.gateway.answers.cell import stats
from rackwright.gateway.answers.jobs import job, jobs
from rackwright.gateway.answers.nodes import racks
from rackwright.gateway.asked import BadQuestion
from rackwright.gateway.views import RankView, SliceView, SparesView, WoundView
from rackwright.wire.entries.cell import AutomationPaused, PolicySet
from rackwright.wire.entries.job import JobBlocked, JobCancelled, JobFinished, JobRequeued
from rackwright.wire.entries.node import RackHeld
from rackwright.wire.entries.slice import NodeSwap, SliceSwapped
from rackwright.wire.ids import JobId, Owner, QueueName, RackId, WorkerId
from rackwright.wire.jobs import Checkpoint, JobSpec
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.reasons import Reason, Rung, RungTaken
from rackwright.wire.signals import WorkerState, WorkerStatus
from tests.unit.gateway.storied import Storied, storied

ASKED = asked.Job(job=JobId("a"))
ONE = SparesView(wanted=1, free=1, lent=0, short=0)


def ids(made: Storied, **question: object) -> list[str]:
    answer = jobs(made.context(), asked.Jobs(**question))  # type: ignore[arg-type]
    return [row.id for row in answer.jobs]


def several() -> Storied:
    made = storied()
    made.sit("a", "r0", range(2), queue="research")
    made.queue("b", JobSpec(name=JobId("b"), nodes=4), owner="bob")
    made.queue("c", JobSpec(name=JobId("c"), nodes=1))
    made.add(JobBlocked(job=JobId("b"), reason=Reason(code="capacity")))
    made.sit("d", "r0", [2])
    made.add(JobFinished(job=JobId("d")))
    return made


def test_jobs_are_filtered_by_state_owner_and_queue() -> None:
    made = several()
    assert ids(made) == ["a", "b", "c"]
    assert ids(made, state="queued") == ["b", "c"]
    assert ids(made, owner="bob") == ["b"]
    assert ids(made, queue="research") == ["a"]
    assert ids(made, state="finished") == ["d"]
    assert ids(made, ended=True) == ["a", "b", "c", "d"]


def test_jobs_come_in_pages() -> None:
    made = several()
    first = jobs(made.context(), asked.Jobs(limit=2))
    assert ([row.id for row in first.jobs], first.total, first.next) == (["a", "b"], 3, "b")
    second = jobs(made.context(), asked.Jobs(limit=2, after=first.next))
    assert ([row.id for row in second.jobs], second.next) == (["c"], None)


def test_a_state_that_is_none_is_named() -> None:
    with pytest.raises(BadQuestion, match="state: 'busy' is none; known are queued") as error:
        jobs(several().context(), asked.Jobs(state="busy"))
    assert error.value.status == 400


def test_a_row_says_where_a_job_is_or_why_it_waits() -> None:
    rows = {row.id: row for row in jobs(several().context(), asked.Jobs()).jobs}
    assert (rows["a"].racks, rows["a"].nodes, rows["a"].gpus) == (("r0",), 2, 8)
    assert (rows["b"].blocked, rows["b"].racks, rows["b"].nodes) == ("capacity", (), 4)
    assert rows["c"].blocked is None


def test_every_answer_says_what_it_was_made_from() -> None:
    made = several()
    answer = jobs(made.context(later_s=2.5), asked.Jobs())
    assert (answer.cell, answer.ledger, answer.seq) == ("cell", "ledger", made.fleet.seq)
    assert (answer.time, answer.age_s) == (made.fleet.time, 2.5)


def test_spares_are_the_same_in_every_answer() -> None:
    made = storied(1)
    made.sit("a", "r0", range(14))
    made.sit("lent", "r0", [16], lent=True)
    made.unfit("r0-n17")
    found = [_spares(made)]
    made.add(RackHeld(rack=RackId("r0"), owner=Owner("ann"), until=made.fleet.time + 60.0))
    found.append(_spares(made))
    assert found == [
        SparesView(wanted=2, free=2, lent=1, short=0),
        SparesView(wanted=2, free=0, lent=1, short=2),
    ]


def _spares(made: Storied) -> SparesView:
    """Of the job's slice, which are those of its rack, of the cell, and its nodes so marked."""
    (mine,) = job(made.context(), ASKED).slices
    (rack,) = racks(made.context(), asked.Racks()).racks
    cell = stats(made.context(), asked.Stats())
    (lent,) = job(made.context(), asked.Job(job=JobId("lent"))).slices
    assert lent.spares is None
    assert mine.spares == rack.spares
    assert rack.spares.free == sum(node.state == "spare" for node in rack.nodes)
    assert rack.spares.free == cell.nodes.get("spare", 0) == cell.spares.free
    assert (rack.spares.lent, rack.spares.short) == (cell.spares.lent, cell.spares.short)
    return rack.spares


def test_a_running_job_with_ranks_and_what_their_nodes_say() -> None:
    made = storied()
    made.sit("a", "r0", [0, 1])
    running = WorkerStatus(
        worker=WorkerId("a/1/1"), state=WorkerState.RUNNING, ready=True, pid=77, checkpoint_at=5.0
    )
    made.says("r0-n01", running)
    found = job(made.context(), ASKED)
    assert found.slices == (
        SliceView(index=0, group="a", replica=0, rack="r0", first_rank=0, size=2, spares=ONE),
    )
    assert found.ranks == (
        RankView(rank=0, slice=0, node="r0-n00", incarnation=1),
        RankView(
            rank=1,
            slice=0,
            node="r0-n01",
            incarnation=1,
            state="running",
            ready=True,
            pid=77,
            checkpoint_at=5.0,
        ),
    )
    assert (found.waits, found.spec) == (None, None)


def test_a_swapped_rank_waits_for_its_former_worker() -> None:
    made = storied()
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    assert job(made.context(), ASKED).wounds == (
        WoundView(rank=3, kind="node", code="xid.79", at=made.fleet.time),
    )
    rungs = (RungTaken(rung=Rung.SPARE, taken=True, reason=Reason(code="spare")),)
    swap = NodeSwap(rank=3, old=3, new=16)
    made.add(SliceSwapped(job=JobId("a"), membership=2, index=0, swaps=(swap,), rungs=rungs))
    found = job(made.context(), ASKED)
    assert found.ranks[3] == RankView(
        rank=3,
        slice=0,
        node="r0-n16",
        incarnation=2,
        waits_for=("a/3/1",),
        waits_on="r0-n03",
    )
    assert {rank.incarnation for rank in found.ranks if rank.rank != 3} == {1}
    assert [line.type for line in found.story][-2:] == ["node.unfit", "slice.swapped"]


def test_ranks_come_in_pages() -> None:
    made = storied()
    made.sit("a", "r0", range(16))
    found = job(made.context(), asked.Job(job=JobId("a"), ranks_from=14, ranks=1))
    assert ([rank.rank for rank in found.ranks], found.ranks_total) == ([14], 16)
    assert job(made.context(), asked.Job(job=JobId("a"), ranks=0)).ranks == ()


def test_the_specification_comes_when_asked_for() -> None:
    made = storied()
    made.sit("a", "r0", [0], run="hostname")
    found = job(made.context(), asked.Job(job=JobId("a"), spec=True))
    assert found.spec is not None
    assert (found.spec["run"], found.spec["nodes"]) == ("hostname", 1)


def why(made: Storied, later_s: float = 0.0) -> tuple[str, str]:
    found = job(made.context(later_s), ASKED).waits
    assert found is not None
    return found.code, found.text


def test_why_a_job_waits_is_computed_now() -> None:
    made = storied(1)
    made.sit("other", "r0", range(10))
    made.queue("a", JobSpec(name=JobId("a"), nodes=16))
    assert why(made) == (
        "capacity",
        "16 nodes are asked for, 8 are free and 2 of them are kept as spares",
    )
    made.add(JobFinished(job=JobId("other")))
    made.queue("b", JobSpec(name=JobId("b"), nodes=1))
    assert why(made) == ("fits", "there is a place: it is placed at its turn")


def test_a_pause_and_a_back_off_are_reasons_to_wait() -> None:
    made = storied(1)
    made.sit("a", "r0", [0])
    now = made.fleet.time
    made.add(
        JobRequeued(
            job=JobId("a"), reason=Reason(code="start-failed"), charge=False, not_before=now + 30
        )
    )
    assert why(made) == ("backoff", "tried again in 30 s")
    made.add(AutomationPaused(automation=Automation.PLACEMENT, until=now + 60, by=Owner("ann")))
    assert why(made) == ("paused", "an operator has paused placement for 60 s more")
    assert why(made, later_s=61.0)[0] == "fits"


def test_a_placed_job_says_how_many_ranks_are_ready() -> None:
    made = storied(1)
    made.sit("a", "r0", [0, 1], start=False)
    ready = WorkerStatus(worker=WorkerId("a/0/1"), state=WorkerState.RUNNING, ready=True)
    made.says("r0-n00", ready)
    assert why(made) == ("coming-up", "1 of 2 ranks are ready")


def test_a_job_that_has_ended_keeps_its_story() -> None:
    made = storied(1)
    made.sit("a", "r0", [0])
    made.add(JobCancelled(job=JobId("a"), by=Owner("ann"), reason=Reason(code="cancelled")))
    found = job(made.context(), ASKED)
    assert (found.job.state, found.job.nodes, found.ranks_total) == (JobState.CANCELLED, 0, 0)
    assert [line.type for line in found.story] == [
        "job.queued",
        "job.placed",
        "job.started",
        "job.cancelled",
    ]


def test_a_short_story_keeps_the_newest_and_says_what_is_left_out() -> None:
    made = storied(1)
    made.sit("a", "r0", [0])
    found = job(made.context(), asked.Job(job=JobId("a"), story=1))
    assert ([line.type for line in found.story], found.left_out) == (["job.started"], 2)


def test_an_unknown_job_is_named() -> None:
    with pytest.raises(BadQuestion, match="no job 'a' is known") as error:
        job(storied(1).context(), ASKED)
    assert error.value.status == 404


def test_its_owner_is_told_that_its_checkpoints_are_overdue() -> None:
    made = storied(1)
    made.sit("late", "r0", [0], checkpoint=Checkpoint(interval_s=60.0))
    made.sit("seldom", "r0", [1], checkpoint=Checkpoint(interval_s=600.0))
    made.wait(180.0)
    told = {
        name: [one.text for one in job(made.context(), asked.Job(job=JobId(name))).warnings]
        for name in ("late", "seldom")
    }
    assert told == {
        "late": ["its last checkpoint is 180 s old and one is due every 60 s: nobody moves it"],
        "seldom": [],
    }


def test_who_leaves_a_rack_to_a_promise_is_held_and_not_about_to_be_placed() -> None:
    made = storied(2)
    made.sit("fill", "r0", range(18), queue="theirs")
    guarantee = {QueueName("ours"): 2 * 72}
    made.add(PolicySet(policy=Policy(queue_guarantee=guarantee), by=Owner("op")))
    spec = JobSpec(name=JobId("p"), nodes=36, slice_nodes=18, queue=QueueName("ours"))
    made.queue("p", spec)
    made.queue("a", JobSpec(name=JobId("a"), nodes=4))

    def waits() -> str:
        found = job(made.context(), ASKED).waits
        assert found is not None
        return found.text

    assert waits() == "there is a place: it is placed at its turn"
    made.add(JobBlocked(job=JobId("p"), reason=Reason(code="capacity")))
    assert waits() == "would fit, but 1 rack is left to p: its queue is promised them"
