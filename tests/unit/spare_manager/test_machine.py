"""The spare-manager as a list of effects: what it offers, when it waits, what it offers again."""

from typing import Any

from rackwright.core.fold import apply
from rackwright.core.machine import Effect, Event, Folded, Note, Offer, Refused, Turn, WakeAt
from rackwright.spare_manager.machine import LOOK_AGAIN_S, SpareManager, State
from rackwright.wire.entries.cell import AutomationPaused, AutomationResumed
from rackwright.wire.entries.job import JobRequeued, JobSuspended
from rackwright.wire.entries.slice import SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.ids import MessageId, Owner
from rackwright.wire.policy import Automation
from tests.support.fleets import Cell, cell
from tests.support.recovery import crash, drain, swap

MACHINE = SpareManager()


def turn(made: Cell, state: State | None = None, mono: float = 10.0) -> tuple[State, list[Effect]]:
    """Its turn now."""
    event = Turn(now=made.fleet.time, mono=mono)
    return MACHINE.handle(state or MACHINE.start(0), made.fleet, event)


def offers(effects: list[Effect]) -> list[tuple[str, list[str]]]:
    """Type and jobs of each offer."""
    return [
        (one.entries[0].TYPE, [entry.job for entry in one.entries])  # type: ignore[attr-defined]
        for one in effects
        if isinstance(one, Offer)
    ]


def commit(made: Cell, effects: list[Effect]) -> None:
    """The ledger takes all that was offered."""
    for one in effects:
        if isinstance(one, Offer):
            made.add(*one.entries)


def refused(made: Cell, *entries: Any) -> list[Effect]:
    """Somebody else's commit came first."""
    event: Event = Refused(now=made.fleet.time, mono=10.0, offer=Offer(entries=entries))
    return MACHINE.handle(MACHINE.start(0), made.fleet, event)[1]


def only(effects: list[Effect]) -> Any:
    """The one entry that is offered."""
    ((entry,),) = [one.entries for one in effects if isinstance(one, Offer)]
    return entry


def test_nobody_wounded_nothing_to_do() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    assert turn(made) == (State(copy=0), [])


def test_wounded_jobs_of_one_type_share_a_commit_most_urgent_first() -> None:
    made = cell(4)
    made.sit("a", "r0", range(4))
    made.sit("b", "r1", range(16))
    made.sit("c", "r2", range(4), priority=60)
    for node in ("r0-n00", "r1-n00", "r2-n00"):
        made.unfit(node)
    _, effects = turn(made)
    assert offers(effects) == [("slice.swapped", ["c", "b", "a"])]
    commit(made, effects)
    assert turn(made) == (State(copy=0), [])


def test_two_replacements_of_one_turn_take_different_nodes() -> None:
    made = cell(1)
    made.sit("a", "r0", range(8))
    made.sit("b", "r0", range(8, 16))
    made.unfit("r0-n00")
    made.unfit("r0-n08")
    _, effects = turn(made)
    (offer,) = [one for one in effects if isinstance(one, Offer)]
    assert [swap(entry) for entry in offer.entries] == [[(0, 0, 16)], [(0, 8, 17)]]
    commit(made, effects)


def test_entries_of_different_types_are_offers_in_order() -> None:
    made = cell(3)
    made.spread("a", [("r0", range(16)), ("r1", range(18))], retry_budget=1)
    made.unfit("r0-n00")
    made.unfit("r1-n00")
    crash(made, "a", 5)
    _, effects = turn(made)
    assert offers(effects) == [
        ("slice.swapped", ["a"]),
        ("slice.restarted", ["a"]),
        ("slice.moved", ["a"]),
    ]
    commit(made, effects)
    assert made.job("a").membership == 4
    assert made.job("a").wounds == ()


def test_unrelated_entries_join_an_earlier_commit_of_their_type() -> None:
    made = cell(5)
    made.sit("a", "r0", range(16), priority=90, retry_budget=1)
    made.sit("b", "r1", range(18), priority=80)
    made.sit("c", "r2", range(16), priority=70)
    made.unfit("r0-n00")
    crash(made, "a", 3)
    made.unfit("r1-n00")
    made.unfit("r2-n00")
    _, effects = turn(made)
    assert offers(effects) == [
        ("slice.swapped", ["a", "c"]),
        ("slice.restarted", ["a"]),
        ("slice.moved", ["b"]),
    ]
    commit(made, effects)


