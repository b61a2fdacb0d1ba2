"""Each wish is answered once, by an entry or by what is there already."""

import pytest

from rackwright.core.legality.seats import evictable
from rackwright.core.machine import Offer, Room, TrimWishes, WakeAt
from rackwright.wire.entries.cell import (
    AutomationPaused,
    AutomationResumed,
    LedgerTicked,
    PolicySet,
    WishRefused,
)
from rackwright.wire.entries.job import JobCancelled, JobPlaced, JobQueued, JobRejected
from rackwright.wire.entries.node import (
    MaintenanceScheduled,
    NodeCordoned,
    RackDefined,
    RackHeld,
    RackReleased,
)
from rackwright.wire.ids import JobId, NodeId, Owner, QueueName, RackId
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.message import Entry
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.wishes import (
    Approve,
    Cancel,
    Cordon,
    DefineRacks,
    HoldRack,
    Pause,
    Pin,
    ReleaseRack,
    Resume,
    ScheduleMaintenance,
    SetPolicy,
    Submit,
    Swap,
    Unpause,
    Unpin,
    Wish,
)
from tests.support.fleets import cell, rack_spec
from tests.unit.placer.desk import Desk, desk


@pytest.fixture
def at() -> Desk:
    return desk(cell(2))


def codes(entries: list[Entry]) -> list[str]:
    """Codes of refusals and rejections."""
    return [one.reason.code for one in entries if isinstance(one, WishRefused | JobRejected)]


def floor(at: Desk) -> int:
    return at.fleet.answers["placer"].floor


def test_a_submit_is_queued_with_its_owner_and_placed(at: Desk) -> None:
    seq = at.submit("a", owner="bob", nodes=16)
    (offer,) = at.offers()
    (queued,) = offer.entries
    assert isinstance(queued, JobQueued)
    assert (queued.owner, queued.wish, queued.cause, offer.wishes_to) == ("bob", 1, "w1", seq)
    at.commit([offer])
    (placed,) = at.run()
    assert isinstance(placed, JobPlaced)
    assert (placed.membership, placed.cause) == (1, "c" + str(at.fleet.seq - 1))
    assert [part.rack for part in placed.slices] == ["r0"]


def test_an_impossible_submit_is_rejected_and_its_id_used(at: Desk) -> None:
    at.submit("a", nodes=100)
    assert codes(at.run()) == ["never"]
    at.submit("a", nodes=100)
    assert at.run() == []
    at.submit("a", nodes=1)
    assert codes(at.run()) == ["id-taken"]


def test_the_same_submit_again_is_the_same_wish(at: Desk) -> None:
    at.submit("a", nodes=1)
    at.submit("a", nodes=1)
    assert at.types() == ["job.queued", "job.placed"]
    assert floor(at) == 2
    at.submit("a", nodes=1)
    assert at.run() == []
    at.submit("b", nodes=1)
    at.run()
    assert floor(at) == 4


def test_a_taken_id_is_refused_and_the_first_job_stays(at: Desk) -> None:
    at.submit("a", nodes=1)
    at.submit("a", nodes=2)
    at.submit("a", owner="eve", nodes=1)
    assert codes(at.run()) == ["id-taken", "id-taken"]
    assert at.cell.job("a").spec.nodes == 1
    assert floor(at) == 3


def test_cancel_in_any_state(at: Desk) -> None:
    at.submit("q", nodes=36, slice_nodes=18)
    at.submit("big", nodes=36, slice_nodes=18)
    at.run()
    for name in ("q", "big"):
        at.wish(Cancel(job=JobId(name), why="enough"))
    at.wish(Cancel(job=JobId("q")))
    said = at.run()
    assert [one.job for one in said if isinstance(one, JobCancelled)] == ["q", "big"]
    assert codes(said) == ["already-ended"]
    assert at.fleet.index.usable == 36


def test_cancel_before_submit_is_a_tombstone(at: Desk) -> None:
    at.wish(Cancel(job=JobId("a")))
    assert at.types() == ["job.cancelled"]
    at.submit("a", nodes=1)
    assert codes(at.run()) == ["cancelled-before"]


