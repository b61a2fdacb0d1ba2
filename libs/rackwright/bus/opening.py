"""Opening a subscription when the bus may be away: it is opened as soon as it is back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rackwright.bus.errors import BusAway

T = TypeVar("T")
RETRY_S = 0.5


async def patiently(opening: Callable[[], Awaitable[T]]) -> T:
    """What `opening` opens, once the bus is there."""
    while True:
        try:
            return await opening()
        except BusAway:
            await asyncio.sleep(RETRY_S)
