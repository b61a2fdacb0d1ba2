"""A machine lives: it hears, decides, is refused, loses answers, and goes on."""

from __future__ import annotations

import pytest

from rackwright.bus.ports import Bus
from rackwright.core.machine import Acked, Folded, Wished
from rackwright.host.create import create_ledger
from rackwright.host.hearing import Hears
from rackwright.host.runner import Runner
from tests.integration.host.helpers import FaultyBus, answers, running, until, wish
from tests.integration.host.machines import Refuser, Ticker

WISHES = Hears(wishes=True)


async def test_a_wish_is_answered_once(bus: Bus) -> None:
    runner = Runner(Refuser(), WISHES, bus)
    async with running(runner):
        seq = await wish(bus, "a")
        await until(lambda: runner.standing.fleet.answered("placer", seq))
    assert await answers(bus) == [seq]


async def test_what_was_wished_before_the_start_is_answered(bus: Bus) -> None:
    wanted = [await wish(bus, f"j{n}") for n in range(200)]
    runner = Runner(Refuser(), WISHES, bus)
    async with running(runner):
        await until(lambda: runner.standing.fleet.answered("placer", wanted[-1]))
    assert await answers(bus) == wanted


async def test_nothing_is_answered_again_after_a_restart(bus: Bus) -> None:
    first = await wish(bus, "a")
    runner = Runner(Refuser(), WISHES, bus)
    async with running(runner):
        await until(lambda: runner.standing.fleet.answered("placer", first))
    second = await wish(bus, "b")
    again = Runner(Refuser(), WISHES, bus)
    async with running(again):
        await until(lambda: again.standing.fleet.answered("placer", second))
        state = again.state
    assert state is not None
    assert [event.seq for event in state.events if isinstance(event, Wished)] == [second]
    assert await answers(bus) == [first, second]


@pytest.mark.parametrize("after", [True, False])
async def test_a_lost_answer_neither_doubles_nor_loses(bus: Bus, after: bool) -> None:
    faulty = FaultyBus(bus)
    runner = Runner(Refuser(), WISHES, faulty.port)
    async with running(runner):
        await until(lambda: runner.standing.ready)
        if after:
            faulty.ledger.lose_after = 2
        else:
            faulty.ledger.lose_before = 2
        seq = await wish(bus, "a")
        await until(lambda: runner.standing.fleet.answered("placer", seq))
        later = await wish(bus, "b")
        await until(lambda: runner.standing.fleet.answered("placer", later))
    assert await answers(bus) == [seq, later]


async def test_an_observation_whose_answer_is_lost_is_settled_by_the_fold(bus: Bus) -> None:
    faulty = FaultyBus(bus)
    faulty.ledger.lose_after = 1
    runner = Runner(Ticker(1), Hears(), faulty.port, patience_s=0)
    async with running(runner):
        await until(lambda: runner.state is not None and len(runner.state.events) == 2)
        state = runner.state
    assert state is not None
    assert [type(event) for event in state.events] == [Folded, Acked]


async def test_an_observation_is_acknowledged_with_its_time_of_sending(bus: Bus) -> None:
    runner = Runner(Ticker(2), Hears(), bus, patience_s=0)
    async with running(runner):
        await until(lambda: runner.standing.fleet.seq == 3)
        await until(lambda: runner.state is not None and len(runner.state.events) == 4)
        state = runner.state
    assert state is not None
    kinds = [type(event) for event in state.events]
    assert kinds == [Folded, Acked, Folded, Acked]
    acked = [event for event in state.events if isinstance(event, Acked)]
    assert [event.seq for event in acked] == [2, 3]
    assert all(event.sent_mono <= event.mono for event in acked)


async def test_a_ledger_is_created_once(bus: Bus) -> None:
    assert not await create_ledger(bus)
    assert (await bus.ledger.ends()).last == 1