def test_no_more_than_a_commit_a_turn() -> None:
    made = cell(70, sound=False)
    for number in range(70):
        made.sit(f"j{number:02d}", f"r{number}", range(2))
        made.unfit(f"r{number}-n00")
        made.wait(120)
    state, effects = turn(made)
    ((kind, jobs),) = offers(effects)
    assert (kind, len(jobs)) == ("slice.swapped", 64)
    commit(made, effects)
    _, effects = turn(made, state)
    assert len(offers(effects)[0][1]) == 6


def test_what_wounded_the_job_is_the_cause() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    state = MACHINE.start(0)
    event = Folded(
        now=made.fleet.time,
        mono=1.0,
        seq=made.fleet.seq,
        source="health-monitor/0",
        type="node.unfit",
        entries=made.last,
    )
    state, effects = MACHINE.handle(state, made.fleet, event)
    assert effects == []
    cause = made.fleet.last_id
    made.sit("b", "r1", range(2))
    state, effects = turn(made, state)
    assert only(effects).cause == cause
    commit(made, effects)
    state, _ = turn(made, state)
    assert state == State(copy=0)


def test_drain_without_a_place_is_looked_at_again_later() -> None:
    made = cell(1)
    made.sit("a", "r0", range(18))
    drain(made, "r0-n03")
    state, effects = turn(made, mono=10.0)
    assert effects == [WakeAt(mono=10.0 + LOOK_AGAIN_S)]
    state, effects = turn(made, state, mono=10.5)
    assert effects == [WakeAt(mono=10.0 + LOOK_AGAIN_S)]
    made.unfit("r0-n07")
    state, effects = turn(made, state, mono=10.6)
    assert isinstance(only(effects), JobRequeued)


def test_drain_finds_a_place_when_it_is_looked_at_again() -> None:
    made = cell(1)
    made.sit("a", "r0", range(17))
    made.sit("b", "r0", [17], preemptible=False)
    drain(made, "r0-n03")
    state, _ = turn(made, mono=10.0)
    made.finish("b")
    _, effects = turn(made, state, mono=10.5)
    assert offers(effects) == []
    _, effects = turn(made, state, mono=10.0 + LOOK_AGAIN_S)
    assert swap(only(effects)) == [(3, 3, 17)]


def test_job_evicted_for_a_more_urgent_one_is_not_healed() -> None:
    made = cell(1)
    made.sit("a", "r0", range(16), priority=90)
    made.sit("lent", "r0", [16, 17], lent=True)
    made.unfit("r0-n03")
    crash(made, "lent", 0, why="peer.lost")
    _, effects = turn(made)
    entry = only(effects)
    assert entry.evicted == ("lent",)
    commit(made, effects)


def test_suspect_job_is_suspended() -> None:
    made = cell(1)
    made.sit("a", "r0", range(10))
    for place in range(4):
        made.unfit(f"r0-n{place:02d}")
        effects = turn(made)[1]
        if place < 3:
            assert isinstance(only(effects), SliceSwapped)
            commit(made, effects)
            made.wait(30)
    assert isinstance(only(effects), JobSuspended)


# Pause and breaker


def paused(made: Cell) -> None:
    until = made.fleet.time + 600
    made.add(AutomationPaused(automation=Automation.SWAP, until=until, by=Owner("op")))


def test_pause_is_respected_told_once_and_ends() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    paused(made)
    made.unfit("r0-n03")
    until = made.fleet.paused[Automation.SWAP]
    state, effects = turn(made, mono=10.0)
    assert effects == [
        Note(level="warning", event="recovery.paused", fields={"until": until, "wounded": 1}),
        WakeAt(mono=10.0 + until - made.fleet.time),
    ]
    state, effects = turn(made, state, mono=11.0)
    assert [type(one) for one in effects] == [WakeAt]
    made.add(AutomationResumed(automation=Automation.SWAP, by=Owner("op")))
    state, effects = turn(made, state)
    assert isinstance(only(effects), SliceSwapped)
    assert state.told == ""


def test_pause_that_came_first_stops_a_refused_offer() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    entry = only(turn(made)[1])
    paused(made)
    assert refused(made, entry) == []


