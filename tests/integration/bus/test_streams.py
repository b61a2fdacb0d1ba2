"""Wishes, signals, status, projections and snapshots: what each keeps and how it is followed."""

from __future__ import annotations

import asyncio

import pytest

from rackwright.bus.errors import BusAway, BusFull, LedgerGap, MessageTooLarge, StreamReplaced
from rackwright.bus.ports import (
    Appended,
    Bus,
    Cause,
    Change,
    Ends,
    Feed,
    Ready,
    Refused,
    Stored,
    Unsettled,
    Value,
)
from rackwright.bus.streams import KIB, Kind
from tests.integration.bus.harness import Harness

SUBMIT = "rackwright.lab.wish.ann.submit"


def signal(node: str, rack: str = "r1") -> str:
    return f"rackwright.lab.signal.00.{rack}.{node}"


def status(node: str, rack: str = "r1") -> str:
    return f"rackwright.lab.status.00.{rack}.{node}"


async def until_ready(feed: Feed[Stored | Ready]) -> list[tuple[str, bytes]]:
    """What comes before the marker, as (last token, data)."""
    seen: list[tuple[str, bytes]] = []
    async with asyncio.timeout(20):
        async for item in feed:
            if isinstance(item, Ready):
                return seen
            seen.append((item.subject.rsplit(".", 1)[1], item.data))
    raise AssertionError("the feed ended before it was ready")


async def next_stored(feed: Feed[Stored | Ready]) -> Stored:
    async with asyncio.timeout(20):
        item = await anext(feed)
    assert isinstance(item, Stored)
    return item


# Wishes


async def test_wishes_wait_for_their_reader(bus: Bus) -> None:
    for n in range(3):
        await bus.wishes.publish(SUBMIT, b"%d" % n, {"cause": "c"})
    async with bus.wishes.follow(2) as feed, asyncio.timeout(20):
        assert [(await anext(feed)).data for _ in range(2)] == [b"1", b"2"]
        await bus.wishes.publish(SUBMIT, b"3")
        assert (await anext(feed)).seq == 4


async def test_trimmed_wishes_are_passed_over(bus: Bus) -> None:
    for n in range(3):
        await bus.wishes.publish(SUBMIT, b"%d" % n)
    await bus.wishes.trim(3)
    assert await bus.wishes.ends() == Ends(first=3, last=3)
    async with bus.wishes.follow(1) as feed, asyncio.timeout(20):
        assert (await anext(feed)).seq == 3


async def test_a_wish_position_beyond_the_end_is_another_stream(bus: Bus) -> None:
    await bus.wishes.publish(SUBMIT, b"0")
    async with bus.wishes.follow(3) as feed, asyncio.timeout(20):
        with pytest.raises(LedgerGap):
            await anext(feed)


async def test_a_full_wish_stream_refuses_the_newest(bus: Bus) -> None:
    for _ in range(12):
        await bus.wishes.publish(SUBMIT, b"x" * 10 * KIB)
    with pytest.raises(BusFull) as full:
        await bus.wishes.publish(SUBMIT, b"x" * 10 * KIB)
    assert "wish" in full.value.stream
    assert await bus.wishes.ends() == Ends(first=1, last=12)
    await bus.wishes.trim(12)
    await bus.wishes.publish(SUBMIT, b"room again")


async def test_a_wish_too_large_is_found_before_sending(bus: Bus) -> None:
    with pytest.raises(MessageTooLarge):
        await bus.wishes.publish(SUBMIT, b"x" * 17 * KIB)
    assert (await bus.wishes.ends()).last == 0


async def test_a_wish_cannot_be_made_while_the_bus_is_away(harness: Harness) -> None:
    bus = await harness.bus()
    gone = asyncio.Event()
    bus.link.on_disconnect(gone.set)
    await harness.crash()
    await gone.wait()
    assert not bus.link.connected
    with pytest.raises(BusAway):
        await bus.wishes.publish(SUBMIT, b"0")
    await harness.recover()
    assert bus.link.connected
    assert bus.link.reconnects == 1
    await bus.wishes.publish(SUBMIT, b"1")
    async with bus.wishes.follow(1) as feed, asyncio.timeout(20):
        assert (await anext(feed)).data == b"1"


async def test_wishes_are_followed_through_a_crash(harness: Harness) -> None:
    bus = await harness.bus()
    async with bus.wishes.follow(1) as feed, asyncio.timeout(30):
        await bus.wishes.publish(SUBMIT, b"0")
        assert (await anext(feed)).data == b"0"
        await harness.crash()
        await harness.recover()
        await bus.wishes.publish(SUBMIT, b"1")
        assert [(s.seq, s.data) for s in await feed.batch()] == [(2, b"1")]


