"""The queue in order, what keeps placement back, and what is told of jobs that wait."""

from collections.abc import Iterable

import pytest

from rackwright.core.machine import Offer, WakeAt
from rackwright.placer.blocks import differs
from rackwright.wire.entries.cell import AutomationPaused, PolicySet
from rackwright.wire.entries.job import JobBlocked, JobCancelled, JobPlaced, JobRequeued
from rackwright.wire.ids import JobId, Owner, QueueName
from rackwright.wire.jobs import JobClass
from rackwright.wire.message import Entry
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import cell, hardware, rack_spec
from tests.unit.placer.desk import Desk, desk


@pytest.fixture
def at() -> Desk:
    return desk(cell(2))


def placed(entries: list[Entry]) -> list[str]:
    return [one.job for one in entries if isinstance(one, JobPlaced)]


def blocked(entries: list[Entry]) -> list[tuple[str, str]]:
    return [(one.job, one.reason.code) for one in entries if isinstance(one, JobBlocked)]


def test_priority_then_submit_time_then_id(at: Desk) -> None:
    at.submit("late", nodes=18)
    at.submit("b", nodes=18)
    at.submit("a", nodes=18)
    at.submit("high", nodes=18, priority=60)
    assert placed(at.run()) == ["high", "a"]
    at.other(JobCancelled(job=JobId("high"), by=Owner("op"), reason=Reason(code="x")))
    assert placed(at.run()) == ["b"]


def test_an_earlier_submit_is_before_a_lower_id(at: Desk) -> None:
    at.submit("fill", nodes=36, slice_nodes=18)
    at.submit("z", nodes=18)
    at.run()
    at.wait(1.0)
    at.submit("a", nodes=18)
    at.run()
    at.exit_all("fill")
    said = at.run()
    assert placed(said) == ["z", "a"]


def test_what_fits_goes_past_what_does_not(at: Desk) -> None:
    at.submit("fill", nodes=18)
    at.run()
    at.submit("big", nodes=36, slice_nodes=18, priority=90)
    at.submit("small", nodes=18)
    assert placed(at.run()) == ["small"]


def test_work_taken_off_its_nodes_is_the_head_of_its_band(at: Desk) -> None:
    at.submit("x", nodes=36, slice_nodes=18)
    at.submit("y", nodes=36, slice_nodes=18)
    at.run()
    at.wait(1.0)
    at.submit("new", nodes=36, slice_nodes=18)
    at.run()
    at.other(JobRequeued(job=JobId("x"), reason=Reason(code="lost")))
    assert placed(at.run()) == ["x"]


def test_two_jobs_of_one_turn_never_get_one_node(at: Desk) -> None:
    for turn in range(10):
        at.submit(f"j{turn}", nodes=4)
    said = at.run()
    assert len(placed(said)) == 8
    used = [
        (part.rack, place)
        for one in said
        if isinstance(one, JobPlaced)
        for part in one.slices
        for place in range(18)
        if part.nodes >> place & 1
    ]
    assert len(used) == len(set(used)) == 32


def test_an_impossible_shape_is_tried_once_for_all_its_jobs(at: Desk) -> None:
    at.submit("fill", nodes=36, slice_nodes=18)
    at.run()
    for turn in range(5):
        at.submit(f"j{turn}", nodes=4)
    at.run()
    assert len(at.state.queue.stuck) == 1
    assert not at.state.queue.untried
    at.submit("k", nodes=4)
    at.run()
    assert not at.state.queue.untried


def test_placement_waits_for_recovery_but_not_for_long(at: Desk) -> None:
    at.started("a", nodes=4)
    at.cell.fail("r0-n01")
    at.folded()
    at.submit("b", nodes=1, priority=90)
    (offer,) = at.offers()
    assert [one.TYPE for one in offer.entries] == ["job.queued"]
    at.commit([offer])
    effects = at.turn()
    assert not any(isinstance(one, Offer) for one in effects)
    wakes = [one.mono - at.mono for one in effects if isinstance(one, WakeAt)]
    assert min(wakes) == pytest.approx(0.1)
    at.wait(0.2)
    assert placed(at.run()) == ["b"]


def test_a_wounded_slice_keeps_its_rack_and_those_it_could_use(at: Desk) -> None:
    at.cell.define(rack_spec("r2", 3), rack_spec("r3"))
    at.started("a", nodes=16)
    at.cell.fail("r0-n01")
    at.folded()
    at.wait(1.0)
    at.submit("low", nodes=2)
    at.submit("high", nodes=4, priority=90)
    at.submit("big", nodes=16)
    said = at.run()
    assert placed(said) == ["high", "low"]
    assert [at.cell.job(name).slices[0].rack for name in ("high", "low")] == [1, 2]
    assert blocked(said) == [("big", "held")]


