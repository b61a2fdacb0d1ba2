"""A plan in flight: asked again while its victims can stay, finished when its job has started."""

import pytest

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet, Plan
from rackwright.core.jobs import Job, JobState
from rackwright.core.policy.defrag import entry_of, judge
from rackwright.core.policy.defrag_course import Asked, Runs, course, notices, spared
from rackwright.core.policy.placement import place
from rackwright.wire.entries.job import JobCancelled, JobFailed, JobFinished, JobRequeued
from rackwright.wire.entries.node import NodeCleaning
from rackwright.wire.entries.slice import DefragFinished, DefragWithdrawn
from rackwright.wire.ids import JobId, Owner, PlanId, WorkerId
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell, node_name
from tests.unit.core.policy.defrag_cells import HOUR, SAVES, block, fill, pass_time

PLAN = PlanId("plan")


def everyone(worker: WorkerId) -> bool:
    return True


def nobody(worker: WorkerId) -> bool:
    return False


def in_flight() -> Cell:
    """v leaves r0 for p; its home is in r1, where the other nodes are pinned."""
    made = cell(2)
    made.sit("v", "r0", range(3), checkpoint=SAVES)
    fill(made, "r1", range(14))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    entry = entry_of(judge(made.fleet, made.job("p"), {}, made.fleet.time), PLAN)
    assert entry is not None
    made.add(entry)
    return made


def plan(made: Cell) -> Plan:
    return made.fleet.plans[PLAN]


def ask(made: Cell, runs: Runs = everyone) -> DefragFinished | DefragWithdrawn | None:
    return course(made.fleet, plan(made), runs, made.fleet.time, Asked())


def test_the_same_is_not_looked_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    made = in_flight()
    looks: list[Fleet] = []

    def counted(fleet: Fleet, job: Job) -> None:
        looks.append(fleet)

    monkeypatch.setattr("rackwright.core.policy.defrag_course.place", counted)
    asked = Asked()
    for seconds in (1.0, 2.0):
        assert course(made.fleet, plan(made), everyone, made.fleet.time + seconds, asked) is None
    assert len(looks) == 1
    made.fleet = evolve(made.fleet, seq=made.fleet.seq + 1)
    assert course(made.fleet, plan(made), everyone, made.fleet.time, asked) is None
    assert len(looks) == 2


def withdrawn(made: Cell, runs: Runs = everyone) -> DefragWithdrawn:
    found = ask(made, runs)
    assert isinstance(found, DefragWithdrawn), found
    return found


def told(found: DefragWithdrawn) -> tuple[str, list[str]]:
    return found.reason.code, [str(name) for name in found.spared]


def test_nothing_happens_while_the_plan_is_carried_out() -> None:
    made = in_flight()
    assert ask(made) is None
    pass_time(made, 121.0)
    assert ask(made) is None


def test_finished_when_the_job_has_started() -> None:
    made = in_flight()
    made.start("p")
    assert ask(made, nobody) == DefragFinished(plan=PLAN)
    made.add(DefragFinished(plan=PLAN))
    assert (made.job("p").plan, made.job("v").plan) == (None, None)


def test_finished_when_the_job_is_already_over() -> None:
    made = in_flight()
    made.add(JobFinished(job=JobId("p")))
    assert ask(made) == DefragFinished(plan=PLAN)


def test_withdrawn_when_the_job_is_cancelled_and_the_victim_goes_on() -> None:
    """Lesson 31: what turned out not to be needed is given back."""
    made = in_flight()
    before = plan(made).victims[0].before
    reason = Reason(code="owner")
    made.add(JobCancelled(job=JobId("p"), by=Owner("ann"), reason=reason))
    found = withdrawn(made)
    assert told(found) == ("defrag.cancelled", ["v"])
    made.add(found)
    victim = made.job("v")
    assert victim.state is JobState.RUNNING
    assert victim.slices == before
    assert victim.preempted == ()
    assert not made.fleet.plans


@pytest.mark.parametrize("runs", [everyone, nobody])
def test_a_victim_that_has_stopped_goes_home_all_the_same(runs: Runs) -> None:
    made = in_flight()
    reason = Reason(code="owner")
    made.add(JobFailed(job=JobId("p"), reason=reason))
    assert told(withdrawn(made, runs)) == ("defrag.failed", ["v"] if runs is everyone else [])