# Signals


async def test_one_noisy_node_keeps_its_last_64_and_others_keep_theirs(bus: Bus) -> None:
    await bus.signals.publish(signal("n2"), b"quiet")
    for n in range(100):
        await bus.signals.publish(signal("n1"), b"%d" % n)
    async with bus.signals.follow(0.0) as feed:
        seen = await until_ready(feed)
    assert seen == [("n2", b"quiet"), *(("n1", b"%d" % n) for n in range(36, 100))]


async def test_signals_since_a_moment_and_of_some_racks(bus: Bus) -> None:
    await bus.signals.publish(signal("n1", "r1"), b"a")
    await bus.signals.publish(signal("n1", "r2"), b"b")
    await bus.signals.publish(signal("n1", "r3"), b"c")
    racks = ["rackwright.lab.signal.*.r1.>", "rackwright.lab.signal.*.r2.>"]
    async with bus.signals.follow(0.0, racks) as feed:
        assert [data for _, data in await until_ready(feed)] == [b"a", b"b"]
    async with bus.signals.follow(4e9, racks[:1]) as feed:
        assert await until_ready(feed) == []


# Status


async def test_last_values_then_ready_then_changes(bus: Bus) -> None:
    for value in (b"starting", b"running"):
        for node in ("n1", "n2"):
            await bus.status.put(status(node), value)
    async with bus.status.follow() as feed:
        assert await until_ready(feed) == [("n1", b"running"), ("n2", b"running")]
        await bus.status.put(status("n1"), b"stopped")
        assert (await next_stored(feed)).data == b"stopped"


async def test_an_empty_stream_is_ready_at_once(bus: Bus) -> None:
    async with bus.status.follow() as feed:
        assert await until_ready(feed) == []
    async with bus.status.follow(["rackwright.lab.status.07.>"]) as feed:
        await bus.status.put(status("n1"), b"elsewhere")
        assert await until_ready(feed) == []


async def test_a_forgotten_status_stream_is_read_again_from_its_start(harness: Harness) -> None:
    bus = await harness.bus()
    await bus.status.put(status("n1"), b"old")
    await bus.status.put(status("n2"), b"old")
    async with bus.status.follow() as feed:
        assert len(await until_ready(feed)) == 2
        await harness.forget(Kind.STATUS)
        await bus.status.put(status("n1"), b"new")
        seen = [item async for item in _until_new(feed)]
    assert Ready in [type(item) for item in seen]
    assert [s.data for s in seen if isinstance(s, Stored)] == [b"new"]


async def _until_new(feed: Feed[Stored | Ready]):  # type: ignore[no-untyped-def]
    new = ready = False
    async with asyncio.timeout(20):
        while not (new and ready):
            item = await anext(feed)
            new |= isinstance(item, Stored)
            ready |= isinstance(item, Ready)
            yield item


# Projections


async def test_a_key_is_written_by_compare(bus: Bus) -> None:
    first = await bus.assign.put("r1", b"a", revision=0)
    assert first == Appended(seq=1)
    outcomes = [
        await bus.assign.put("r1", b"b", revision=0),
        await bus.assign.put("r2", b"c", revision=0),
        await bus.assign.put("r1", b"d", revision=1),
        await bus.assign.put("r1", b"e", revision=2),
    ]
    assert outcomes == [
        Refused(last_seq=1),
        Appended(seq=2),
        Appended(seq=3),
        Refused(last_seq=3),
    ]
    assert await bus.assign.get("r1") == Value(key="r1", revision=3, data=b"d")
    assert await bus.assign.get("r9") is None
    assert await bus.assign.keys() == ["r1", "r2"]
    assert await bus.jobs.keys() == []


async def test_a_deleted_key_can_be_written_anew(bus: Bus) -> None:
    await bus.jobs.put("j1", b"a", revision=0)
    assert await bus.jobs.delete("j1", revision=7) == Refused(last_seq=1)
    assert await bus.jobs.delete("j1", revision=1) == Appended(seq=2)
    assert await bus.jobs.get("j1") is None
    assert await bus.jobs.keys() == []
    assert await bus.jobs.put("j1", b"b", revision=0) == Appended(seq=3)
    assert await bus.jobs.get("j1") == Value(key="j1", revision=3, data=b"b")