def test_submit_and_cancel_of_one_job_keep_their_order(at: Desk) -> None:
    at.submit("a", nodes=1)
    at.submit("b", nodes=1)
    at.wish(Cancel(job=JobId("a")))
    at.submit("c", nodes=1)
    (first, *_) = at.offers()
    assert [type(one) for one in first.entries] == [JobQueued] * 3
    assert first.wishes_to == 2
    at.commit([first])
    assert "a" not in at.fleet.queued or at.types()[0] == "job.cancelled"
    assert sorted(at.fleet.jobs) == ["b", "c"]


def test_late_wishes_are_refused(at: Desk) -> None:
    at.wish(
        Submit(job=JobId("a"), spec=JobSpec(name=JobId("a"), nodes=1), not_after=at.fleet.time - 1)
    )
    assert codes(at.run()) == ["too-late"]
    at.wish(
        Submit(job=JobId("a"), spec=JobSpec(name=JobId("a"), nodes=1), not_after=at.fleet.time + 1)
    )
    assert at.types() == ["job.queued", "job.placed"]


def test_resume_only_what_is_suspended(at: Desk) -> None:
    at.submit("a", nodes=1)
    at.run()
    at.wish(Resume(job=JobId("a")))
    at.wish(Resume(job=JobId("z")))
    assert codes(at.run()) == ["not-suspended", "unknown-job"]


def test_wishes_about_nodes_are_the_health_monitors(at: Desk) -> None:
    at.wish(Cordon(node=NodeId("r0-n00")))
    at.skip()
    at.submit("a", nodes=1)
    at.run()
    assert floor(at) == 3


@pytest.mark.parametrize(
    ("wish", "kind"),
    [
        (SetPolicy(policy=Policy(slice_nodes=8)), PolicySet),
        (Pause(automation=Automation.SWAP, for_s=60.0), AutomationPaused),
        (HoldRack(rack=RackId("r0"), for_s=60.0), RackHeld),
        (DefineRacks(racks=(rack_spec("r7"), rack_spec("r8"))), RackDefined),
        (
            ScheduleMaintenance(racks=(RackId("r0"),), begin=2e6, end=2.1e6),
            MaintenanceScheduled,
        ),
    ],
)
def test_wishes_about_the_cell(at: Desk, wish: Wish, kind: type[Entry]) -> None:
    at.wish(wish, owner="op")
    said = at.run()
    assert {type(one) for one in said} == {kind}
    assert said[0].wish == 1
    assert floor(at) == 1


def test_a_pause_and_a_hold_end_by_wish(at: Desk) -> None:
    at.wish(Pause(automation=Automation.SWAP, for_s=60.0))
    at.wish(HoldRack(rack=RackId("r0"), for_s=60.0))
    at.wish(Unpause(automation=Automation.SWAP))
    at.wish(ReleaseRack(rack=RackId("r0")))
    assert [type(one) for one in at.run()] == [
        AutomationPaused,
        RackHeld,
        AutomationResumed,
        RackReleased,
    ]


def test_what_is_not_so_cannot_end(at: Desk) -> None:
    at.wish(Unpause(automation=Automation.SWAP))
    at.wish(ReleaseRack(rack=RackId("r0")))
    at.wish(HoldRack(rack=RackId("r9"), for_s=1.0))
    said = at.run()
    assert codes(said) == ["not-possible"] * 3
    assert isinstance(said[2], WishRefused)
    assert (said[2].subject, said[2].reason.numbers["why"]) == ("r9", "no rack r9")


def test_racks_that_are_known_are_passed_over(at: Desk) -> None:
    at.wish(DefineRacks(racks=(rack_spec("r0"), rack_spec("r7"))))
    said = at.run()
    assert [one.rack.rack for one in said if isinstance(one, RackDefined)] == ["r7"]
    at.wish(DefineRacks(racks=(rack_spec("r0"), rack_spec("r7"))))
    assert at.run() == []