def test_withdrawn_when_somebody_took_the_job_off_its_nodes() -> None:
    made = in_flight()
    made.add(JobRequeued(job=JobId("p"), reason=Reason(code="spares")))
    found = withdrawn(made)
    assert told(found) == ("defrag.requeued", ["v"])
    made.add(found)
    assert made.job("p").state is JobState.QUEUED


def test_withdrawn_when_a_freed_node_fails() -> None:
    made = in_flight()
    used = made.job("p").slices[0].nodes[-1]
    made.fail(f"r0-n{used:02d}")
    assert made.job("p").wounds
    assert told(withdrawn(made)) == ("defrag.node-failed", ["v"])
    # With nobody left to be spared, the job climbs the ladder like any other.
    assert ask(made, nobody) is None


def test_withdrawn_when_a_rack_comes_free_by_itself() -> None:
    made = in_flight_with_neighbour()
    assert ask(made) is None
    made.add(JobFinished(job=JobId("neighbour")))
    found = withdrawn(made)
    assert told(found) == ("defrag.fits", ["v"])
    made.add(found)
    assert place(made.fleet, made.job("p")) is not None


def in_flight_with_neighbour() -> Cell:
    """As `in_flight`, and r1 is short of one slice because of a neighbour."""
    made = cell(3)
    made.sit("v", "r0", range(3), checkpoint=SAVES)
    made.sit("neighbour", "r1", range(3), preemptible=False)
    fill(made, "r2", range(14))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    entry = entry_of(judge(made.fleet, made.job("p"), {}, made.fleet.time), PLAN)
    assert entry is not None
    made.add(entry)
    return made


def test_not_withdrawn_for_a_free_rack_once_the_victim_has_stopped() -> None:
    made = in_flight_with_neighbour()
    made.add(JobFinished(job=JobId("neighbour")))
    assert ask(made, nobody) is None
    pass_time(made, 121.0)
    assert ask(made, everyone) is None


def test_withdrawn_at_its_expiry_if_a_victim_does_not_end() -> None:
    made = in_flight()
    pass_time(made, 599.0)
    assert ask(made) is None
    pass_time(made, 1.0)
    found = withdrawn(made)
    assert told(found) == ("defrag.expired", [])
    made.add(found)
    assert made.job("p").state is JobState.QUEUED
    assert made.fleet.rack_name(made.job("v").slices[0].rack) == "r1"


def test_history_at_its_expiry_if_all_victims_have_left() -> None:
    """The job is only slow to start: taking its nodes away would help nobody."""
    made = in_flight()
    pass_time(made, 600.0)
    assert ask(made, nobody) == DefragFinished(plan=PLAN)
    for rank in range(3):
        name = node_name("r0", rank)
        ended = (WorkerId(f"v/{rank}/1"),)
        made.add(NodeCleaning(node=name, of=made.fleet.node(name).last, ended=ended))
    assert ask(made, everyone) == DefragFinished(plan=PLAN)


def test_victims_on_each_others_nodes_stay_together_or_not_at_all() -> None:
    """v's new home is where w was."""
    made = cell(3, policy=Policy(spares_large=0, spares_small=0))
    made.sit("w", "r0", range(6), checkpoint=SAVES)
    made.sit("v", "r1", range(2), checkpoint=SAVES)
    fill(made, "r1", range(2, 4))
    fill(made, "r2", range(12))
    pass_time(made, HOUR)
    block(made, "p", nodes=32)
    entry = entry_of(judge(made.fleet, made.job("p"), {}, made.fleet.time), PLAN)
    assert entry is not None
    made.add(entry)
    now = made.fleet.time

    def without(job: str) -> Runs:
        return lambda worker: not worker.startswith(f"{job}/")

    assert set(spared(made.fleet, plan(made), everyone, now)) == {"v", "w"}
    assert spared(made.fleet, plan(made), without("v"), now) == ()
    assert spared(made.fleet, plan(made), without("w"), now) == ("v",)
    assert spared(made.fleet, plan(made), everyone, now + 120.0) == ()


def test_a_victim_that_somebody_changed_is_not_spared() -> None:
    made = in_flight()
    changed = evolve(made.job("v"), membership=made.job("v").membership + 1)
    fleet = evolve(made.fleet, jobs=made.fleet.jobs.set(changed.id, changed))
    assert spared(fleet, plan(made), everyone, fleet.time) == ()


def test_victims_are_told_with_the_notice_of_the_plan() -> None:
    made = in_flight()
    (told,) = notices(made.fleet, PLAN, (JobId("v"), JobId("gone")))
    assert (told.job, told.plan, told.notice_s) == ("v", PLAN, 120.0)
    made.add(told)
