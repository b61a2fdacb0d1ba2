"""Recovery inside the rack: restart in place, free spares, lent spares, tenants."""

from rackwright.core.fold import apply
from rackwright.wire.entries.slice import SliceMoved, SliceRestarted
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import Checkpoint
from rackwright.wire.nodes import Fitness
from rackwright.wire.reasons import Rung
from tests.support.fleets import cell, hardware
from tests.support.recovery import (
    cordon,
    crash,
    decided,
    drain,
    rungs,
    swap,
)

# Rung 0


def test_crash_restarts_in_place_and_is_charged() -> None:
    made = cell()
    made.sit("a", "r0", range(16), retry_budget=2)
    crash(made, "a", 3, 5)
    (entry,) = decided(made)
    assert isinstance(entry, SliceRestarted)
    assert (entry.ranks, entry.charge, entry.membership) == ((3, 5), True, 2)
    assert rungs(entry) == [(Rung.RESTART, True, "process")]
    assert entry.rungs[0].price_gpu_h == round(64 * 30 / 3600, 3)


def test_lost_session_restarts_free_of_charge() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    made.join("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, SliceRestarted)
    assert (entry.ranks, entry.charge) == ((3,), False)


def test_budget_used_up_is_left_to_the_placer() -> None:
    made = cell()
    made.sit("a", "r0", range(16), retry_budget=0)
    crash(made, "a", 3)
    assert decided(made) == []


def test_one_crash_in_two_slices_is_one_try() -> None:
    made = cell(3)
    made.spread("a", [("r0", range(16)), ("r1", range(16))], retry_budget=1)
    crash(made, "a", 3, 20)
    first, second = decided(made)
    assert isinstance(first, SliceRestarted)
    assert isinstance(second, SliceRestarted)
    assert (first.index, first.membership, first.charge) == (0, 2, True)
    assert (second.index, second.membership, second.charge) == (1, 3, False)


def test_late_start_takes_another_node_and_is_waited_for() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    crash(made, "a", 3, code=None, why="start-timeout")
    old = made.job("a").worker(3)
    (entry,) = decided(made)
    assert swap(entry) == [(3, 3, 16)]
    after = apply(made.fleet, entry).jobs[JobId("a")]
    assert after.slices[0].gates_of(3) == (old,)


def test_hang_restarts_in_place_once_the_old_process_has_ended() -> None:
    made = cell()
    made.sit("a", "r0", range(16), retry_budget=1)
    old = made.job("a").worker(3)
    crash(made, "a", 3, code=None, why="progress-timeout")
    (entry,) = decided(made)
    assert isinstance(entry, SliceRestarted)
    assert apply(made.fleet, entry).jobs[JobId("a")].slices[0].gates_of(3) == (old,)


def test_cordon_lets_a_crashed_rank_start_again_where_it_was() -> None:
    made = cell()
    made.sit("a", "r0", range(16), retry_budget=1)
    cordon(made, "r0-n03")
    crash(made, "a", 3)
    (entry,) = decided(made)
    assert isinstance(entry, SliceRestarted)


def test_crash_on_a_suspected_node_waits_for_the_verdict() -> None:
    made = cell()
    made.sit("a", "r0", range(16), retry_budget=1)
    made.suspect("r0-n03")
    crash(made, "a", 3)
    assert decided(made) == []
    made.clear("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, SliceRestarted)


def test_node_back_before_anything_was_done_restarts_in_place() -> None:
    made = cell()
    made.sit("a", "r0", range(18))
    made.fail("r0-n03", code="silence")
    made.join("r0-n03")
    made.recover("r0-n03", probation_s=60)
    (entry,) = decided(made)
    assert isinstance(entry, SliceRestarted)
    assert entry.ranks == (3,)


def test_crash_and_bad_node_in_one_slice_are_two_entries() -> None:
    made = cell()
    made.sit("a", "r0", range(16), retry_budget=1)
    made.unfit("r0-n04")
    crash(made, "a", 3)
    swapped, restarted = decided(made)
    assert swap(swapped) == [(4, 4, 16)]
    assert isinstance(restarted, SliceRestarted)
    assert (restarted.ranks, restarted.membership) == ((3,), 3)
    assert rungs(swapped) == [(Rung.RESTART, False, "node"), (Rung.SPARE, True, "spare")]
    assert rungs(restarted) == [(Rung.RESTART, True, "process")]


# Rung 1


def test_several_failures_of_a_slice_are_one_swap() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    made.unfit("r0-n07", code="xid.48")
    (entry,) = decided(made)
    assert swap(entry) == [(3, 3, 16), (7, 7, 17)]
    assert entry.rungs[-1].reason.numbers == {"free": 2, "needed": 2}


def test_survivors_keep_their_worker_ids_and_their_budget() -> None:
    made = cell()
    before = made.sit("a", "r0", range(16), retry_budget=3)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    after = apply(made.fleet, entry).jobs[JobId("a")]
    kept = [rank for rank in range(16) if rank != 3]
    assert [after.worker(rank) for rank in kept] == [before.worker(rank) for rank in kept]
    assert after.worker(3) == "a/3/2"
    assert after.retries == 0


def test_failures_in_two_slices_are_two_swaps() -> None:
    made = cell(3)
    made.spread("a", [("r0", range(16)), ("r1", range(16))])
    made.unfit("r0-n03")
    made.unfit("r1-n01")
    first, second = decided(made)
    assert (swap(first), swap(second)) == ([(3, 3, 16)], [(17, 1, 16)])


def test_probation_is_the_last_choice() -> None:
    made = cell()
    made.sit("a", "r0", range(15))
    made.fail("r0-n15", code="silence")
    made.join("r0-n15")
    made.recover("r0-n15", probation_s=3600)
    made.unfit("r0-n03")
    made.unfit("r0-n04")
    made.unfit("r0-n05")
    (entry,) = decided(made)
    assert swap(entry) == [(3, 3, 16), (4, 4, 17), (5, 5, 15)]


def test_probation_for_the_same_signal_is_no_spare() -> None:
    made = cell(1)
    made.sit("a", "r0", range(17))
    made.unfit("r0-n17", code="xid.79")
    made.recover("r0-n17", probation_s=3600)
    made.unfit("r0-n03", code="xid.79")
    (entry,) = decided(made)
    assert (Rung.SPARE, False, "spares.none") in rungs(entry)


def test_node_it_was_driven_from_does_not_come_back() -> None:
    made = cell(1)
    made.sit("a", "r0", range(16))
    crash(made, "a", 3, code=None, why="start-timeout")
    made.add(*decided(made))
    assert made.job("a").slices[0].nodes[3] == 16
    made.unfit("r0-n05")
    (entry,) = decided(made)
    assert swap(entry) == [(5, 5, 17)]


def test_suspected_and_cordoned_nodes_are_no_spares() -> None:
    made = cell(1)
    made.sit("a", "r0", range(14))
    made.suspect("r0-n14")
    cordon(made, "r0-n15")
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert swap(entry) == [(3, 3, 16)]


def test_spare_must_be_alike() -> None:
    made = cell(1)
    made.join("r0-n16", hardware("r0-n16", driver="other"))
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert swap(entry) == [(3, 3, 17)]


def test_node_fit_for_its_rack_only_is_a_spare_for_one_slice() -> None:
    made = cell(3)
    made.unfit("r0-n16", Fitness.RACK, code="ib-down")
    made.unfit("r0-n17", code="xid.48")
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    assert swap(decided(made)[0]) == [(3, 3, 16)]
    made = cell(3)
    made.unfit("r0-n16", Fitness.RACK, code="ib-down")
    made.spread("a", [("r0", range(16)), ("r1", range(16))])
    made.unfit("r0-n03")
    assert swap(decided(made)[0]) == [(3, 3, 17)]


def test_excluded_nodes_are_no_spares() -> None:
    made = cell(1)
    made.sit("a", "r0", range(16), exclude_nodes=("r0-n16",))
    made.unfit("r0-n03")
    assert swap(decided(made)[0]) == [(3, 3, 17)]


def test_one_node_of_its_own_leaves_its_neighbours_their_spares() -> None:
    made = cell(1)
    made.sit("a", "r0", range(15))
    made.sit("b", "r0", [15])
    made.unfit("r0-n15")
    (entry,) = decided(made, "b")
    assert isinstance(entry, SliceMoved)
    assert entry.lent
    assert rungs(entry)[1] == (Rung.SPARE, False, "spares.none")


# Drain


def test_drain_is_a_planned_swap() -> None:
    made = cell()
    made.sit("a", "r0", range(16), checkpoint=Checkpoint(on_notice_s=20.0), grace_s=7.0)
    drain(made, "r0-n03")
    (entry,) = decided(made)
    assert swap(entry) == [(3, 3, 16)]
    leaving = apply(made.fleet, entry).racks[0].leaving
    assert [(one.worker, one.notice_s, one.grace_s) for one in leaving] == [("a/3/1", 20.0, 7.0)]


def test_drain_waits_when_there_is_no_better_place() -> None:
    made = cell(1)
    made.sit("a", "r0", range(18))
    drain(made, "r0-n03")
    assert decided(made) == []


def test_bad_node_goes_before_a_drained_one() -> None:
    made = cell(1)
    made.sit("a", "r0", range(17))
    drain(made, "r0-n03")
    made.unfit("r0-n05")
    (entry,) = decided(made)
    assert swap(entry) == [(5, 5, 17)]


def test_drained_nodes_follow_as_far_as_spares_go() -> None:
    made = cell(1)
    made.sit("a", "r0", range(16))
    drain(made, "r0-n03")
    drain(made, "r0-n04")
    made.unfit("r0-n05")
    (entry,) = decided(made)
    assert swap(entry) == [(5, 5, 16), (3, 3, 17)]


def test_drain_moves_the_slice_when_its_rack_has_no_spare() -> None:
    made = cell(2)
    made.sit("a", "r0", range(17), checkpoint=Checkpoint(on_notice_s=20.0))
    made.unfit("r0-n17")
    drain(made, "r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, SliceMoved)
    leaving = apply(made.fleet, entry).racks[0].leaving
    assert {one.notice_s for one in leaving} == {20.0}
