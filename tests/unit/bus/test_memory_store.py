"""The store that a simulator drives: no asyncio, its clock is the caller's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rackwright.bus.errors import BusFull, StreamMissing
from rackwright.bus.memory_store import MemoryStore
from rackwright.bus.ports import Appended, Ends, Message, Refused
from rackwright.bus.streams import KIB, MARKER_TTL_S, Kind, Limits, declare


class World:
    """A store and its clock."""

    def __init__(self) -> None:
        self.now = 100.0
        limits = Limits(signal_age_s=60.0, signal_per_node=3, wish_bytes=8 * KIB)
        self.store = MemoryStore(declare("lab", limits=limits), lambda: self.now)

    def signal(self, node: str, data: bytes) -> None:
        self.store.append(Kind.SIGNAL, f"rackwright.lab.signal.00.r1.{node}", data)

    def kept(self, kind: Kind) -> list[bytes]:
        return [stored.data for stored in self.store.after(kind, 0)]


def test_sequences_times_and_compare() -> None:
    world = World()
    subject = "rackwright.lab.ledger.job.placed"
    outcomes = [world.store.append(Kind.LEDGER, subject, b"a", expected=0)]
    world.now = 101.5
    outcomes.append(world.store.append(Kind.LEDGER, subject, b"b", expected=0))
    outcomes.append(world.store.append(Kind.LEDGER, subject, b"c", expected=1))
    assert outcomes == [Appended(seq=1), Refused(last_seq=1), Appended(seq=2)]
    assert [(s.seq, s.at) for s in world.store.after(Kind.LEDGER, 0)] == [(1, 100.0), (2, 101.5)]
    assert [s.data for s in world.store.after(Kind.LEDGER, 1)] == [b"c"]


def test_old_signals_go_by_age_and_by_number() -> None:
    world = World()
    for n in range(5):
        world.signal("n1", b"%d" % n)
    world.now = 130.0
    world.signal("n2", b"other")
    assert world.kept(Kind.SIGNAL) == [b"2", b"3", b"4", b"other"]
    world.now = 160.0
    assert world.kept(Kind.SIGNAL) == [b"other"]
    assert world.store.ends(Kind.SIGNAL) == Ends(first=6, last=6)
    world.now = 190.0
    assert world.store.ends(Kind.SIGNAL) == Ends(first=7, last=6)


def test_a_deletion_is_remembered_for_a_while() -> None:
    world = World()
    subject = "$KV.rackwright_lab_jobs.j1"
    gone = {"KV-Operation": "DEL"}
    world.store.append(Kind.JOBS, subject, b"", gone, ttl_s=MARKER_TTL_S)
    assert world.store.last_on(Kind.JOBS, subject) is not None
    world.now += MARKER_TTL_S
    assert world.store.last_on(Kind.JOBS, subject) is None
    again = world.store.append(Kind.JOBS, subject, b"a", expected_on_subject=0)
    assert again == Appended(seq=2)


def test_full_and_purged() -> None:
    world = World()
    subject = "rackwright.lab.wish.ann.submit"
    for _ in range(7):
        world.store.append(Kind.WISH, subject, b"x" * KIB)
    with pytest.raises(BusFull):
        world.store.append(Kind.WISH, subject, b"x" * KIB)
    assert world.store.usage(Kind.WISH).messages == 7
    assert world.store.purge(Kind.WISH, below=6) == 5
    assert world.store.ends(Kind.WISH) == Ends(first=6, last=7)
    assert world.store.append(Kind.WISH, subject, b"x" * KIB) == Appended(seq=8)
    assert world.store.purge(Kind.WISH) == 3
    assert world.store.usage(Kind.WISH).bytes == 0


def test_purging_many_costs_no_walk_for_each() -> None:
    world = World()
    for n in range(50_000):
        world.store.append(Kind.LEDGER, "rackwright.lab.ledger.job.placed", b"%d" % n)
    assert world.store.purge(Kind.LEDGER, below=49_999) == 49_998
    assert world.store.ends(Kind.LEDGER) == Ends(first=49_999, last=50_000)


def test_a_stream_dropped_and_made_anew_is_another_one() -> None:
    world = World()
    world.signal("n1", b"old")
    created = world.store.stream(Kind.SIGNAL).created
    world.store.drop(Kind.SIGNAL)
    with pytest.raises(StreamMissing):
        world.store.ends(Kind.SIGNAL)
    world.store.make(Kind.SIGNAL)
    assert world.store.stream(Kind.SIGNAL).created != created
    assert world.store.ends(Kind.SIGNAL) == Ends(first=1, last=0)


def test_listeners_are_called_after_each_change_until_they_leave() -> None:
    world = World()
    calls: list[int] = []
    world.store.listen(Kind.SIGNAL, "me", lambda: calls.append(world.store.ends(Kind.SIGNAL).last))
    world.signal("n1", b"a")
    world.signal("n1", b"b")
    world.store.unlisten(Kind.SIGNAL, "me")
    world.signal("n1", b"c")
    assert calls == [1, 2]


def test_a_queue_group_shares_messages_and_others_hear_all() -> None:
    world = World()
    heard: dict[str, list[bytes]] = {"one": [], "two": [], "all": []}

    def hearer(name: str) -> Callable[[Message], None]:
        return lambda message: heard[name].append(message.data)

    for name, queue in (("one", "q"), ("two", "q"), ("all", None)):
        world.store.subscribe("rackwright.lab.query.>", name, hearer(name), queue)
    for n in range(4):
        world.store.say(
            Message(subject="rackwright.lab.query.x", reply=None, headers={}, data=b"%d" % n)
        )
    assert heard["all"] == [b"0", b"1", b"2", b"3"]
    assert sorted(heard["one"] + heard["two"]) == heard["all"]
    assert len(heard["one"]) == len(heard["two"]) == 2
