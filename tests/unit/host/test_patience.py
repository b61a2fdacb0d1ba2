"""Copies by patience: who acts, and when."""

from __future__ import annotations

from rackwright.core.machine import Offer
from rackwright.host.patience import Patience, Ripe, key_of
from rackwright.wire.entries.cell import WishRefused
from rackwright.wire.ids import Owner
from rackwright.wire.reasons import Reason


def no(wish: int) -> WishRefused:
    return WishRefused(
        kind="wish.cancel", owner=Owner("ann"), subject="", reason=Reason(code="no"), wish=wish
    )


def offer(*wishes: int, wishes_to: int | None = None) -> Offer:
    return Offer(entries=tuple(no(wish) for wish in wishes), wishes_to=wishes_to)


def copy(ordinal: int) -> Patience:
    return Patience(service="placer", ordinal=ordinal, step=0.25)


def test_the_first_copy_never_waits() -> None:
    assert copy(0).sift([offer(1, 2)], 10.0) == Ripe(offers=(offer(1, 2),))


def test_a_later_copy_waits_its_time_for_each_work() -> None:
    second = copy(2)
    assert second.sift([offer(1)], 10.0) == Ripe(offers=(), again=10.5)
    assert second.sift([offer(1)], 10.4) == Ripe(offers=(), again=10.5)
    assert second.sift([offer(1)], 10.5) == Ripe(offers=(offer(1),))
    assert second.betters_silent


def test_what_is_held_back_takes_the_promise_about_wishes_with_it() -> None:
    first = copy(1)
    first.sift([offer(1, wishes_to=1)], 10.0)
    ripe = first.sift([offer(1, 2, wishes_to=2)], 10.25)
    assert ripe == Ripe(offers=(offer(1),), again=10.25)


def test_while_the_betters_are_silent_there_is_no_patience() -> None:
    first = copy(1)
    first.sift([offer(1)], 10.0)
    first.sift([offer(1)], 10.25)
    assert first.sift([offer(2)], 10.3) == Ripe(offers=(offer(2),))


def test_a_betters_entry_restores_patience() -> None:
    first = copy(1)
    first.betters_silent = True
    for source in ("placer/1", "placer/2", "other/0", "placer/x"):
        first.heard(source)
        assert first.betters_silent
    first.heard("placer/0")
    assert not first.betters_silent
    assert first.sift([offer(2)], 10.0) == Ripe(offers=(), again=10.25)


def test_work_that_was_answered_is_forgotten() -> None:
    first = copy(1)
    first.sift([offer(1)], 10.0)
    first.sift([], 10.1)
    assert first.sift([offer(1)], 10.3) == Ripe(offers=(), again=10.55)


def test_the_same_work_decided_otherwise_is_the_same_work() -> None:
    other = WishRefused(
        kind="wish.cancel", owner=Owner("ann"), subject="j", reason=Reason(code="never"), wish=1
    )
    assert key_of(no(1)) == key_of(other)
    assert key_of(no(1)) != key_of(no(2))


def test_the_moment_it_asks_to_be_woken_at_is_ripe_whatever_the_rounding() -> None:
    third, began = copy(3), 1023.4792209900858  # began + 0.75 - 0.75 is less than began
    ripe = third.sift([offer(1)], began)
    assert ripe.again is not None
    assert third.sift([offer(1)], ripe.again) == Ripe(offers=(offer(1),))
