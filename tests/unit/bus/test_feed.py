"""The reader's half of a feed."""

from __future__ import annotations

import asyncio

import pytest

from rackwright.bus.feed import BufferedFeed


async def test_batches_are_all_that_is_here_up_to_a_limit() -> None:
    feed: BufferedFeed[int] = BufferedFeed()
    feed.extend(range(5))
    assert await feed.batch(3) == [0, 1, 2]
    assert feed.taken() == [3, 4]
    assert feed.taken() == []
    reading = asyncio.create_task(feed.batch())
    await asyncio.sleep(0)
    feed.push(5)
    feed.push(6)
    assert await reading == [5, 6]


async def test_an_error_comes_after_what_was_before_it_and_stays() -> None:
    feed: BufferedFeed[int] = BufferedFeed()
    feed.push(1)
    feed.fail(ValueError("gap"))
    assert await anext(feed) == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="gap"):
            await anext(feed)


async def test_closing_ends_a_waiting_reader() -> None:
    feed: BufferedFeed[int] = BufferedFeed()
    reading = asyncio.create_task(feed.batch())
    await asyncio.sleep(0)
    await feed.aclose()
    assert await reading == []
    feed.push(1)
    assert [item async for item in feed] == []


async def test_two_readers_are_a_mistake() -> None:
    feed: BufferedFeed[int] = BufferedFeed()
    first = asyncio.create_task(feed.batch())
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="one reader"):
        await feed.batch()
    feed.push(1)
    assert await first == [1]


async def test_a_cancelled_reader_leaves_the_feed_usable() -> None:
    feed: BufferedFeed[int] = BufferedFeed()
    reading = asyncio.create_task(feed.batch())
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    feed.push(1)
    assert await feed.batch() == [1]
