"""The ledger: compare, refusal, lost answers, gaps, and following it through a crash."""

from __future__ import annotations

import asyncio

import pytest

from rackwright.bus.errors import (
    AppendInFlight,
    BusAway,
    BusFull,
    LedgerGap,
    MessageTooLarge,
    StreamReplaced,
    WrongSubject,
)
from rackwright.bus.ports import Appended, Bus, Cause, Ends, Feed, Refused, Stored, Unsettled
from rackwright.bus.streams import KIB, Kind
from tests.integration.bus.harness import Harness

PLACED = "rackwright.lab.ledger.job.placed"
FAILED = "rackwright.lab.ledger.node.failed"


async def fill(bus: Bus, count: int) -> None:
    for n in range(count):
        assert await bus.ledger.append(PLACED, b"%d" % n, expected=None) is not None


async def read(bus: Bus, start: int, count: int) -> list[Stored]:
    async with bus.ledger.follow(start) as feed, asyncio.timeout(20):
        return [await anext(feed) for _ in range(count)]


async def test_an_append_is_taken_only_at_the_sequence_it_was_decided_at(bus: Bus) -> None:
    outcomes = [
        await bus.ledger.append(PLACED, b"a", expected=0),
        await bus.ledger.append(PLACED, b"b", expected=0),
        await bus.ledger.append(FAILED, b"c", expected=None),
        await bus.ledger.append(PLACED, b"d", expected=1),
        await bus.ledger.append(PLACED, b"e", expected=2),
    ]
    assert outcomes == [
        Appended(seq=1),
        Refused(last_seq=1),
        Appended(seq=2),
        Refused(last_seq=2),
        Appended(seq=3),
    ]
    assert await bus.ledger.ends() == Ends(first=1, last=3)


async def test_headers_subject_and_a_rising_time_come_back(bus: Bus) -> None:
    await bus.ledger.append(PLACED, b"a", expected=0, headers={"ledger": "l1", "prev": ""})
    await bus.ledger.append(FAILED, b"b", expected=1, headers={"ledger": "l1", "prev": "c1"})
    first, second = await read(bus, 1, 2)
    assert [(s.seq, s.subject, s.data) for s in (first, second)] == [
        (1, PLACED, b"a"),
        (2, FAILED, b"b"),
    ]
    assert second.headers["ledger"] == "l1"
    assert second.headers["prev"] == "c1"
    assert second.at >= first.at > 0


async def test_two_writers_at_one_sequence_leave_one_winner(harness: Harness) -> None:
    one, two = await harness.bus(), await harness.bus()
    outcomes = await asyncio.gather(
        one.ledger.append(PLACED, b"one", expected=0),
        two.ledger.append(PLACED, b"two", expected=0),
    )
    assert sorted(type(o).__name__ for o in outcomes) == ["Appended", "Refused"]
    assert await one.ledger.ends() == Ends(first=1, last=1)


async def test_a_pipeline_is_a_mistake_of_the_caller(bus: Bus) -> None:
    first = asyncio.create_task(bus.ledger.append(PLACED, b"a", expected=0))
    await asyncio.sleep(0)
    with pytest.raises(AppendInFlight):
        await bus.ledger.append(PLACED, b"b", expected=1)
    assert await first == Appended(seq=1)


async def test_refused_does_not_mean_absent(harness: Harness) -> None:
    bus = await harness.bus()
    await fill(bus, 2)
    await harness.lose_answer(bus)
    lost = await bus.ledger.append(PLACED, b"mine", expected=2)
    await harness.restore(bus)
    again = await bus.ledger.append(PLACED, b"mine", expected=2)
    assert isinstance(lost, Unsettled)
    assert lost.reason is Cause.NO_ANSWER
    assert again == Refused(last_seq=3)
    assert [s.data for s in await read(bus, 1, 3)].count(b"mine") == 1


async def test_away_is_unsettled_and_never_a_later_ghost(harness: Harness) -> None:
    bus = await harness.bus()
    await fill(bus, 1)
    gone = asyncio.Event()
    bus.link.on_disconnect(gone.set)
    await harness.crash()
    await gone.wait()
    outcome = await bus.ledger.append(PLACED, b"ghost", expected=1)
    assert isinstance(outcome, Unsettled)
    assert outcome.reason is Cause.AWAY
    with pytest.raises(BusAway):
        await bus.ledger.ends()
    await harness.recover()
    assert await bus.ledger.append(PLACED, b"real", expected=1) == Appended(seq=2)
    assert [s.data for s in await read(bus, 1, 2)] == [b"0", b"real"]


