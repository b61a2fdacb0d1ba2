"""What an append's answer means, given how far the ledger is folded."""

from __future__ import annotations

import asyncio

import pytest

from rackwright.bus.ports import (
    NO_HEADERS,
    Appended,
    Cause,
    Ends,
    Feed,
    Headers,
    Outcome,
    Refused,
    Stored,
    Unsettled,
    Usage,
)
from rackwright.core.fleet import Fleet
from rackwright.core.fold import fold
from rackwright.core.machine import Offer
from rackwright.host.commits import MAX_DATA, Author, Sealed
from rackwright.host.flight import Flight, Lost, Won, legal_part
from rackwright.host.offers import Offers
from rackwright.wire.codec import Unreadable, decode_commit
from rackwright.wire.entries.cell import LedgerCreated, LedgerTicked, WishRefused
from rackwright.wire.ids import CellName, LedgerId, MessageId, Owner
from rackwright.wire.message import Entry
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from rackwright.wire.versions import FOLD_VERSION

AUTHOR = Author(CellName("lab"), "placer", 0, token="t")
UNSETTLED = Unsettled(reason=Cause.NO_ANSWER, detail="")


def created() -> Fleet:
    entry = LedgerCreated(ledger=LedgerId("one"), fold_version=FOLD_VERSION, policy=Policy())
    commit = AUTHOR.commit(Fleet(ledger=LedgerId("one")), Offer(entries=(entry,)), 0.0)
    return fold(Fleet(), 1, 1000.0, commit).fleet


def no(wish: int, subject: str = "") -> WishRefused:
    return WishRefused(
        kind="wish.cancel", owner=Owner("ann"), subject=subject, reason=Reason(code="no"), wish=wish
    )


def flight(*entries: Entry, compare: bool = True) -> Flight:
    offer = Offer(entries=entries, compare=compare)
    return Flight(sealed=AUTHOR.seal(created(), offer, 0.0), sent_mono=7.0)


@pytest.mark.parametrize(
    ("outcome", "folded", "known"),
    [
        (Appended(seq=2), 1, False),
        (Refused(last_seq=4), 3, False),
        (Refused(last_seq=4), 4, True),
        (UNSETTLED, 1, False),
        (UNSETTLED, 2, True),
        (None, 9, False),
    ],
)
def test_an_append_is_lost_only_when_its_place_is_folded(
    outcome: Outcome | None, folded: int, known: bool
) -> None:
    one = flight(no(1))
    one.outcome = outcome
    assert one.settled(folded) == (Lost(offer=one.sealed.offer) if known else None)


@pytest.mark.parametrize("outcome", [Appended(seq=2), Refused(last_seq=2), UNSETTLED])
def test_what_the_fold_met_is_in_whatever_was_answered(outcome: Outcome) -> None:
    one = flight(no(1))
    one.outcome, one.found = outcome, 2
    assert one.settled(2) == Won(sealed=one.sealed, seq=2, sent_mono=7.0)


def test_an_observation_without_an_answer_is_never_given_up() -> None:
    one = flight(LedgerTicked(), compare=False)
    one.outcome = UNSETTLED
    assert one.settled(1000) is None


def test_a_commit_names_its_predecessor_unless_it_observes() -> None:
    fleet = created()
    decision = AUTHOR.seal(fleet, Offer(entries=(no(1),)), 0.0)
    observation = AUTHOR.seal(fleet, Offer(entries=(LedgerTicked(),), compare=False), 0.0)
    assert (decision.commit.prev, decision.expected) == (fleet.last_id, 1)
    assert (observation.commit.prev, observation.expected) == (None, None)
    assert decision.commit.id != observation.commit.id
    assert decision.commit.ledger == "one"
    assert decode_commit("wish.refused", decision.data) == decision.commit


def test_entries_that_have_no_room_are_left_for_the_next_commit() -> None:
    entries = tuple(no(wish, "x" * 5000) for wish in range(1, 61))
    fleet = created()
    left: Offer | None = Offer(entries=entries, wishes_to=60)
    sent: list[Entry] = []
    promises = []
    while left is not None:
        sealed = AUTHOR.seal(fleet, left, 0.0)
        assert len(sealed.data) <= MAX_DATA
        sent += sealed.commit.entries
        promises.append(sealed.commit.wishes_to)
        left = sealed.rest
    assert tuple(sent) == entries
    assert promises == [None] * (len(promises) - 1) + [60]
    assert len(promises) > 2


def test_an_entry_that_is_too_large_alone_is_refused_here() -> None:
    with pytest.raises(Unreadable, match="at most"):
        AUTHOR.seal(created(), Offer(entries=(no(1, "x" * MAX_DATA),)), 0.0)


def test_only_what_the_fold_would_take_is_offered() -> None:
    fleet = created()
    legal, lost = legal_part(AUTHOR, fleet, Offer(entries=(no(1), no(2)), wishes_to=2), 1000.0)
    assert (legal, lost) == (Offer(entries=(no(1), no(2)), wishes_to=2), [])
    legal, lost = legal_part(
        AUTHOR, fleet, Offer(entries=(no(1), no(1), no(2)), wishes_to=2), 1000.0
    )
    assert legal == Offer(entries=(no(1), no(2)))
    assert lost == [Lost(offer=Offer(entries=(no(1),)), why="wish 1 has been answered")]


class Refusing:
    """A ledger in which somebody else is always first."""

    async def append(
        self, subject: str, data: bytes, *, expected: int | None, headers: Headers = NO_HEADERS
    ) -> Outcome:
        return Refused(last_seq=2)

    async def ends(self) -> Ends:
        raise NotImplementedError

    async def usage(self) -> Usage:
        raise NotImplementedError

    def follow(self, start: int) -> Feed[Stored]:
        raise NotImplementedError

    async def purge_to(self, seq: int) -> None:
        raise NotImplementedError


class Unwatched:
    def sending(self, sealed: Sealed) -> Headers:
        return NO_HEADERS

    def unsettled(self, why: str, sendings: int) -> None:
        raise AssertionError(why)


async def test_with_a_refused_offer_all_that_was_decided_after_it_goes_back_in_order() -> None:
    answered = asyncio.Event()
    offers = Offers(ledger=Refusing(), author=AUTHOR, watcher=Unwatched(), changed=answered.set)
    first, second, third = (Offer(entries=(no(wish),)) for wish in (1, 2, 3))
    tick = Offer(entries=(LedgerTicked(),), compare=False)
    offers.take([first, second, tick, third])
    assert offers.advance(created(), now=1000.0, mono=0.0) == []
    await answered.wait()
    offers.folded(2, MessageId("foreign"), "health-monitor/0")
    assert offers.settle(2) == Lost(offer=first)
    assert offers.stale() == [Lost(offer=second), Lost(offer=third)]
    assert offers.stale() == []
    assert not offers.idle  # the observation waits for nobody
    await offers.aclose()
