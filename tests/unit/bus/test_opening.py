"""Who opens something while the bus is away has it when the bus is back."""

import asyncio

import pytest

from rackwright.bus.errors import BusAway, BusDenied
from rackwright.bus.opening import patiently


async def test_it_is_opened_as_soon_as_the_bus_lets_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rackwright.bus.opening.RETRY_S", 0.0)
    answers: list[BusAway | str] = [BusAway("flush", "1"), BusAway("flush", "2"), "open"]

    async def opening() -> str:
        answer = answers.pop(0)
        await asyncio.sleep(0)
        if isinstance(answer, BusAway):
            raise answer
        return answer

    assert await patiently(opening) == "open"
    assert answers == []


async def test_what_will_not_pass_is_not_waited_for() -> None:
    async def opening() -> str:
        raise BusDenied("subscribe", "permissions violation")

    with pytest.raises(BusDenied):
        await patiently(opening)
