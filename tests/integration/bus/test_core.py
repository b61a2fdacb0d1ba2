"""Core messages: heard now or never, requests, bounded queues; and the end of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from rackwright.bus.errors import BusAway, BusClosed, MessageTooLarge, NoResponder, RequestFailed
from rackwright.bus.ports import Bus, Message
from tests.integration.bus.harness import Harness

HB = "rackwright.lab.hb.00.r1.n1"
JOBS = "rackwright.lab.query.jobs"
FINISHED = "rackwright.lab.ledger.job.finished"


async def test_who_listens_hears(harness: Harness) -> None:
    sender, hearer = await harness.bus(), await harness.bus()
    async with await hearer.core.subscribe("rackwright.lab.hb.>") as feed, asyncio.timeout(30):
        assert await sender.core.publish(HB, b"1", {"session": "s1"}, reply="x.y")
        message = await anext(feed)
    assert (message.subject, message.data, message.reply) == (HB, b"1", "x.y")
    assert message.headers["session"] == "s1"


async def test_a_slow_hearer_loses_the_oldest_and_knows_how_many(harness: Harness) -> None:
    sender, hearer = await harness.bus(), await harness.bus()
    async with await hearer.core.subscribe("rackwright.lab.hb.>", limit=3) as feed:
        for n in range(10):
            await sender.core.publish(HB, b"%d" % n)
        # One connection delivers in order: when the tenth came to the second feed, the first
        # one has it too, or gets it before this task runs again.
        async with await hearer.core.subscribe("rackwright.lab.echo.done") as done:
            await sender.core.publish("rackwright.lab.echo.done", b"")
            async with asyncio.timeout(30):
                await anext(done)
        assert [m.data for m in feed.taken()] == [b"7", b"8", b"9"]
        assert feed.dropped == 7


async def test_nothing_is_kept_for_later(harness: Harness) -> None:
    bus = await harness.bus()
    gone = asyncio.Event()
    bus.link.on_disconnect(gone.set)
    feed = await bus.core.subscribe(HB)
    await harness.crash()
    await gone.wait()
    assert await bus.core.publish(HB, b"while away") is False
    with pytest.raises(BusAway):
        await bus.core.subscribe("rackwright.lab.echo.>")
    await harness.recover()
    assert await bus.core.publish(HB, b"back") is True
    async with asyncio.timeout(30):
        assert (await anext(feed)).data == b"back"
    assert feed.taken() == []


async def test_a_query_is_answered(harness: Harness) -> None:
    asker, answerer = await harness.bus(), await harness.bus()

    async def answer(message: Message) -> bytes:
        if message.data == b"bad":
            raise RequestFailed(message.subject, 404, "no such job")
        if message.data == b"broken":
            raise ZeroDivisionError("secret")
        return b"jobs of " + message.data

    complaints: list[str] = []
    answerer.link.on_error(complaints.append)
    responder = await answerer.core.respond(JOBS, answer, queue="gateway")
    assert (await asker.core.request(JOBS, b"ann")).data == b"jobs of ann"
    with pytest.raises(RequestFailed) as failed:
        await asker.core.request(JOBS, b"bad")
    assert (failed.value.code, failed.value.description) == (404, "no such job")
    with pytest.raises(RequestFailed) as failed:
        await asker.core.request(JOBS, b"broken")
    assert (failed.value.code, failed.value.description) == (500, "internal error")
    assert len(complaints) == 1
    assert "secret" in complaints[0]
    await responder.aclose()
    await answerer.ledger.ends()  # the server has heard what was said on that connection before
    with pytest.raises(NoResponder):
        await asker.core.request(JOBS, b"ann")


async def test_slow_answers_do_not_hold_up_others(harness: Harness) -> None:
    asker, answerer = await harness.bus(), await harness.bus()
    go = asyncio.Event()

    async def answer(message: Message) -> bytes:
        if message.data == b"slow":
            await go.wait()
        return message.data

    responder = await answerer.core.respond(JOBS, answer, concurrency=2)
    slow = asyncio.create_task(asker.core.request(JOBS, b"slow", patience=10))
    assert (await asker.core.request(JOBS, b"fast", patience=10)).data == b"fast"
    go.set()
    assert (await slow).data == b"slow"
    await responder.aclose()


async def test_a_request_nobody_answers_in_time(harness: Harness) -> None:
    asker, answerer = await harness.bus(), await harness.bus()
    async with await answerer.core.subscribe(JOBS):
        with pytest.raises(BusAway):
            await asker.core.request(JOBS, b"", patience=0.05)


async def test_too_large_for_the_server_is_found_before_sending(bus: Bus) -> None:
    with pytest.raises(MessageTooLarge):
        await bus.core.publish(HB, b"x" * (256 * 1024 + 1))


async def test_what_was_accepted_is_told(harness: Harness) -> None:
    bus = await harness.bus()
    async with await bus.core.subscribe("rackwright.lab.told.job.>") as feed:
        await bus.ledger.append(FINISHED, b"in", expected=0)
        await bus.ledger.append(FINISHED, b"refused", expected=0)
        await bus.ledger.append(FINISHED, b"too", expected=1)
        async with asyncio.timeout(30):
            assert [(await anext(feed)).data for _ in range(2)] == [b"in", b"too"]


async def test_closing_ends_every_feed(harness: Harness) -> None:
    bus = await harness.bus()
    feeds: list[AsyncIterator[object]] = [
        bus.ledger.follow(1),
        bus.wishes.follow(1),
        bus.status.follow(),
        bus.assign.watch("r1"),
        bus.assign.watch(),
        await bus.core.subscribe(HB),
    ]
    waiting = [asyncio.create_task(_exhaust(feed)) for feed in feeds]
    await asyncio.sleep(0)
    await bus.close()
    async with asyncio.timeout(30):
        await asyncio.gather(*waiting)
        assert await bus.link.closed() == "closed here"
    with pytest.raises(BusClosed):
        bus.ledger.follow(1)


async def _exhaust(feed: AsyncIterator[object]) -> None:
    async for _ in feed:
        pass
