"""What a service makes of a stored wish: an event, a refusal to read it, or nothing of its own."""

from __future__ import annotations

import pytest

from rackwright.bus.ports import NO_HEADERS, Stored
from rackwright.core.machine import Wished, WishSkipped
from rackwright.host.reading import Arrival, Read, SetAside, read_wish, wishes_of_others
from rackwright.wire.catalog import ANSWERS
from rackwright.wire.codec import to_json
from rackwright.wire.ids import CellName, NodeId, Owner
from rackwright.wire.subjects import Subjects
from rackwright.wire.wishes import Cordon, Submit

CELL = CellName("main")
LOUD = Cordon(node=NodeId("r01-n01"), why="loud fan")
CORDON = to_json(LOUD)


def read(service: str, type_name: str, data: bytes) -> Read:
    subject = Subjects(CELL).wish(Owner("ann"), type_name)
    stored = Stored(seq=7, at=1.0, subject=subject, data=data, headers=NO_HEADERS)
    return read_wish(CELL, stored, 5.0, wishes_of_others(service))


def event(read_: Read) -> object:
    assert isinstance(read_, Arrival)
    return read_.happens(now=1.0, mono=1.0)


def test_a_wish_is_decoded_by_the_service_that_answers_it() -> None:
    told = event(read("health-monitor", Cordon.TYPE, CORDON))
    assert isinstance(told, Wished)
    assert (told.seq, told.owner, told.wish) == (7, "ann", LOUD)
    assert event(read("placer", Cordon.TYPE, CORDON)) == WishSkipped(now=1.0, mono=1.0, seq=7)


def test_a_wish_that_cannot_be_read_is_set_aside_by_the_service_that_would_answer_it() -> None:
    aside = read("placer", Submit.TYPE, b"{")
    assert isinstance(aside, SetAside)
    assert aside.instead is not None
    assert event(aside.instead) == WishSkipped(now=1.0, mono=1.0, seq=7)
    assert event(read("health-monitor", Submit.TYPE, b"{")) == WishSkipped(now=1.0, mono=1.0, seq=7)


def test_a_wish_of_no_known_type_is_set_aside_by_whoever_reads_it() -> None:
    for service in ("placer", "health-monitor"):
        assert isinstance(read(service, "wish.sing", b"{}"), SetAside)


def test_every_wish_is_decoded_by_exactly_one_service() -> None:
    theirs = [wishes_of_others(service) for service in set(ANSWERS.values())]
    for name in ANSWERS:
        assert [name in others for others in theirs].count(False) == 1
    assert wishes_of_others("somebody-else") == frozenset(), "who answers nothing reads everything"


@pytest.mark.parametrize(("now", "at"), [(50.0, 50.0), (150.0, 100.0)])
def test_nothing_was_stored_later_than_now(now: float, at: float) -> None:
    subject = Subjects(CELL).wish(Owner("ann"), "wish.cordon")
    stored = Stored(seq=7, at=100.0, subject=subject, data=CORDON, headers=NO_HEADERS)
    arrival = read_wish(CELL, stored, 5.0)
    assert isinstance(arrival, Arrival)
    wished = arrival.happens(now=now, mono=1.0)
    assert isinstance(wished, Wished)
    assert wished.at == at