def test_a_node_in_two_racks_is_refused_whole(at: Desk) -> None:
    twin = rack_spec("r0")
    at.wish(DefineRacks(racks=(rack_spec("r7"), type(twin)(rack=RackId("r8"), nodes=twin.nodes))))
    said = at.run()
    assert codes(said) == ["not-possible"]
    assert "r7" not in at.fleet.rack_numbers


def test_a_wish_about_the_cell_keeps_its_place(at: Desk) -> None:
    at.submit("a", nodes=1)
    at.wish(SetPolicy(policy=Policy(slice_nodes=8)))
    at.submit("b", nodes=20)
    assert at.types() == [
        "job.queued",
        "policy.set",
        "job.placed",
        "job.queued",
        "job.placed",
    ]
    assert [part.size for part in at.cell.job("b").slices] == [8, 8, 4]


def test_swap_drains_the_node_of_the_rank(at: Desk) -> None:
    at.started("a", nodes=4)
    at.wish(Swap(job=JobId("a"), rank=2, why="slow"), owner="bob")
    (offer,) = at.offers()
    (cordon,) = offer.entries
    assert isinstance(cordon, NodeCordoned)
    assert (cordon.node, cordon.drain, cordon.by, cordon.wish) == ("r0-n02", True, "bob", None)
    assert (cordon.because, cordon.job) == ("swap", "a")
    assert offer.wishes_to == 2
    at.commit([offer])
    assert at.run() == []
    assert [wound.rank for wound in at.cell.job("a").wounds] == [2]


def test_swap_that_cannot_be(at: Desk) -> None:
    at.started("a", nodes=2)
    at.started("g", gpus=1)
    at.started("i", nodes=1, job_class=JobClass.INTERACTIVE)
    at.submit("q", nodes=32, slice_nodes=16)
    at.run()
    for job, rank in (("z", 0), ("q", 0), ("a", 2), ("g", 0), ("i", 0)):
        at.wish(Swap(job=JobId(job), rank=rank))
    assert codes(at.run()) == [
        "unknown-job",
        "swap.not-running",
        "swap.no-such-rank",
        "swap.part-of-node",
        "swap.not-restartable",
    ]


def test_a_restarted_placer_answers_what_is_not_answered(at: Desk) -> None:
    at.submit("a", nodes=1)
    at.run()
    at.submit("b", nodes=1)
    waiting = dict(at.state.wishes)
    again = desk(at.cell)
    again.seq = at.seq
    for event in waiting.values():
        again.give(event)
    assert again.types() == ["job.queued", "job.placed"]


def test_sixty_four_at_a_time(at: Desk) -> None:
    for turn in range(70):
        at.submit(f"j{turn}", gpus=1)
    sizes = [len(offer.entries) for offer in at.offers()]
    assert sizes == [64]
    at.run()
    assert len(at.fleet.jobs) == 70


def test_a_refused_answer_is_offered_again_if_it_still_holds(at: Desk) -> None:
    at.submit("a", nodes=1)
    (offer,) = at.offers()
    assert at.refuse(offer) == [offer]
    at.other(*offer.entries)
    assert at.refuse(offer) == []
    assert isinstance(offer, Offer)


def room(at: Desk, used: float) -> None:
    at.give(Room(**at.times, used=used, refuse_at=0.8))


def test_submits_stop_before_the_ledger_is_full_and_cancels_do_not(at: Desk) -> None:
    room(at, 0.79)
    at.submit("a", nodes=1)
    at.run()
    room(at, 0.8)
    at.submit("b", nodes=1)
    at.wish(Cancel(job=JobId("a")))
    assert codes(at.run()) == ["ledger-full"]
    assert JobId("a") in at.fleet.tombstones
    room(at, 0.5)
    at.submit("c", nodes=1)
    at.run()
    assert JobId("c") in at.fleet.jobs