def test_a_wound_that_waits_keeps_one_rack(at: Desk) -> None:
    at.cell.define(rack_spec("r2"))
    at.started("a", nodes=16)
    at.cell.fail("r0-n01")
    at.folded()
    at.submit("b", nodes=16)
    assert placed(at.live(59)) == []
    assert placed(at.live(3)) == ["b"]
    at.submit("c", nodes=16)
    assert blocked(at.live(2)) == [("c", "held")]


def test_a_pause_stops_placement_until_its_end(at: Desk) -> None:
    until = at.fleet.time + 30.0
    at.other(AutomationPaused(automation=Automation.PLACEMENT, until=until, by=Owner("op")))
    at.submit("a", nodes=1)
    assert at.types() == ["job.queued"]
    assert 30.0 in at.wakes()
    at.wait(30.0)
    assert at.types() == ["job.placed"]


def test_the_cause_is_told_at_once_and_then_when_it_changes(at: Desk) -> None:
    at.started("fill", nodes=36, slice_nodes=18)
    at.submit("a", nodes=16)
    assert blocked(at.run()) == [("a", "capacity")]
    assert at.live(59) == []
    for node in ("r0-n00", "r0-n01", "r0-n02", "r1-n00", "r1-n01", "r1-n02"):
        at.cell.unfit(node)
        at.folded()
    assert blocked(at.live(3)) == [("a", "health")]
    assert at.live(70) == []


def test_numbers_that_move_by_a_quarter_are_told_once_a_minute(at: Desk) -> None:
    at.other(PolicySet(policy=Policy(pinned_share=1.0), by=Owner("op")))
    for name in ("x", "y"):
        at.started(name, nodes=12, restartable=False)
    at.submit("a", nodes=16)
    assert blocked(at.run()) == [("a", "capacity")]
    at.started("z", nodes=6, restartable=False)
    assert at.live(55) == []
    assert blocked(at.live(10)) == [("a", "capacity")]


def test_ten_jobs_of_a_shape_are_all_told(at: Desk) -> None:
    at.submit("fill", nodes=36, slice_nodes=18)
    at.run()
    for turn in range(10):
        at.submit(f"j{turn}", nodes=16)
    assert len(blocked(at.run())) == 10
    assert len(at.state.judged) == 1


def test_a_job_placed_in_this_turn_is_not_told_to_wait(at: Desk) -> None:
    for turn in range(3):
        at.submit(f"j{turn}", nodes=18)
    said = at.run()
    assert (placed(said), blocked(said)) == (["j0", "j1"], [("j2", "capacity")])


def test_a_change_that_helps_wakes_what_waits(at: Desk) -> None:
    at.started("fill", nodes=36, slice_nodes=18)
    at.submit("a", nodes=16)
    at.run()
    at.cell.define(rack_spec("r2"))
    at.folded()  # commits were passed over: the whole fleet is looked at again
    assert placed(at.run()) == ["a"]


def test_every_way_of_help_is_seen() -> None:
    at = desk(cell(1, 4))
    at.started("fill", nodes=3)
    at.submit("a", nodes=2)
    at.run()
    assert "a" in at.fleet.queued
    at.cell.unfit("r0-n03")
    at.folded()
    assert placed(at.run()) == []
    at.exit_all("fill")
    assert placed(at.run()) == ["a"]
    at.submit("b", nodes=2, restartable=False)
    assert placed(at.run()) == []
    at.cell.recover("r0-n03")
    at.folded()
    assert placed(at.run()) == []
    at.cell.add(PolicySet(policy=Policy(spares_small=0), by=Owner("op")))
    at.folded()
    assert placed(at.run()) == ["b"]


def test_placements_that_were_refused_are_offered_again_if_they_hold(at: Desk) -> None:
    at.submit("a", nodes=16)
    at.submit("b", nodes=16)
    at.commit(at.offers())
    (offer,) = at.offers()
    assert placed(list(offer.entries)) == ["a", "b"]
    at.cell.unfit("r0-n00")
    at.folded()
    (again,) = at.refuse(offer)
    assert isinstance(again, Offer)
    assert placed(list(again.entries)) == ["b"]
    at.commit([again])
    assert placed(at.run()) == ["a"]


