"""A cancellation that somebody swallows is found again."""

import asyncio

import pytest

from rackwright.bus.cancelling import end, heeding_cancellation


async def swallow(entered: asyncio.Event) -> None:
    entered.set()
    try:
        await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        return


async def test_a_swallowed_cancellation_comes_out_of_the_block() -> None:
    entered = asyncio.Event()

    async def work() -> None:
        with heeding_cancellation():
            await swallow(entered)
        raise AssertionError("went on")

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_a_swallowed_timeout_is_a_timeout() -> None:
    async def late() -> None:
        async with asyncio.timeout(0.01):
            with heeding_cancellation():
                await swallow(asyncio.Event())

    with pytest.raises(TimeoutError):
        await late()


async def test_cleaning_up_after_a_cancellation_goes_on() -> None:
    entered, cleaned = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            entered.set()
            await asyncio.get_running_loop().create_future()
        finally:
            with heeding_cancellation():
                await asyncio.sleep(0)
            cleaned.set()

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    await asyncio.wait({task})
    assert cleaned.is_set()
    assert task.cancelled()


async def test_ending_a_task_that_lost_a_cancellation() -> None:
    entered = asyncio.Event()

    async def work() -> None:
        await swallow(entered)
        await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(work())
    await entered.wait()
    await end(task)
    assert task.cancelled()