@pytest.mark.parametrize("pattern", ["r1", "*", ">"])
async def test_a_watch_shows_the_value_then_ready_then_changes(bus: Bus, pattern: str) -> None:
    await bus.assign.put("r1", b"a", revision=0)
    async with bus.assign.watch(pattern) as feed, asyncio.timeout(20):
        assert await anext(feed) == Change(key="r1", revision=1, data=b"a")
        assert await anext(feed) == Ready(last=1)
        await bus.assign.put("r1", b"b", revision=1)
        assert await anext(feed) == Change(key="r1", revision=2, data=b"b")
        await bus.assign.delete("r1", revision=2)
        assert await anext(feed) == Change(key="r1", revision=3, data=None)


async def test_absence_is_not_news(bus: Bus) -> None:
    async with bus.assign.watch("r1") as feed, asyncio.timeout(20):
        assert isinstance(await anext(feed), Ready)
        await bus.assign.put("r2", b"other", revision=0)
        await bus.assign.put("r1", b"a", revision=0)
        assert await anext(feed) == Change(key="r1", revision=2, data=b"a")


@pytest.mark.parametrize("pattern", ["r1", ">"])
async def test_a_watch_survives_a_crash_and_a_bucket_made_anew(
    harness: Harness, pattern: str
) -> None:
    bus = await harness.bus()
    for revision in range(3):
        await bus.assign.put("r1", b"old", revision=revision)
    async with bus.assign.watch(pattern) as feed, asyncio.timeout(40):
        assert await anext(feed) == Change(key="r1", revision=3, data=b"old")
        await harness.crash()
        await harness.recover()  # a real server has forgotten what was in memory
        value = await bus.assign.get("r1")
        revision = value.revision if value is not None else 0
        outcome = await bus.assign.put("r1", b"new", revision=revision)
        assert isinstance(outcome, Appended)
        seen: Change | Ready = await anext(feed)
        while isinstance(seen, Ready) or seen.data != b"new":
            seen = await anext(feed)
        assert seen == Change(key="r1", revision=outcome.seq, data=b"new")


async def test_a_value_written_with_its_answer_lost_is_there(harness: Harness) -> None:
    bus = await harness.bus()
    await harness.lose_answer(bus)
    outcome = await bus.assign.put("r1", b"a", revision=0)
    assert isinstance(outcome, Unsettled)
    assert outcome.reason is Cause.NO_ANSWER
    await harness.restore(bus)
    assert await bus.assign.put("r1", b"a", revision=0) == Refused(last_seq=1)
    assert await bus.assign.get("r1") == Value(key="r1", revision=1, data=b"a")


# Snapshots and dead letters


async def test_snapshots_are_chunks_on_subjects(bus: Bus) -> None:
    root = "rackwright.lab.snap.l1"
    for seq in (5, 9):
        for part in ("0", "1", "manifest"):
            await bus.snapshots.write(f"{root}.{seq}.{part}", f"{seq}-{part}".encode())
    await bus.snapshots.write(f"{root}.9.0", b"9-0", {"hash": "h"})
    chunk = await bus.snapshots.read(f"{root}.9.0")
    assert chunk is not None
    assert (chunk.data, chunk.headers["hash"]) == (b"9-0", "h")
    assert chunk.at > 0
    assert await bus.snapshots.read(f"{root}.9.7") is None
    both = await bus.snapshots.read_all([f"{root}.9.7", f"{root}.9.0"])
    assert both == [None, chunk]
    assert await bus.snapshots.subjects(f"{root}.*.manifest") == [
        f"{root}.5.manifest",
        f"{root}.9.manifest",
    ]
    assert await bus.snapshots.delete(f"{root}.5.>") == 3
    assert await bus.snapshots.subjects() == [f"{root}.9.{p}" for p in ("0", "1", "manifest")]


async def test_snapshots_and_ledger_survive_a_crash(harness: Harness) -> None:
    bus = await harness.bus()
    await bus.snapshots.write("rackwright.lab.snap.l1.1.0", b"chunk")
    await bus.dead.publish("rackwright.lab.dead.wish", b"\xff", {"reason": "not json"})
    await harness.crash()
    await harness.recover()
    chunk = await bus.snapshots.read("rackwright.lab.snap.l1.1.0")
    assert chunk is not None
    assert chunk.data == b"chunk"
    async with bus.dead.follow() as feed:
        assert await until_ready(feed) == [("wish", b"\xff")]


async def test_a_recreated_wish_stream_is_an_error_under_way(harness: Harness) -> None:
    bus = await harness.bus()
    await bus.wishes.publish(SUBMIT, b"0")
    async with bus.wishes.follow(1) as feed, asyncio.timeout(20):
        await anext(feed)
        await harness.forget(Kind.WISH)
        with pytest.raises(StreamReplaced):
            await anext(feed)