def test_placements_that_were_refused_wait_for_recovery(at: Desk) -> None:
    at.started("x", nodes=2)
    at.submit("a", nodes=16, priority=90)
    at.commit(at.offers())
    (offer,) = at.offers()
    at.cell.fail("r0-n01")
    at.folded()
    assert at.refuse(offer) == []
    at.wait(1.0)
    assert placed(at.run()) == ["a"]


def test_a_restarted_placer_goes_on_from_the_fleet(at: Desk) -> None:
    at.submit("a", nodes=36, slice_nodes=18)
    at.submit("b", nodes=16)
    at.run()
    at.cell.add(JobCancelled(job=JobId("a"), by=Owner("op"), reason=Reason(code="x")))
    assert placed(desk(at.cell).run()) == ["b"]


def test_quarter() -> None:
    def why(**numbers: int | float | str) -> Reason:
        return Reason(code="capacity", numbers=numbers)

    assert not differs(why(free=8), why(free=10))
    assert differs(why(free=8), why(free=11))
    assert differs(why(free=0), why(free=1))
    assert differs(why(), why(free=1))
    assert not differs(why(free=8, for_s=1.0), why(free=8, for_s=9.0))
    assert not differs(why(repairs="a"), why(repairs="b"))
    assert differs(why(), Reason(code="held"))


def test_an_owner_who_has_used_much_waits_for_one_who_has_not(at: Desk) -> None:
    at.started("fill", nodes=36, slice_nodes=18)
    at.live(120)
    at.submit("mine", nodes=18)
    at.run()
    at.wait(1.0)
    at.submit("theirs", nodes=18, owner="bob")
    at.run()
    at.exit_all("fill")
    assert placed(at.run()) == ["theirs", "mine"]


def test_a_job_that_waits_too_long_is_first_of_its_priority(at: Desk) -> None:
    at.other(PolicySet(policy=Policy(starve_after_s=30.0), by=Owner("op")))
    at.started("fill", nodes=36, slice_nodes=18)
    at.live(20)
    at.submit("mine", nodes=18)
    at.live(40)
    at.submit("theirs", nodes=18, owner="bob")
    at.submit("urgent", nodes=18, owner="bob", priority=51)
    at.run()
    at.exit_all("fill")
    assert placed(at.run()) == ["urgent", "mine"]


def test_work_without_gpus_comes_to_a_rack_that_others_have_broken() -> None:
    queue = QueueName("cpu")
    at = desk(cell(1, nodes=4, policy=Policy(cpu_only_queues=(queue,))))
    at.submit("tokens", gpus=0, queue=queue)
    assert blocked(at.run()) == [("tokens", "capacity")]
    at.submit("x", nodes=1, job_class=JobClass.INTERACTIVE)
    assert placed(at.run()) == ["x", "tokens"]


def test_what_asks_for_other_memory_is_tried_by_itself() -> None:
    made = cell(0)
    made.define(rack_spec("r0", 2), join=False)
    for name in rack_spec("r0", 2).nodes:
        made.join(name, hardware(name, cores=64, memory_gb=256.0))
    at = desk(made)
    at.submit("fill", nodes=1)
    at.run()
    at.submit("a", nodes=2, memory_gb=256.0)
    at.submit("b", nodes=1, memory_gb=256.0)
    assert placed(at.run()) == ["b"]
    at.exit_all("fill")
    at.submit("c", gpus=1, memory_gb=64.0)
    at.submit("d", gpus=1)
    assert {"c", "d"} <= set(placed(at.run()))


def test_a_commit_holds_fewer_placements_while_others_come_first_and_more_when_they_do_not(
    at: Desk,
) -> None:
    at.submit("fill", nodes=36, slice_nodes=18)
    at.run()
    for number in range(130):
        at.submit(f"s{number}", gpus=1)
    at.run()
    at.other(JobCancelled(job=JobId("fill"), by=Owner("op"), reason=Reason(code="x")))

    def sizes(effects: Iterable[object]) -> list[int]:
        return [len(one.entries) for one in effects if isinstance(one, Offer)]

    def placing() -> Offer:
        while not isinstance((offers := at.offers())[0].entries[0], JobPlaced):
            at.commit(offers)
        return offers[0]

    offer = placing()
    tried = [len(offer.entries)]
    for _ in range(4):
        again = at.refuse(offer)
        tried += sizes(again)
        (offer,) = (one for one in again if isinstance(one, Offer))
    assert tried == [64, 32, 16, 8, 8]
    grown = []
    for _ in range(4):
        at.commit([offer])
        at.acked()
        offer = placing()
        grown.append(len(offer.entries))
    assert grown == [16, 32, 64, 10]