def test_wishes_that_both_services_have_answered_are_dropped_once_a_minute(at: Desk) -> None:
    at.submit("a", nodes=1)
    at.run()
    assert not [one for one in at.turn() if isinstance(one, TrimWishes)]
    at.cell.add(LedgerTicked(), source="health-monitor/0", wishes_to=1)
    at.mono += 61.0
    assert [one for one in at.turn() if isinstance(one, TrimWishes)] == [TrimWishes(to=1)]
    at.mono += 61.0
    assert not [one for one in at.turn() if isinstance(one, TrimWishes)]


def test_settings_that_promise_more_than_the_cell_are_refused(at: Desk) -> None:
    at.wish(SetPolicy(policy=Policy(queue_gpus={QueueName("q"): 10_000})), owner="op")
    (said,) = at.run()
    assert isinstance(said, WishRefused)
    assert said.reason.numbers["field"] == "queue_gpus.q"


def test_an_answer_that_is_offered_asks_for_no_turn_before_it_is_settled(at: Desk) -> None:
    at.submit("a", nodes=1)
    effects = at.turn()
    assert any(isinstance(effect, Offer) for effect in effects)
    wakes = [effect.mono for effect in effects if isinstance(effect, WakeAt)]
    assert all(mono > at.mono for mono in wakes), "a copy with patience would spin"


def test_an_operator_pins_a_job_and_lets_it_go(at: Desk) -> None:
    at.started("a", nodes=2)
    at.wish(Pin(job=JobId("a"), why="busy"), owner="op")
    at.run()
    assert (at.cell.job("a").pinned_by, at.cell.job("a").pinned) == ("op", True)
    assert at.cell.rack("r0").shape.pinned == 2
    assert evictable(at.fleet, JobId("a")) == "job a is pinned by op"
    at.wish(Pin(job=JobId("a")), owner="op")
    assert codes(at.run()) == ["not-possible"]
    at.wish(Unpin(job=JobId("a")), owner="op")
    at.run()
    assert (at.cell.job("a").pinned, at.cell.rack("r0").shape.pinned) == (False, 0)


def test_work_on_lent_spares_cannot_be_pinned(at: Desk) -> None:
    at.cell.sit("big", "r0", range(16))
    at.cell.sit("small", "r0", [16], lent=True)
    at.folded()
    at.wish(Pin(job=JobId("small")), owner="op")
    at.wish(Pin(job=JobId("nobody")), owner="op")
    assert codes(at.run()) == ["not-possible", "not-possible"]


def test_a_plan_is_approved_for_a_while(at: Desk) -> None:
    at.submit("a", nodes=1)
    at.other(AutomationPaused(automation=Automation.PLACEMENT, until=2e6, by=Owner("op")))
    at.run()
    at.wish(Approve(job=JobId("a"), for_s=60.0), owner="op")
    at.run()
    assert at.cell.job("a").approved_until == at.fleet.time + 60.0


def test_where_operators_are_listed_others_act_on_their_own_jobs_only(at: Desk) -> None:
    at.other(PolicySet(policy=Policy(operators=(Owner("op"),)), by=Owner("op")))
    at.submit("hers", nodes=1)
    at.submit("his", nodes=1, owner="bob")
    at.run()
    at.wish(Cancel(job=JobId("his")), owner="ann")
    at.wish(Pause(automation=Automation.SWAP, for_s=60.0), owner="ann")
    at.wish(Pin(job=JobId("hers")), owner="ann")
    said = at.run()
    assert codes(said) == ["not-yours", "operators-only", "operators-only"]
    at.wish(Cancel(job=JobId("hers")), owner="ann")
    at.wish(Cancel(job=JobId("his")), owner="op")
    assert [one.TYPE for one in at.run()] == ["job.cancelled", "job.cancelled"]


def test_nobody_locks_themselves_out(at: Desk) -> None:
    at.wish(SetPolicy(policy=Policy(operators=(Owner("bob"),))), owner="op")
    assert codes(at.run()) == ["locks-out"]
    at.wish(SetPolicy(policy=Policy(operators=(Owner("bob"), Owner("op")))), owner="op")
    assert at.types() == ["policy.set"]
