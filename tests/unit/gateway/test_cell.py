"""The cell in numbers, its settings, its events, and what defragmentation would do."""

import pytest

from rackwright.gateway import asked
from rackwright.gateway.answers.cell import policy, stats
from rackwright.gateway.answers.defrag import defrag
from rackwright.gateway.answers.events import events
from rackwright.gateway.answers.jobs import job as all_about
from rackwright.gateway.asked import BadQuestion
from rackwright.gateway.chronicle import Chronicle
from rackwright.gateway.standing import standing
from rackwright.gateway.views import Fragmentation, Knob, QueuedBy, SpareTotals
from rackwright.wire.entries.cell import AutomationPaused, PolicySet
from rackwright.wire.entries.job import JobApproved, JobBlocked, JobQueued
from rackwright.wire.ids import JobId, Owner
from rackwright.wire.jobs import JobSpec
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import rack_spec
from tests.unit.gateway.storied import Storied, storied


def crowded() -> Storied:
    """Every rack has a little work: a rack-sized job waits for room."""
    made = storied(2)
    for rack in ("r0", "r1"):
        made.sit(f"small-{rack}", rack, range(2))
    made.wait(3600.0)
    made.queue("big", JobSpec(name=JobId("big"), nodes=18, slice_nodes=18))
    made.add(JobBlocked(job=JobId("big"), reason=Reason(code="topology.movable")))
    return made


def test_numbers_of_a_cell() -> None:
    made = crowded()
    found = stats(made.context(), asked.Stats())
    assert (found.racks, found.installed_nodes, found.installed_gpus) == (2, 36, 144)
    assert {state: count for state, count in found.jobs.items() if count} == {
        "queued": 1,
        "running": 2,
    }
    assert found.nodes == {"free": 30, "spare": 2, "used": 4}
    assert sum(found.gpus.values()) == 144
    assert found.queue == {"topology.movable": QueuedBy(jobs=1, gpus=72)}
    assert found.spares == SpareTotals(wanted=2, free=2, lent=0, short=0, racks_without=0)
    assert found.fragmentation == Fragmentation(
        startable={"1": 32, "2": 16, "4": 8, "8": 4, "16": 2, "17": 0, "18": 0},
        free_above_spares=30,
        whole_racks=2,
        broken_racks=0,
        pinned_racks=0,
        fragmentation=0.0,
        slurm_fragmentation=4 + 36 + 36,
    )
    assert (found.complete, found.since, found.stopped_at) == (True, 1, None)


def test_pauses_are_shown_until_they_end() -> None:
    made = storied(1)
    until = made.fleet.time + 60.0
    made.add(AutomationPaused(automation=Automation.DEFRAG, until=until, by=Owner("ann")))
    assert stats(made.context(), asked.Stats()).paused == {"defrag": until}
    assert stats(made.context(later_s=61.0), asked.Stats()).paused == {}


def test_whoever_asks_anything_hears_what_is_stopped_in_the_cell() -> None:
    made = storied(1, policy=Policy(breaker_min=2))
    assert stats(made.context(), asked.Stats()).notices == ()
    until = made.fleet.time + 60.0
    made.add(AutomationPaused(automation=Automation.ALL, until=until, by=Owner("ann")))
    made.unfit("r0-n00")
    made.unfit("r0-n01")
    found = stats(made.context(), asked.Stats())
    assert [notice.split(":")[0] for notice in found.notices] == [
        "the cell is read only for 60 s more (rackwright unpause all ends it)",
        "the breaker is open",
    ]
    assert (found.breaker.open, found.breaker.culprits, found.breaker.limit) == (True, 2, 2)
    (later,) = policy(made.context(later_s=61.0), asked.PolicyAsked()).notices
    assert "for 1139 s more" in later


def test_settings_with_their_units_and_reasons() -> None:
    made = storied(1, policy=Policy(slice_nodes=8))
    found = policy(made.context(), asked.PolicyAsked())
    assert found.policy == Policy(slice_nodes=8)
    assert found.knobs["slice_nodes"] == Knob(
        unit="nodes", why="largest power of two that leaves two spares of 18", default=16
    )
    assert found.knobs["queue_gpus"].default == {}


def kinds(made: Storied, **question: object) -> list[str]:
    found = events(made.context(), asked.Events(**question))  # type: ignore[arg-type]
    return [line.type for line in found.events]


def test_events_are_the_newest_in_order() -> None:
    made = crowded()
    assert kinds(made, limit=3) == ["job.started", "job.queued", "job.blocked"]
    assert kinds(made, type="job.b*") == ["job.blocked"]
    assert kinds(made, type="*.placed") == ["job.placed", "job.placed"]
    assert kinds(made, job=JobId("big")) == ["job.queued", "job.blocked"]
    assert kinds(made, node="r0-n01") == ["node.joined"]


def test_events_after_a_sequence_come_in_pages_that_skip_nothing() -> None:
    made = crowded()
    first = events(made.context(), asked.Events(since=0, limit=30))
    assert len(first.events) == 29  # the thirtieth might be one of several of its commit
    seen = [line.seq for line in first.events]
    at = first.next
    while at < made.fleet.seq:
        page = events(made.context(), asked.Events(since=at, limit=30))
        seen += [line.seq for line in page.events]
        at = page.next
    assert seen == [line.seq for line in made.chronicle.events]
    last = events(made.context(), asked.Events(since=made.fleet.seq))
    assert (last.events, last.next, last.oldest) == ((), made.fleet.seq, 1)