def test_open_breaker_is_told_once_and_waited_for() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16), retry_budget=1)
    for place in range(6):
        made.unfit(f"r1-n{place:02d}")
    made.unfit("r0-n03")
    crash(made, "a", 5)
    state, effects = turn(made, mono=10.0)
    note, wake, offer = effects
    assert note == Note(
        level="warning", event="recovery.breaker_open", fields={"culprits": 7, "limit": 6}
    )
    assert wake == WakeAt(mono=10.0 + 300 + 900)
    assert isinstance(offer, Offer)
    (restarted,) = offer.entries
    assert isinstance(restarted, SliceRestarted)
    commit(made, effects)
    state, effects = turn(made, state)
    assert [type(one) for one in effects] == [WakeAt]


# Refused


def test_swap_that_still_holds_is_offered_again() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    entry = only(turn(made)[1])
    made.sit("b", "r1", range(16))
    assert refused(made, entry) == [Offer(entries=(entry,))]


def test_swap_whose_spare_is_gone_is_decided_anew() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    entry = only(turn(made)[1])
    made.suspect("r0-n16")
    assert refused(made, entry) == []
    assert swap(only(turn(made)[1])) == [(3, 3, 17)]


def test_one_more_failure_in_the_slice_is_decided_anew() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    entry = only(turn(made)[1])
    made.unfit("r0-n04")
    assert refused(made, entry) == []
    assert swap(only(turn(made)[1])) == [(3, 3, 16), (4, 4, 17)]


def test_only_what_holds_of_a_group_is_offered_again() -> None:
    made = cell(3)
    made.sit("a", "r0", range(16))
    made.sit("b", "r1", range(16))
    made.unfit("r0-n03")
    made.unfit("r1-n03")
    (offer,) = [one for one in turn(made)[1] if isinstance(one, Offer)]
    first, second = offer.entries
    made.suspect("r0-n16")
    assert refused(made, first, second) == [Offer(entries=(second,))]


def test_job_that_ended_meanwhile_is_forgotten() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    entry = only(turn(made)[1])
    made.finish("a")
    assert refused(made, entry) == []
    assert turn(made)[1] == []


def test_move_holds_until_a_swap_is_possible_or_the_rack_is_taken() -> None:
    made = cell(3)
    made.sit("a", "r0", range(17))
    made.sit("b", "r0", [17], preemptible=False)
    made.unfit("r0-n03")
    entry = only(turn(made)[1])
    assert isinstance(entry, SliceMoved)
    assert refused(made, entry) == [Offer(entries=(entry,))]
    other = made.copy()
    other.sit("c", entry.rack, range(16))
    assert refused(other, entry) == []
    made.finish("b")
    assert refused(made, entry) == []
    assert swap(only(turn(made)[1])) == [(3, 3, 17)]


def test_restart_holds_while_its_ranks_are_the_same() -> None:
    made = cell()
    made.sit("a", "r0", range(16), retry_budget=1)
    crash(made, "a", 3)
    entry = only(turn(made)[1])
    assert refused(made, entry) == [Offer(entries=(entry,))]
    crash(made, "a", 4)
    assert refused(made, entry) == []
    assert only(turn(made)[1]).ranks == (3, 4)


def test_last_resorts_are_decided_anew() -> None:
    made = cell(1)
    made.sit("a", "r0", range(18))
    made.unfit("r0-n03")
    entry = only(turn(made)[1])
    assert isinstance(entry, JobRequeued)
    assert refused(made, entry) == []


def test_other_events_change_nothing() -> None:
    made = cell(1)
    state = MACHINE.start(2)
    void = Folded(
        now=1.0, mono=1.0, seq=9, source="x/0", type="node.unfit", entries=(), void=True, why="no"
    )
    assert MACHINE.handle(state, made.fleet, void) == (State(copy=2), [])
    assert MACHINE.handle(state, made.fleet, Event(now=1.0, mono=1.0)) == (State(copy=2), [])


def test_causes_of_healed_jobs_are_dropped() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    made.sit("b", "r1", range(16))
    made.unfit("r0-n03")
    state = State(copy=0, causes=State(copy=0).causes.set(made.job("b").id, MessageId("x")))
    state, effects = turn(made, state)
    assert list(state.causes) == []
    assert only(effects).cause is None
    assert not apply(made.fleet, only(effects)).wounded