async def test_following_from_the_end_waits_and_then_hears(bus: Bus) -> None:
    await fill(bus, 3)
    async with bus.ledger.follow(4) as feed:
        assert feed.taken() == []
        await bus.ledger.append(PLACED, b"new", expected=3)
        async with asyncio.timeout(30):
            assert [s.data for s in await feed.batch()] == [b"new"]


@pytest.mark.parametrize(("start", "got"), [(5, 4), (2, 3), (1, 3)])
async def test_a_start_that_is_not_there_is_a_gap_at_once(bus: Bus, start: int, got: int) -> None:
    await fill(bus, 3)
    await bus.ledger.purge_to(3)
    assert await bus.ledger.ends() == Ends(first=3, last=3)
    async with bus.ledger.follow(start) as feed, asyncio.timeout(30):
        with pytest.raises(LedgerGap) as gap:
            await anext(feed)
    assert (gap.value.expected, gap.value.got) == (start, got)


async def test_a_ledger_purged_empty_still_knows_its_place(bus: Bus) -> None:
    await fill(bus, 3)
    await bus.ledger.purge_to(4)
    assert await bus.ledger.ends() == Ends(first=4, last=3)
    assert await bus.ledger.append(PLACED, b"d", expected=3) == Appended(seq=4)


async def test_a_crash_under_load_loses_nothing_and_doubles_nothing(harness: Harness) -> None:
    writer, reader = await harness.bus(), await harness.bus()
    seen: list[Stored] = []
    crashed = asyncio.Event()
    stopped = asyncio.Event()

    async def write() -> None:
        expected, n = 0, 0
        while not stopped.is_set():
            outcome = await writer.ledger.append(PLACED, b"%d" % n, expected=expected)
            match outcome:
                case Appended(seq=seq):
                    expected, n = seq, n + 1
                case Refused(last_seq=last):  # the attempt before was in after all
                    expected, n = last, n + 1
                case Unsettled():
                    await asyncio.sleep(0.01)
            if n == 100:
                crashed.set()
            if n == 300:
                return

    async with reader.ledger.follow(1) as feed, asyncio.timeout(60):
        writing = asyncio.create_task(write())
        reading = asyncio.create_task(_collect(feed, seen, 300))
        await crashed.wait()
        await harness.crash()
        await harness.recover()
        await writing
        await reading
    assert [s.seq for s in seen] == list(range(1, 301))
    assert [s.data for s in seen] == [b"%d" % n for n in range(300)]


async def _collect(feed: Feed[Stored], seen: list[Stored], count: int) -> None:
    while len(seen) < count:
        seen.extend(await feed.batch())


async def test_another_stream_under_a_running_feed_is_an_error(harness: Harness) -> None:
    bus = await harness.bus()
    await fill(bus, 3)
    async with bus.ledger.follow(1) as feed, asyncio.timeout(20):
        assert [(await anext(feed)).seq for _ in range(3)] == [1, 2, 3]
        await harness.forget(Kind.LEDGER)
        with pytest.raises(StreamReplaced):
            await anext(feed)


async def test_too_large_is_found_before_sending(bus: Bus) -> None:
    with pytest.raises(MessageTooLarge) as error:
        await bus.ledger.append(PLACED, b"x" * (32 * KIB + 1), expected=0)
    assert error.value.size > error.value.limit == 32 * KIB
    assert await bus.ledger.ends() == Ends(first=1, last=0)


@pytest.mark.parametrize(
    "subject",
    [
        "rackwright.lab.wish.ann.submit",
        "rackwright.other.ledger.job.placed",
        "rackwright.lab.ledger.job.*",
        "rackwright.lab.ledger.job placed",
        "rackwright.lab.ledger.",
        "rackwright.lab.ledger.job..placed",
    ],
)
async def test_a_subject_of_another_stream_is_refused_here(bus: Bus, subject: str) -> None:
    with pytest.raises(WrongSubject):
        await bus.ledger.append(subject, b"a", expected=0)


async def test_a_full_ledger_says_so(bus: Bus) -> None:
    for _ in range(8):
        await bus.ledger.append(PLACED, b"x" * 30 * KIB, expected=None)
    with pytest.raises(BusFull) as full:
        await bus.ledger.append(PLACED, b"x" * 30 * KIB, expected=None)
    assert "bytes" in full.value.limit
    usage = await bus.ledger.usage()
    assert 0.8 < usage.fraction <= 1.0
    assert (await bus.ledger.ends()).first == 1