class BeingRead(Chronicle):
    """A past of which the older part is not there yet."""

    complete = False


def test_while_the_past_is_read_back_nobody_is_told_to_pass_over_it() -> None:
    made = storied()
    made.chronicle = BeingRead()
    with pytest.raises(BadQuestion, match="ask again") as refused:
        events(made.context(), asked.Events(since=made.fleet.seq - 1))
    assert refused.value.status == 503
    assert events(made.context(), asked.Events(since=made.fleet.seq)).events == ()
    assert events(made.context(), asked.Events()).next == made.fleet.seq


def test_a_commit_larger_than_a_page_comes_whole() -> None:
    made = storied(1)
    at = made.fleet.seq
    made.add(
        *(
            JobQueued(
                job=JobId(f"j{number}"),
                owner=Owner("ann"),
                spec=JobSpec(name=JobId("j"), nodes=1),
                spec_hash="h",
                submitted_at=0.0,
            )
            for number in range(3)
        )
    )
    page = events(made.context(), asked.Events(since=at, type="job.*", limit=2))
    assert ([line.jobs for line in page.events], page.next) == (
        [("j0",), ("j1",), ("j2",)],
        made.fleet.seq,
    )


def test_a_dry_run_of_defragmentation() -> None:
    found = defrag(crowded().context(), asked.Defrag(job=JobId("big")))
    assert (found.outcome, found.job) == ("go", "big")
    assert found.text.startswith("clears r0 at ")
    assert found.explanation["homes"] == [{"job": "small-r0", "slice": 0, "rack": "r1", "nodes": 2}]


@pytest.mark.parametrize("asks", [True, False])
def test_where_plans_are_approved_the_job_and_a_dry_run_say_what_they_wait_for(asks: bool) -> None:
    made = crowded()
    made.add(PolicySet(policy=Policy(defrag_approve=asks), by=Owner("op")))

    def told() -> list[str]:
        waits = all_about(made.context(), asked.Job(job=JobId("big"))).waits
        return [
            defrag(made.context(), asked.Defrag(job=JobId("big"))).text,
            waits.text if waits is not None else "",
        ]

    assert ["waits for `rackwright approve big`" in text for text in told()] == [asks, asks]
    made.add(JobApproved(job=JobId("big"), until=made.fleet.time + 60.0, by=Owner("op")))
    assert not any("approve" in text for text in told())


@pytest.mark.parametrize(
    ("job", "status", "text"),
    [
        ("none", 404, "no living job 'none' is known"),
        ("small-r0", 400, "job: small-r0 is running; only queued jobs wait for room"),
    ],
)
def test_a_dry_run_for_what_does_not_wait(job: str, status: int, text: str) -> None:
    with pytest.raises(BadQuestion, match=text) as error:
        defrag(crowded().context(), asked.Defrag(job=JobId(job)))
    assert error.value.status == status


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("nonsense.*", "known are automation, breaker, cell, "),
        ("nod.*", "did you mean 'node.*'?"),
        ("node.faild", "did you mean 'node.failed'?"),
        ("job", "known are job.queued, "),
        ("slice.qqq", "known are slice."),
    ],
)
def test_a_type_that_no_entry_has_is_no_empty_answer(pattern: str, hint: str) -> None:
    with pytest.raises(BadQuestion) as raised:
        kinds(crowded(), type=pattern)
    assert raised.value.status == 400
    assert hint in raised.value.text


def test_a_type_that_has_not_happened_yet_is_an_empty_answer() -> None:
    assert kinds(crowded(), type="defrag.*") == []


def test_spares_on_probation_and_what_the_planner_expects() -> None:
    made = storied(2)
    made.sit("a", "r0", range(16))
    found = stats(made.context(), asked.Stats())
    assert (found.spares.probation, found.work.exhaustions_expected) == (0, None)
    made.wait(86_400.0)
    made.unfit("r0-n17")
    made.wait(86_400.0)
    made.recover("r0-n17", probation_s=3600.0)
    made.unfit("r1-n17")
    found = stats(made.context(), asked.Stats())
    assert found.spares.probation == 1
    (month, _) = found.reliability
    mtbf, away = month.node_mtbf_days["value"], month.node_mttr_hours["value"]
    assert mtbf is not None
    assert away is not None
    down = (away / 24) / (mtbf + away / 24)
    failures = 16 / mtbf / 2  # a day and rack: one of two racks has a slice
    expected = failures * 1000 * 17 * 16 / 2 * down**2 * (1 - down) ** 15
    assert found.work.exhaustions_expected == pytest.approx(expected, rel=1e-3)


def test_blocks_used_of_the_fewest() -> None:
    made = storied(0)
    for number in range(4):
        made.define(rack_spec(f"r{number}", path=(f"b{number // 2}",)))
    made.spread("a", [("r0", range(16)), ("r1", range(16))])
    assert standing(made.fleet, made.state, made.fleet.time).blocks_ratio == 1.0
    made.finish("a")
    made.spread("b", [("r0", range(16)), ("r2", range(16))])
    assert standing(made.fleet, made.state, made.fleet.time).blocks_ratio == 2.0
